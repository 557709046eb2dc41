// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/suite.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

class SuiteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("guard-suite").value();
    ASSERT_TRUE(write_atomic(join_path(folder_, "gemm.toml"), "").is_ok());
  }
  void TearDown() override { (void)remove_tree(folder_); }

  Result<Suite> parse(const std::string& text) {
    return parse_suite(text, join_path(folder_, "gate.toml"));
  }
  // The error message for `text`, without the folder.
  std::string complaint(const std::string& text) {
    const Result<Suite> suite = parse(text);
    if (suite.is_ok()) return "(accepted)";
    EXPECT_EQ(suite.status().code(), Code::kInvalid);
    std::string message = suite.status().message();
    for (std::size_t at; (at = message.find(folder_ + "/")) != std::string::npos;)
      message.erase(at, folder_.size() + 1);
    return message;
  }

  std::string folder_;
  const std::string head_ = "schema = \"purlin.suite/1\"\nname = \"gate\"\n";
};

TEST_F(SuiteTest, ReadsItemsShapesAndInheritedThresholds) {
  const Result<Suite> suite = parse(head_ + R"(
device = "opencl:0"
seed = 7
[thresholds]
floor = 0.03
[measure]
warmup = 5
max_samples = 99
[design]
screen_pairs = [8, 16]
[[items]]
spec = "gemm.toml"
shapes = ["small", "M=64,N=64"]
config = "BM=16"
tags = ["hot"]
[[items]]
spec = "gemm.toml"
[items.thresholds]
detectable = 0.1
)");
  ASSERT_TRUE(suite.is_ok()) << suite.status().message();
  EXPECT_EQ(suite->device, "opencl:0");
  EXPECT_EQ(suite->seed, 7u);
  EXPECT_EQ(suite->policy.warmup_launches, 5);
  EXPECT_EQ(suite->policy.max_samples, 99);
  EXPECT_EQ(suite->design.screen_looks, (std::vector<int>{8, 16}));
  ASSERT_EQ(suite->items.size(), 3u);
  EXPECT_EQ(suite->items[0].shape, "small");
  EXPECT_EQ(suite->items[1].shape, "M=64,N=64");
  EXPECT_EQ(suite->items[0].config, "BM=16");
  EXPECT_EQ(suite->items[0].spec_path, join_path(folder_, "gemm.toml"));
  EXPECT_EQ(suite->items[0].thresholds.floor, 0.03);
  EXPECT_EQ(suite->items[2].config, "cached");
  EXPECT_EQ(suite->items[2].thresholds.floor, 0.03);
  EXPECT_EQ(suite->items[2].thresholds.detectable, 0.1);
  EXPECT_EQ(with_tags(*suite, {"hot"}).value().items.size(), 2u);
  EXPECT_NE(with_tags(*suite, {"cold"}).status().message().find("its tags are: hot"),
            std::string::npos);
}

TEST_F(SuiteTest, ComplaintsSayWhereAndWhatToDo) {
  const std::string item = "[[items]]\nspec = \"gemm.toml\"\n";
  EXPECT_EQ(complaint(head_ + "items = []\n").substr(0, 14), "gate.toml:3:9:");
  EXPECT_NE(complaint("name = \"x\"\n" + item).find("needs 'schema'"), std::string::npos);
  EXPECT_NE(complaint("schema = \"purlin.suite/9\"\nname = \"x\"\n" + item).find("purlin.suite/1"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + "[[items]]\nspec = \"nope.toml\"\n").find("gate.toml:4:8: the spec"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + item + "confg = \"cached\"\n").find("did you mean 'config'"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + item + "config = \"fastest\"\n").find("gate.toml:5:10: config"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + item + "shape = \"a\"\nshapes = [\"b\"]\n").find("not both"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + item + item).find("twice"), std::string::npos);
  EXPECT_NE(complaint(head_ + "rounds = 1\n" + item).find("gate.toml:3:10: 'rounds' must lie"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + "[thresholds]\nfloor = 0.06\n" + item).find("half of the time"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + "[design]\nscreen_pairs = [16, 8]\n" + item).find("rising list"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + "[design]\nscreen_pairs = 8\n" + item).find("rising list"),
            std::string::npos);
  EXPECT_NE(complaint(head_ + "name = \"again\"\n" + item).find("gate.toml:3"), std::string::npos);
}

TEST_F(SuiteTest, AMissingFileIsNotFound) {
  EXPECT_EQ(load_suite(join_path(folder_, "none.toml")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace purlin::guard
