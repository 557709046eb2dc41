// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include "base/files.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace purlin::runtime {
namespace {

using cache::TemporaryDirectory;

// Runs `inside` with the session's lock held.
class Held final : public CacheSession::Member {
 public:
  explicit Held(std::function<void()> inside) : inside_(std::move(inside)) {}
  void update(const cache::Layers&) override {}
  void collect(std::vector<backlog::WorkRow>&) override {
    if (inside_) std::exchange(inside_, nullptr)();
  }

 private:
  std::function<void()> inside_;
};

// A child forked while another thread held the lock has no thread that releases it.
TEST(CacheSession, AForkedChildDoesNotWaitForItsParentsThreads) {
  TemporaryDirectory folder;
  const auto session = *CacheSession::open(folder.path().c_str());
  int status = -1;
  Held member([&] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // kills it where it hangs
      ::_exit(session->flush().is_ok() ? 0 : 1);
    }
    ::waitpid(child, &status, 0);
  });
  session->attach(member);
  EXPECT_TRUE(session->flush().is_ok());
  session->detach(member);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// A log that cannot be written must not end the program: it is written to from noexcept lookups.
TEST(RuntimeLog, AFullLogIsNoException) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC), before = ::dup(2);
  ASSERT_GE(full, 0);
  Settings settings;
  settings.log_level = Level::kInfo;
  RuntimeLog log(settings);
  ASSERT_GE(::dup2(full, 2), 0);
  bool threw = false;
  try {
    log.info("{}", "a line");
  } catch (...) {
    threw = true;
  }
  ::dup2(before, 2);
  ::close(before);
  ::close(full);
  EXPECT_FALSE(threw);
}

TEST(CacheSession, KeepsItsCacheWhenTheProgramChangesItsDirectory) {
  TemporaryDirectory folder;
  ASSERT_TRUE(cache::Store::open(folder.file("mine"))->put(cache::sample_entry()).is_ok());
  const std::string before = absolute_path(".");
  ASSERT_EQ(::chdir(folder.path().c_str()), 0);
  const auto session = CacheSession::open("mine");
  ASSERT_EQ(::chdir(before.c_str()), 0);
  ASSERT_TRUE(session.is_ok());
  EXPECT_EQ((*session)->directory(), folder.file("mine"));
}

}  // namespace
}  // namespace purlin::runtime
