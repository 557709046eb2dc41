// SPDX-License-Identifier: Apache-2.0
#include "blobs/directory_blobs.h"

#include "base/file_fault_calls_testing.h"
#include "base/file_faults_testing.h"
#include "base/files.h"
#include "blobs/testing.h"

#include <gtest/gtest.h>

#include <sys/file.h>
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

// Somebody holds the lock and does not let go: what is written once does not care, a swap says so.
TEST_F(DirectoryBlobs, AHeldLockStopsSwapsAlone) {
  FakeClock clock;
  const auto store = make_directory_blobs(root_ + "/share", 5, clock);
  ASSERT_TRUE(store->put_if_absent("index.json", "one").is_ok());
  const int holder = ::open((root_ + "/share/.lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  EXPECT_EQ(store->put_if_absent("segments/a", "x").value(), Put::kStored);
  EXPECT_EQ(store->put_if_absent("segments/a", "y").value(), Put::kConflict);
  EXPECT_EQ(store->get("segments/a", 10)->bytes, "x");
  const std::string tag = store->get("index.json", 10)->tag;
  const std::int64_t before = clock.now_ns;
  const Status held = store->put_if_match("index.json", "two", tag).status();
  EXPECT_EQ(held.code(), Code::kUnavailable);
  EXPECT_NE(held.message().find("/share/.lock'"), std::string::npos) << held.message();
  EXPECT_GE(clock.now_ns - before, 5'000'000'000);
  // A write without links or RENAME_NOREPLACE waits, too.
  FileFaults faults;
  faults.link = EPERM;
  faults.rename = EINVAL;
  EXPECT_EQ(store->put_if_absent("segments/b", "x").status().code(), Code::kUnavailable);
  ::close(holder);
  EXPECT_EQ(store->put_if_absent("segments/b", "x").value(), Put::kStored);
  EXPECT_EQ(store->put_if_absent("segments/b", "y").value(), Put::kConflict);
  EXPECT_EQ(store->put_if_match("index.json", "two", tag).value(), Put::kStored);
  EXPECT_EQ(store->list("segments/")->size(), 2u) << "a temporary was left behind";
}

TEST_F(DirectoryBlobs, NewFoldersAreDurableAndAConflictCostsNoWrite) {
  FileFaults faults;
  const auto store = open();
  ASSERT_TRUE(store->put_if_absent("segments/a", "x").is_ok());
  for (const char* folder : {"", "/share", "/share/segments"})
    EXPECT_TRUE(faults.synced(root_ + folder)) << folder;
  const int writes = faults.writes;
  EXPECT_EQ(store->put_if_absent("segments/a", "x").value(), Put::kConflict);
  EXPECT_EQ(faults.writes, writes);
}

// A writer that learns that an object is there goes on as if it had stored the object.
TEST_F(DirectoryBlobs, AConflictIsDurable) {
  const auto store = open();
  ASSERT_TRUE(store->put_if_absent("segments/a", "x").is_ok());
  FileFaults faults;
  EXPECT_EQ(store->put_if_absent("segments/a", "x").value(), Put::kConflict);
  EXPECT_TRUE(faults.synced(root_ + "/share/segments"));
}

TEST_F(DirectoryBlobs, WhatCannotBeReadIsNotAbsent) {
  const auto store = open();
  ASSERT_TRUE(store->put_if_absent("a", "x").is_ok());
  ASSERT_EQ(::symlink("index.json", (root_ + "/share/index.json").c_str()), 0);  // of itself
  EXPECT_EQ(store->get("index.json", 10).status().code(), Code::kIo);
  EXPECT_EQ(store->put_if_absent("index.json", "x").status().code(), Code::kIo);
  EXPECT_EQ(store->put_if_match("index.json", "x", "tag").status().code(), Code::kIo);
  EXPECT_EQ(store->get("b", 10).status().code(), Code::kNotFound);
  EXPECT_EQ(store->get("a/b", 10).status().code(), Code::kNotFound);
}

// While a write waits for the lock, another stores the object.
struct Rival : FakeClock {
  void sleep_ns(std::int64_t ns) override {
    FakeClock::sleep_ns(ns);
    if (holder < 0) return;
    EXPECT_TRUE(write_atomic(path, "theirs").is_ok());
    ::close(std::exchange(holder, -1));
  }
  std::string path;
  int holder = -1;
};

TEST_F(DirectoryBlobs, WithoutLinksTheLockDecides) {
  Rival rival;
  const auto store = make_directory_blobs(root_ + "/share", 5, rival);
  ASSERT_TRUE(store->put_if_absent("segments/a", "x").is_ok());
  rival.path = root_ + "/share/segments/b";
  rival.holder = ::open((root_ + "/share/.lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(rival.holder, LOCK_EX), 0);
  FileFaults faults;
  faults.link = ENOTSUP;
  faults.rename = ENOSYS;
  EXPECT_EQ(store->put_if_absent("segments/b", "ours").value(), Put::kConflict);
  EXPECT_EQ(store->get("segments/b", 10)->bytes, "theirs");
}

// Of many writers of one object at once, one gets kStored, and its bytes are there.
TEST_F(DirectoryBlobs, OneOfManyWritersWins) {
  for (int round = 0; round < 10; ++round) {
    const std::string key = "segments/" + std::to_string(round);
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child) {
      const pid_t pid = ::fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) {
        const Result<Put> put = open()->put_if_absent(key, std::to_string(child));
        ::_exit(!put.is_ok() ? 2 : *put == Put::kStored ? 1 : 0);
      }
      children.push_back(pid);
    }
    std::string winners;
    for (int child = 0; child < 4; ++child) {
      int status = 0;
      ::waitpid(children[static_cast<std::size_t>(child)], &status, 0);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2);
      if (WEXITSTATUS(status) == 1) winners += std::to_string(child);
    }
    EXPECT_EQ(winners, open()->get(key, 10)->bytes);
  }
}

TEST(OpenBlobs, NamesWhatItDoesNotSupport) {
  EXPECT_EQ(open_blobs("").status().code(), Code::kInvalid);
  const Status ftp = open_blobs("ftp://host/x").status();
  EXPECT_EQ(ftp.code(), Code::kInvalid);
  EXPECT_NE(ftp.message().find("'ftp://' is not supported"), std::string::npos);
}

}  // namespace
}  // namespace purlin::blobs
