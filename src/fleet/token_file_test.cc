// SPDX-License-Identifier: Apache-2.0
#include "fleet/token_file.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

namespace purlin::fleet {
namespace {

class TokenFileTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-token-file").value();
    path_ = join_path(root_, "tokens");
    write("read 0123456789abcdef ann\n");
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void write(const std::string& text) const {
    ASSERT_TRUE(write_atomic(path_, text).is_ok());
    ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  }
  struct stat info() const {
    struct stat seen {};
    EXPECT_EQ(::stat(path_.c_str(), &seen), 0);
    return seen;
  }
  std::string root_, path_;
};

TEST_F(TokenFileTest, IsReadAgainWhenItChanges) {
  TokenFile file(path_);
  EXPECT_FALSE(file.look());
  write("read 0123456789abcdef ann\nread fedcba9876543210 bob\n");
  std::optional<Result<Tokens>> both = file.look();
  ASSERT_TRUE(both && both->is_ok());
  EXPECT_EQ((*both)->find("Bearer fedcba9876543210").name, "bob");
  EXPECT_FALSE(file.look());
  EXPECT_FALSE(TokenFile("").look());
}

// After a chown, for example, only the ctime differs.
TEST_F(TokenFileTest, IsReadAgainWhenNothingButItsCtimeChanged) {
  TokenFile file(path_);
  const struct stat before = info();
  const std::array<timespec, 2> times = {before.st_atim, before.st_mtim};
  do {  // until the file system's clock, which has steps, shows it
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times.data(), 0), 0);
  } while (info().st_ctim.tv_sec == before.st_ctim.tv_sec &&
           info().st_ctim.tv_nsec == before.st_ctim.tv_nsec);
  EXPECT_EQ(info().st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  EXPECT_TRUE(file.look());
  EXPECT_FALSE(file.look());
}

TEST_F(TokenFileTest, WhatCannotBeReadIsSaidOnceAndTriedAgain) {
  Status fault;
  TokenFile file(path_, [&fault](const std::string& path) -> Result<Tokens> {
    if (!fault.is_ok()) return fault;
    return Tokens::load(path);
  });
  write("read fedcba9876543210 bob\n");
  fault = error(Code::kIo, "the disk hangs");
  std::optional<Result<Tokens>> none = file.look();
  ASSERT_TRUE(none);
  EXPECT_EQ(none->status().message(), "the disk hangs");
  EXPECT_FALSE(file.look()) << "said already";
  fault = error(Code::kIo, "the disk is gone");
  ASSERT_TRUE(file.look()) << "another thing";
  fault = Status::ok();
  std::optional<Result<Tokens>> again = file.look();
  ASSERT_TRUE(again && again->is_ok()) << "though it looks as it did";
  EXPECT_EQ((*again)->find("Bearer fedcba9876543210").name, "bob");
  fault = error(Code::kIo, "the disk is gone");
  EXPECT_FALSE(file.look());
  write("read fedcba9876543210 ann\n");
  EXPECT_TRUE(file.look()) << "it was well in between";
}

}  // namespace
}  // namespace purlin::fleet
