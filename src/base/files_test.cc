// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include "base/appended_file.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace purlin {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override { folder_ = make_temporary_directory("purlin-files").value(); }
  void TearDown() override { EXPECT_TRUE(remove_tree(folder_).is_ok()); }
  std::string path(std::string_view name) const { return join_path(folder_, name); }
  std::string folder_;
};

TEST_F(Files, AtomicWriteReplacesAndLeavesNothingBehind) {
  ASSERT_TRUE(write_atomic(path("f"), "old").is_ok());
  ASSERT_TRUE(write_atomic(path("f"), std::string(3'000'000, 'n')).is_ok());
  EXPECT_EQ(read_file(path("f"))->size(), 3'000'000u);
  EXPECT_EQ(file_size(path("f")).value(), 3'000'000u);
  EXPECT_EQ(list_directory(folder_).value(), (std::vector<std::string>{"f"}));
}

TEST_F(Files, AtomicWritePassesByWhatAKilledProcessLeft) {
  // The names of the next serials are taken.
  ASSERT_TRUE(write_atomic(path("f"), "1").is_ok());
  for (int serial = 0; serial < 50; ++serial) {
    const std::string left = path(fmt::format("f.tmp.{}.{}", ::getpid(), serial));
    ASSERT_TRUE(write_atomic(left, "left").is_ok());
  }
  EXPECT_TRUE(write_atomic(path("f"), "2").is_ok());
  EXPECT_EQ(read_file(path("f")).value(), "2");
}

TEST_F(Files, ALinkIsFollowedAndAPipeIsWrittenTo) {
  const std::string file = path("real"), link = path("link");
  ASSERT_TRUE(write_atomic(file, "old").is_ok());
  ASSERT_EQ(::symlink("real", link.c_str()), 0);
  ASSERT_TRUE(write_atomic(link, "new").is_ok());
  EXPECT_EQ(read_file(file).value(), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));

  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(write_atomic(pipe, "data").is_ok());
  char got[8];
  EXPECT_EQ(::read(reader, got, sizeof got), 4);
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe)) << "a plain file took its place";
}

TEST_F(Files, OthersMayWriteWhereTheUmaskLetsThem) {
  const mode_t before = ::umask(0002);
  const std::string file = path("shared");
  EXPECT_TRUE(write_atomic(file, "x").is_ok());
  { const auto lock = FileLock::acquire(file + ".lock"); }
  ::umask(before);
  for (const std::string& name : {file, file + ".lock"}) {
    struct stat info {};
    ASSERT_EQ(::stat(name.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0664u) << name;
  }
}

TEST_F(Files, FailedWritesSayWhyAndKeepTheOldContents) {
  EXPECT_EQ(write_atomic(path("absent/f"), "x").code(), Code::kNotFound);
  ASSERT_TRUE(make_directories(path("a/b")).is_ok());
  const Status status = write_atomic(path("a"), "x");  // a folder cannot be replaced
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find(path("a")), std::string::npos);
  EXPECT_EQ(list_directory(folder_).value(), (std::vector<std::string>{"a"}));
}

TEST_F(Files, ReadsAreBoundedAndNameThePath) {
  ASSERT_TRUE(write_atomic(path("f"), "12345").is_ok());
  EXPECT_EQ(read_file(path("f"), 5).value(), "12345");
  EXPECT_EQ(read_file(path("f"), 4).status().code(), Code::kInvalid);
  EXPECT_EQ(read_file(path("absent")).status().code(), Code::kNotFound);
  EXPECT_EQ(read_file(folder_).status().code(), Code::kIo);
  EXPECT_TRUE(remove_file(path("absent")).is_ok());
}

TEST_F(Files, Paths) {
  EXPECT_EQ(join_path("/a/b", "../c"), "/a/c");
  EXPECT_EQ(join_path("/a", "/b"), "/b");
  EXPECT_EQ(parent_path("x"), ".");
  EXPECT_EQ(parent_path("/a/b.c"), "/a");
  EXPECT_EQ(base_name("/a/b.c"), "b.c");
}

TEST_F(Files, ALockKeepsOthersOut) {
  const auto free = [&] {
    const int fd = ::open(path("lock").c_str(), O_RDWR);
    const bool got = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
    ::close(fd);
    return got;
  };
  {
    FileLock lock = FileLock::acquire(path("lock")).value();
    EXPECT_FALSE(free());
    FileLock moved = std::move(lock);
    EXPECT_FALSE(free());
  }
  EXPECT_TRUE(free());
}

TEST_F(Files, ALockMayBeAnotherUsers) {
  ASSERT_TRUE(write_atomic(path("lock"), "").is_ok());
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path("lock").c_str(), 0444), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    const auto lock = FileLock::acquire(path("lock"), 1);
    const int other = ::open(path("lock").c_str(), O_RDONLY);
    ::_exit(lock.is_ok() && other >= 0 && ::flock(other, LOCK_EX | LOCK_NB) != 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A folder under /tmp may have been made by somebody else, to be used by this user.
TEST(SharedFolders, AreUsedOnlyWhereTheyArePrivate) {
  const std::string folder = make_temporary_directory("purlin-private").value();
  const std::string before = environment_variable("TMPDIR");
  ::setenv("TMPDIR", folder.c_str(), 1);
  const std::string path = private_temporary_directory();
  EXPECT_EQ(path, join_path(folder, fmt::format("purlin-{}", ::geteuid())));
  EXPECT_TRUE(is_private_directory(path));
  EXPECT_EQ(private_temporary_directory(), path) << "and again";

  const auto refused = [&](const char* how) {
    const std::string instead = private_temporary_directory();
    EXPECT_NE(instead, path) << how;
    EXPECT_FALSE(make_directories(instead).is_ok()) << how;
  };
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  refused("open to all");
  ASSERT_EQ(::rmdir(path.c_str()), 0);
  ASSERT_TRUE(make_directories(join_path(folder, "elsewhere")).is_ok());
  ASSERT_EQ(::symlink("elsewhere", path.c_str()), 0);
  refused("a link");
  EXPECT_FALSE(make_private_directory(path).is_ok());
  ASSERT_EQ(::unlink(path.c_str()), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    refused("another user's");
    EXPECT_FALSE(is_own_directory(path));
    EXPECT_FALSE(make_private_directory(path).is_ok());
  }
  before.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
  ASSERT_TRUE(remove_tree(folder).is_ok());
}

TEST(SharedFolders, ALinkToNothingMakesNoFile) {
  const std::string folder = make_temporary_directory("purlin-links").value();
  const std::string link = join_path(folder, "link"), aim = join_path(folder, "aim");
  ASSERT_EQ(::symlink(aim.c_str(), link.c_str()), 0);
  EXPECT_FALSE(FileLock::acquire(link).is_ok());
  EXPECT_FALSE(AppendedFile::open(link).is_ok());
  EXPECT_FALSE(file_exists(aim));
  ASSERT_TRUE(write_atomic(aim, "x").is_ok());
  EXPECT_TRUE(AppendedFile::open(link).is_ok()) << "a link to a file is the user's to make";
  ASSERT_TRUE(remove_tree(folder).is_ok());
}

// None of these may keep the reader waiting, or fill its memory.
TEST(OpenToRead, TakesRegularFilesAndPipesOfAShell) {
  const std::string folder = make_temporary_directory("purlin-fifo").value();
  const std::string fifo = join_path(folder, "fifo"), link = join_path(folder, "link");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(::symlink("fifo", link.c_str()), 0);
  for (const std::string& path : {fifo, link, std::string("/dev/zero"), folder}) {
    const Status status = read_file(path, 1 << 20).status();
    EXPECT_EQ(status.code(), Code::kIo) << path;
    EXPECT_NE(status.message().find("name a regular file"), std::string::npos) << status.message();
  }
  EXPECT_EQ(read_file("/dev/null").value(), "");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::usleep(20'000);  // the reader finds it empty first
    ::_exit(::write(ends[1], "text", 4) == 4 ? 0 : 1);
  }
  ::close(ends[1]);
  EXPECT_EQ(read_file(fmt::format("/dev/fd/{}", ends[0])).value(), "text");
  ::close(ends[0]);
  ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
  ASSERT_TRUE(remove_tree(folder).is_ok());
}

}  // namespace
}  // namespace purlin
