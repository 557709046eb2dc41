// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/schema.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin::store {
namespace {

class Schema : public testing::Test {
 protected:
  void SetUp() override { root_ = make_temporary_directory("purlin-schema").value(); }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  Database open() { return Database::open(root_ + "/a.sqlite", Database::Mode::kWrite).value(); }
  std::string root_;
};

TEST_F(Schema, TakesTheStepsThatAreMissing) {
  Database database = open();
  const SchemaSteps first = {"CREATE TABLE a(x)"};
  ASSERT_TRUE(require_schema(database, first).is_ok());
  ASSERT_TRUE(database.execute("INSERT INTO a VALUES(5)").is_ok());
  const SchemaSteps second = {first[0], "ALTER TABLE a ADD COLUMN y DEFAULT 7"};
  const Status old = require_schema(database, second);
  EXPECT_EQ(old.code(), Code::kInvalid);
  EXPECT_NE(old.message().find("purlin store migrate"), std::string::npos);
  EXPECT_EQ(take_steps(database, second).value(), 1);
  EXPECT_EQ(take_steps(database, second).value(), 0);
  EXPECT_EQ(database.integer("SELECT x + y FROM a").value(), 12);
  EXPECT_EQ(require_schema(database, first).code(), Code::kCorrupt) << "a newer one";
}

TEST_F(Schema, AStepIsTakenWholeOrNotAtAll) {
  Database database = open();
  const SchemaSteps wrong = {"CREATE TABLE a(x)", "CREATE TABLE b(x); CREATE TABLE a(x)"};
  EXPECT_FALSE(take_steps(database, wrong).is_ok());
  EXPECT_EQ(schema_version(database).value(), 1);
  EXPECT_EQ(database.integer("SELECT count(*) FROM sqlite_master").value(), 1);
}

}  // namespace
}  // namespace purlin::store
