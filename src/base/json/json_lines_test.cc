// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_lines.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

class JsonLinesTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = make_temporary_directory("json-lines").value(); }
  void TearDown() override { (void)remove_tree(folder_); }
  std::string path() const { return join_path(folder_, "sub/a.jsonl"); }
  std::string folder_;
};

TEST_F(JsonLinesTest, KeepsLinesAndCutsATornOne) {
  {
    JsonLines file = JsonLines::open(path()).value();
    ASSERT_TRUE(file.append(Json::object({{"n", 1}})).is_ok());
    ASSERT_TRUE(file.append(Json("two\nlines")).is_ok());
  }
  const std::string whole = read_file(path()).value();
  ASSERT_TRUE(
      write_atomic(path(), whole + "{\"n\": 3").is_ok());  // a kill in the middle of a write
  JsonLines file = JsonLines::open(path()).value();
  const std::vector<Json> lines = file.take_lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["n"].as_int(), 1);
  EXPECT_EQ(lines[1].as_string(), "two\nlines");
  EXPECT_EQ(read_file(path()).value(), whole);
  ASSERT_TRUE(file.append(Json(4)).is_ok());
  EXPECT_EQ(read_file(path()).value(), whole + "4\n");
  ASSERT_TRUE(file.clear().is_ok());
  EXPECT_EQ(read_file(path()).value(), "");
}

TEST_F(JsonLinesTest, HasOneHolderAndNamesADamagedLine) {
  {
    const JsonLines file = JsonLines::open(path()).value();
    EXPECT_EQ(JsonLines::open(path()).status().code(), Code::kUnavailable);
  }
  ASSERT_TRUE(write_atomic(path(), "1\n}{\n3\n").is_ok());
  const Status status = JsonLines::open(path()).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("line 2"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace purlin
