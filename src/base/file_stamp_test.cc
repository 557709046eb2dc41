// SPDX-License-Identifier: Apache-2.0
#include "base/file_stamp.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(FileStampTest, ChangesWithTheContents) {
  const std::string folder = *make_temporary_directory("stamp");
  const std::string path = join_path(folder, "a");
  EXPECT_EQ(file_stamp(path), FileStamp{});
  ASSERT_TRUE(write_atomic(path, "one").is_ok());
  const FileStamp before = file_stamp(path);
  EXPECT_NE(before, FileStamp{});
  EXPECT_EQ(file_stamp(path), before);
  ASSERT_TRUE(write_atomic(path, "longer").is_ok());
  EXPECT_NE(file_stamp(path), before);
  static_cast<void>(remove_tree(folder));
}

}  // namespace
}  // namespace purlin
