// SPDX-License-Identifier: Apache-2.0
#include "model/spec/includes.h"

#include <gtest/gtest.h>

#include <map>

namespace purlin {
namespace {

using Files = std::map<std::string, std::string>;

std::vector<std::string> paths(const std::string& source, const Files& files,
                               const std::vector<std::string>& directories = {}) {
  const auto headers = included_headers(source, "k", directories,
                                        [&](const std::string& path) -> std::optional<std::string> {
                                          const auto found = files.find(path);
                                          if (found == files.end()) return std::nullopt;
                                          return found->second;
                                        });
  std::vector<std::string> out;
  for (const Header& header : headers.value()) out.push_back(header.path);
  return out;
}

TEST(Includes, AreFoundBesideTheFileThatIncludesThem) {
  const Files files = {{"k/sub/a.h", "#include \"b.h\"\n"}, {"k/sub/b.h", ""}, {"k/b.h", ""}};
  EXPECT_EQ(paths("#include \"sub/a.h\"\n", files),
            (std::vector<std::string>{"k/sub/a.h", "k/sub/b.h"}));
}

TEST(Includes, AreFoundInTheFoldersOfTheOptions) {
  const Files files = {{"inc/tile.h", "#include <deep.h>"}, {"inc/deep.h", ""}};
  EXPECT_EQ(paths("  #  include <tile.h>\n#include <cuda.h>\n", files, {"inc"}),
            (std::vector<std::string>{"inc/tile.h", "inc/deep.h"}));
  EXPECT_EQ(include_folders({"-O3", "-Iinc", "-I", "other", "-I"}),
            (std::vector<std::string>{"inc", "other"}));
}

TEST(Includes, ACircleEndsAndARunawayIsRefused) {
  EXPECT_EQ(
      paths("#include \"a.h\"", {{"k/a.h", "#include \"b.h\""}, {"k/b.h", "#include \"a.h\""}})
          .size(),
      2U);
  const auto endless = included_headers("#include \"x/a.h\"", "k", {}, [](const std::string&) {
    return std::optional<std::string>("#include \"x/a.h\"");
  });
  EXPECT_EQ(endless.status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin
