// SPDX-License-Identifier: Apache-2.0
#include "blobs/directory_blobs.h"

#include "base/files.h"
#include "blobs/testing.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace purlin::blobs {
namespace {

class DirectoryBlobs : public testing::Test {
 protected:
  void SetUp() override { root_ = make_temporary_directory("purlin-blobs").value(); }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  std::unique_ptr<BlobStore> open() { return make_directory_blobs(root_ + "/share"); }
  std::string root_;
};

TEST_F(DirectoryBlobs, WritesOnceAndSwapsOnTheTag) {
  const auto store = open();
  EXPECT_EQ(store->get("index.json", 100).status().code(), Code::kNotFound);
  EXPECT_EQ(store->put_if_absent("index.json", "one").value(), Put::kStored);
  EXPECT_EQ(store->put_if_absent("index.json", "two").value(), Put::kConflict);
  const Blob one = store->get("index.json", 100).value();
  EXPECT_EQ(one.bytes, "one");
  EXPECT_EQ(store->put_if_match("index.json", "two", one.tag).value(), Put::kStored);
  EXPECT_EQ(store->put_if_match("index.json", "three", one.tag).value(), Put::kConflict);
  EXPECT_EQ(store->put_if_match("other.json", "three", one.tag).value(), Put::kConflict);
  EXPECT_EQ(store->get("index.json", 100)->bytes, "two");
  EXPECT_FALSE(store->get("index.json", 2).is_ok()) << "larger than was asked for";
}

TEST_F(DirectoryBlobs, ListsAndRemoves) {
  const auto store = open();
  EXPECT_TRUE(store->list("segments/")->empty());
  ASSERT_TRUE(store->put_if_absent("segments/b", "22").is_ok());
  ASSERT_TRUE(store->put_if_absent("segments/a", "1").is_ok());
  ASSERT_TRUE(store->put_if_absent("segments/deep/c", "1").is_ok());
  const auto listed = store->list("segments/").value();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].key, "segments/a");
  EXPECT_EQ(listed[1].size, 2u);
  EXPECT_GT(listed[1].modified_ns, 0);
  EXPECT_TRUE(store->remove("segments/a").is_ok());
  EXPECT_TRUE(store->remove("segments/a").is_ok());
  EXPECT_EQ(store->list("segments/")->size(), 1u);
}

TEST_F(DirectoryBlobs, KeysStayInside) {
  const auto store = open();
  for (const char* key : {"", "/etc/passwd", "../up", "a//b", "a/../b", "a b", "a\\b", "a/"}) {
    EXPECT_EQ(store->put_if_absent(key, "x").status().code(), Code::kInvalid) << key;
    EXPECT_EQ(store->get(key, 10).status().code(), Code::kInvalid) << key;
    EXPECT_EQ(store->remove(key).code(), Code::kInvalid) << key;
  }
}

// Two processes count to 25 each in one object; every step is a compare-and-swap.
TEST_F(DirectoryBlobs, NoUpdateIsLostBetweenProcesses) {
  ASSERT_TRUE(open()->put_if_absent("count", "0").is_ok());
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto store = open();
      for (int done = 0; done < 25;) {
        const Result<Blob> blob = store->get("count", 100);
        if (!blob.is_ok()) ::_exit(1);
        const Result<Put> put =
            store->put_if_match("count", std::to_string(std::stoi(blob->bytes) + 1), blob->tag);
        if (!put.is_ok()) ::_exit(2);
        if (*put == Put::kStored) ++done;
      }
      ::_exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(open()->get("count", 100)->bytes, "50");
}

TEST(OpenBlobs, NamesWhatItDoesNotSupport) {
  EXPECT_EQ(open_blobs("").status().code(), Code::kInvalid);
  const Status ftp = open_blobs("ftp://host/x").status();
  EXPECT_EQ(ftp.code(), Code::kInvalid);
  EXPECT_NE(ftp.message().find("'ftp://' is not supported"), std::string::npos);
}

}  // namespace
}  // namespace purlin::blobs
