// SPDX-License-Identifier: Apache-2.0
// What files.h promises where the file system lacks something or fails.
#include "base/file_fault_calls_testing.h"
#include "base/file_faults_testing.h"
#include "base/files.h"
#include "base/json/json_lines.h"

#include <gtest/gtest.h>

#include <sys/file.h>

namespace purlin {
namespace {

using Names = std::vector<std::string>;

class FileFaultsTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = make_temporary_directory("purlin-faults").value(); }
  void TearDown() override { EXPECT_TRUE(remove_tree(folder_).is_ok()); }
  std::string path(std::string_view name) const { return join_path(folder_, name); }
  AtomicFile written(const std::string& name, std::string_view bytes) const {
    AtomicFile file = AtomicFile::create(path(name)).value();
    EXPECT_TRUE(file.append(bytes).is_ok());
    return file;
  }
  Names names() const { return list_directory(folder_).value(); }
  std::string folder_;
};

TEST_F(FileFaultsTest, ANewFileReplacesNothing) {
  for (const int link : {0, EPERM, ENOTSUP, EMLINK}) {
    FileFaults faults;
    faults.link = link;
    {
      AtomicFile first = written("f", "first"), second = written("f", "second");
      EXPECT_TRUE(first.commit_new().value()) << link;
      EXPECT_FALSE(second.commit_new().value()) << link;
      EXPECT_TRUE(faults.synced(folder_)) << link;
    }
    EXPECT_EQ(read_file(path("f")).value(), "first");
    EXPECT_EQ(names(), Names{"f"}) << "a temporary was left behind";
    ASSERT_TRUE(remove_file(path("f")).is_ok());
  }
}

TEST_F(FileFaultsTest, WhereNothingIsOfferedTheFileIsThereToCommit) {
  FileFaults faults;
  faults.link = EPERM;
  for (const int rename : {EINVAL, ENOSYS}) {
    faults.rename = rename;
    AtomicFile file = written("f", "bytes");
    EXPECT_EQ(file.commit_new().status().code(), Code::kUnavailable);
    EXPECT_FALSE(file_exists(path("f")));
    EXPECT_TRUE(file.commit().is_ok());
    EXPECT_EQ(read_file(path("f")).value(), "bytes");
    ASSERT_TRUE(remove_file(path("f")).is_ok());
  }
}

TEST_F(FileFaultsTest, AFullDiskIsNoLackOfLinks) {
  FileFaults faults;
  faults.link = ENOSPC;
  EXPECT_EQ(written("f", "bytes").commit_new().status().code(), Code::kIo);
  faults.link = EPERM;
  faults.rename = EIO;
  EXPECT_EQ(written("f", "bytes").commit_new().status().code(), Code::kIo);
  EXPECT_TRUE(names().empty());
}

// NFS: the link was made, its answer was lost, and the request that came again found it there.
TEST_F(FileFaultsTest, ALinkThatWasMadeIsNoConflict) {
  FileFaults faults;
  faults.link_forgets = true;
  EXPECT_TRUE(written("f", "bytes").commit_new().value());
  EXPECT_EQ(read_file(path("f")).value(), "bytes");
  EXPECT_EQ(names(), Names{"f"});
}

// A backup by hard links (cp -al) gave the temporary a second name; at the path is another's file.
TEST_F(FileFaultsTest, ASecondNameElsewhereIsNoLinkThatWasMade) {
  AtomicFile file = AtomicFile::create(path("f")).value();
  ASSERT_TRUE(file.append("ours").is_ok());
  const std::string temporary = list_directory(folder_).value().at(0);
  ASSERT_EQ(::linkat(AT_FDCWD, path(temporary).c_str(), AT_FDCWD, path("backup").c_str(), 0), 0);
  ASSERT_TRUE(write_atomic(path("f"), "theirs").is_ok());
  EXPECT_FALSE(file.commit_new().value());
  EXPECT_EQ(read_file(path("f")).value(), "theirs");
}

TEST_F(FileFaultsTest, AFoldersFailedSyncIsTold) {
  FileFaults faults;
  for (const int code : {EIO, ENOSPC}) {
    faults.sync_folder = code;
    EXPECT_EQ(written("f", "1").commit().code(), Code::kIo) << code;
    EXPECT_EQ(written(fmt::format("new-{}", code), "1").commit_new().status().code(), Code::kIo);
    EXPECT_EQ(make_directories_durably(path(fmt::format("d-{}", code))).code(), Code::kIo);
  }
  for (const int code : {EINVAL, ENOTSUP, EBADF, EACCES}) {
    faults.sync_folder = code;
    EXPECT_TRUE(written("f", "2").commit().is_ok()) << code;
    EXPECT_TRUE(written(fmt::format("new-{}", code), "1").commit_new().value());
    EXPECT_TRUE(make_directories_durably(path(fmt::format("d-{}", code))).is_ok());
  }
}

TEST_F(FileFaultsTest, NewFoldersAreSyncedInTheirParents) {
  ASSERT_TRUE(make_directories(path("there")).is_ok());
  FileFaults faults;
  ASSERT_TRUE(make_directories_durably(path("there/a/b/c/")).is_ok());
  EXPECT_TRUE(is_directory(path("there/a/b/c")));
  for (const char* parent : {"there", "there/a", "there/a/b"})
    EXPECT_TRUE(faults.synced(path(parent))) << parent;
  // Who made the deepest that was there may have been killed before its sync.
  EXPECT_TRUE(faults.synced(folder_));
  faults.synced_folders.clear();
  ASSERT_TRUE(make_directories_durably(path("there/a/b/c")).is_ok());
  EXPECT_TRUE(faults.synced_folders.empty());
  ASSERT_TRUE(write_atomic(path("file"), "x").is_ok());
  EXPECT_EQ(make_directories_durably(path("file/a")).code(), Code::kIo);
}

// Journals: a line that was acknowledged is there after a power cut, and no other half of a line.
TEST_F(FileFaultsTest, AJournalsLinesSurviveAPowerCut) {
  ASSERT_TRUE(make_directories(path("disk")).is_ok());
  DroppingDisk disk(path("disk"));
  int acknowledged = 0, points = 0;
  disk.at_each_point = [&] {
    const std::string to = path(fmt::format("after-{}", points++));
    disk.cut_power(to);
    const std::string journal = join_path(to, "new/folder/journal.jsonl");
    if (acknowledged == 0 && !file_exists(journal)) return;
    Result<JsonLines> lines = JsonLines::open(journal);
    ASSERT_TRUE(lines.is_ok()) << lines.status().message();
    const auto count = static_cast<int>(lines->take_lines().size());
    EXPECT_GE(count, acknowledged) << "power cut at point " << points;
    EXPECT_LE(count, acknowledged + 1) << "power cut at point " << points;
  };
  JsonLines journal = JsonLines::open(path("disk/new/folder/journal.jsonl")).value();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(journal.append(Json(i)).is_ok());
    ++acknowledged;
    disk.at_each_point();
  }
  disk.at_each_point = {};
  EXPECT_GT(points, 8);
}

TEST_F(FileFaultsTest, EachCallOfAJournalFailsInTurn) {
  for (const int code : {EIO, ENOSPC})
    for (int n = 0;; ++n) {
      ASSERT_LT(n, 500);
      const std::string file = path(fmt::format("{}-{}/journal.jsonl", code, n));
      int acknowledged = 0;
      bool finished = false;
      {
        FileFaults faults;
        faults.fail_at = n;
        faults.fail_with = code;
        Result<JsonLines> journal = JsonLines::open(file);
        for (int i = 0; i < 3 && journal.is_ok(); ++i)
          acknowledged += journal->append(Json(i)).is_ok() ? 1 : 0;
        finished = faults.calls <= n;
      }
      Result<JsonLines> again = JsonLines::open(file);
      ASSERT_TRUE(again.is_ok()) << n << again.status().message();
      EXPECT_EQ(static_cast<int>(again->take_lines().size()), acknowledged) << "call " << n;
      if (finished) break;
    }
}

// Gives up the lock of another while somebody sleeps.
struct Sleeper : FakeClock {
  void sleep_ns(std::int64_t ns) override {
    FakeClock::sleep_ns(ns);
    if (++sleeps == release_after) ::close(holder);
  }
  int sleeps = 0, release_after = -1, holder = -1;
};

TEST_F(FileFaultsTest, ALockIsWaitedForSoLong) {
  Sleeper clock;
  const std::int64_t begin = clock.now_ns;
  clock.holder = ::open(path("lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(clock.holder, LOCK_EX), 0);
  const Status held = FileLock::acquire(path("lock"), 5, clock).status();
  EXPECT_EQ(held.code(), Code::kUnavailable);
  EXPECT_NE(held.message().find("another program holds '" + path("lock") + "'"), std::string::npos);
  EXPECT_GE(clock.now_ns - begin, 5'000'000'000);
  EXPECT_LT(clock.now_ns - begin, 5'100'000'000);
  clock.release_after = clock.sleeps + 3;
  Result<FileLock> lock = FileLock::acquire(path("lock"), 5, clock);
  ASSERT_TRUE(lock.is_ok());
  EXPECT_EQ(FileLock::acquire(path("lock"), 0, clock).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace purlin
