// SPDX-License-Identifier: Apache-2.0
#include "model/spec/command.h"

#include "model/spec/spec.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

Result<KernelSpec> parse_command_spec(const std::string& lines, const std::string& file = "x") {
  const std::string text =
      "schema = \"purlin.spec/1\"\nname = \"c\"\n[problem]\nN = 64\n[parameters]\nBM = [1, 2]\n"
      "[command]\nrun = [\"./b\", \"{N}\"]\nformat = \"wall\"\n" +
      lines;
  return parse_spec(text, "/specs/c.toml", [&](const std::string& path) -> Result<std::string> {
    if (path == "/specs/b.c") return file;
    return error(Code::kNotFound, "there is no '{}'", path);
  });
}

std::string mistake_in(const std::string& lines) {
  return parse_command_spec(lines).status().message();
}

TEST(CommandSpec, HasTemplatesAndAWayToVerify) {
  const auto spec = parse_command_spec(
      "build = [\"cc\", \"-DBM={BM}\", \"{spec}/b.c\"]\noutputs = [\"out\", \"stdout\"]\n"
      "environment = { THREADS = \"{BM}\" }\nfiles = [\"b.c\"]\ndevice = \"host\"\n");
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  ASSERT_TRUE(spec->command);
  EXPECT_EQ(spec->command->build.size(), 3u);
  EXPECT_TRUE(spec->command->wall_time);
  EXPECT_TRUE(spec->command->on_host);
  EXPECT_TRUE(spec->reference.is_default_config);
  EXPECT_FALSE(parse_command_spec("check = [\"true\"]\n")->reference.is_default_config);
}

TEST(CommandSpec, MistakesNameThePlaceAndTheRemedy) {
  EXPECT_NE(mistake_in("").find("nothing verifies the outputs"), std::string::npos);
  EXPECT_NE(mistake_in("check = [\"{B}\"]\n").find("'{B}' is no parameter"), std::string::npos);
  EXPECT_NE(mistake_in("check = [\"{output}\"]\n").find("is no parameter"), std::string::npos);
  EXPECT_NE(mistake_in("check = [\"a}\"]\n").find("single brace"), std::string::npos);
  EXPECT_NE(mistake_in("outputs = [\"/etc/x\"]\n").find("no file of the working folder"),
            std::string::npos);
  EXPECT_NE(mistake_in("outputs = [\"x\"]\nexpect = \"AB\"\n").find("64 hexadecimal"),
            std::string::npos);
  EXPECT_NE(mistake_in("check = [\"a\"]\nfiles = [\"no.c\"]\n").find("/specs/no.c"),
            std::string::npos);
  EXPECT_NE(mistake_in("check = [\"a\"]\ndevice = \"cpu\"\n").find("\"host\""), std::string::npos);
  EXPECT_NE(mistake_in("check = [\"a\"]\nsurprise = 1\n").find("surprise"), std::string::npos);
  EXPECT_EQ(mistake_in("").find("/specs/c.toml:"), 0u);
}

TEST(CommandSpec, FilesAndWordsAreAPartOfTheIdentity) {
  const std::string lines = "check = [\"a\"]\nfiles = [\"b.c\"]\n";
  const std::string hash = parse_command_spec(lines)->source_hash("cuda");
  EXPECT_EQ(hash, parse_command_spec("# another layout\n" + lines)->source_hash("cuda"));
  EXPECT_NE(hash, parse_command_spec(lines, "y")->source_hash("cuda"));
  EXPECT_NE(hash, parse_command_spec("check = [\"b\"]\nfiles = [\"b.c\"]\n")->source_hash("cuda"));
}

TEST(FillTemplate, ReplacesNamesAndKeepsDoubledBraces) {
  EXPECT_EQ(fill_template("-DBM={BM} {{\"a\": {N}}}", {{"BM", "64"}, {"N", "7"}}),
            "-DBM=64 {\"a\": 7}");
  EXPECT_EQ(fill_template("", {}), "");
}

}  // namespace
}  // namespace purlin
