// SPDX-License-Identifier: Apache-2.0
#include "gpu/registry.h"

#include <gtest/gtest.h>

namespace purlin::gpu {
namespace {

std::string problem_of(std::string_view name) { return open_device(name).status().message(); }

TEST(Registry, DiscoversTheBestFirst) {
  std::vector<std::string> problems;
  const std::vector<DeviceInfo> found = discover(&problems);
  ASSERT_FALSE(found.empty()) << "install pocl-opencl-icd";
  const auto rank = [](const DeviceInfo& info) {
    return info.backend == "cuda" ? 0 : info.kind == "gpu" ? 1 : info.kind == "cpu" ? 3 : 2;
  };
  for (std::size_t i = 1; i < found.size(); ++i) EXPECT_LE(rank(found[i - 1]), rank(found[i]));
  // A backend either answers with devices or says why not.
  const bool cuda = std::any_of(found.begin(), found.end(),
                                [](const DeviceInfo& info) { return info.backend == "cuda"; });
  const bool excused = std::any_of(problems.begin(), problems.end(), [](const std::string& text) {
    return text.rfind("cuda: ", 0) == 0;
  });
  EXPECT_NE(cuda, excused);
}

TEST(Registry, OpensByNameAndBest) {
  for (const char* name : {"opencl:0", "opencl"}) {
    auto device = open_device(name);
    ASSERT_TRUE(device.is_ok()) << device.status().message();
    EXPECT_EQ((*device)->info().id, "opencl:0");
  }
  auto best = open_device("auto");
  ASSERT_TRUE(best.is_ok()) << best.status().message();
  EXPECT_EQ((*best)->info().id, discover().front().id);
}

TEST(Registry, WrongNamesAreExplained) {
  EXPECT_NE(problem_of("opencx:0").find("did you mean 'opencl'?"), std::string::npos);
  EXPECT_NE(problem_of("opencl:x").find("'x' is not a device number"), std::string::npos);
  EXPECT_NE(problem_of("opencl:-1").find("not a device number"), std::string::npos);
  EXPECT_NE(problem_of("opencl:77").find("no device opencl:77"), std::string::npos);
  EXPECT_NE(problem_of("replay:").find("replay:FILE"), std::string::npos);
  EXPECT_NE(problem_of("fake").find("fake:FILE"), std::string::npos);
  EXPECT_EQ(open_device("replay:/no/such/file.json").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace purlin::gpu
