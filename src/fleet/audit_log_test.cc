// SPDX-License-Identifier: Apache-2.0
#include "fleet/audit_log.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

class AuditLogTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-audit").value();
    path_ = join_path(root_, "audit.log");
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  std::string root_, path_;
};

TEST_F(AuditLogTest, HasALineForEachWriteWithNamesEscaped) {
  auto log = AuditLog::open(path_).value();
  ASSERT_TRUE(
      log->write({1'000'000'000, "ci\n", "10.0.0.7", "put_object", "PUT", "/a\x1b[2J", 201, 7})
          .is_ok());
  const std::string text = read_file(path_).value();
  EXPECT_EQ(split(text, '\n').size(), 2U) << text;
  const Json line = Json::parse(text).value();
  EXPECT_EQ(line["token"].as_string(), "ci\n");
  EXPECT_EQ(line["time"].as_string(), "1970-01-01T00:00:01.000000000Z");
  EXPECT_EQ(line["status"].as_int(), 201);
}

TEST_F(AuditLogTest, IsRotatedBySizeAndKeepsFourOlderFiles) {
  auto log = AuditLog::open(path_, 300).value();
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(log->write({i, "t", "p", "k", "PUT", "/x", 200, 0}).is_ok());
  EXPECT_EQ(list_directory(root_).value(),
            (std::vector<std::string>{"audit.log", "audit.log.1", "audit.log.2", "audit.log.3",
                                      "audit.log.4"}));
  EXPECT_LE(file_size(path_).value(), 300U);
}

TEST_F(AuditLogTest, APieceOfALineIsCutOff) {
  {
    ASSERT_TRUE(
        AuditLog::open(path_).value()->write({1, "a", "p", "k", "PUT", "/x", 200, 0}).is_ok());
  }
  const std::string whole = read_file(path_).value();
  ASSERT_TRUE(write_atomic(path_, whole + "{\"time\": \"19").is_ok());
  ASSERT_TRUE(
      AuditLog::open(path_).value()->write({2, "b", "p", "k", "PUT", "/x", 200, 0}).is_ok());
  const auto lines = split(read_file(path_).value(), '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(Json::parse(lines[1]).value()["token"].as_string(), "b");
}

}  // namespace
}  // namespace purlin::fleet
