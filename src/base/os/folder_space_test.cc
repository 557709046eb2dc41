// SPDX-License-Identifier: Apache-2.0
#include "base/os/folder_space.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(FolderSpaceTest, WhatAFolderLacksIsNamed) {
  const std::string folder = make_temporary_directory("purlin-space").value();
  EXPECT_EQ(examine_folder(folder).problem, "");
  EXPECT_GT(examine_folder(folder).free_bytes, 0u);
  EXPECT_EQ(examine_folder(folder + "/later").problem, "it does not exist");
  EXPECT_EQ(examine_folder("/dev/null").problem, "it is no folder");
  EXPECT_EQ(examine_future_folder(folder + "/a/b").problem, "");
  EXPECT_EQ(examine_future_folder("/dev/null/a").problem, "/dev/null: it is no folder");
  (void)remove_tree(folder);
}

}  // namespace
}  // namespace purlin
