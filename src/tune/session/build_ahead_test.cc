// SPDX-License-Identifier: Apache-2.0
#include "tune/session/build_ahead.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace purlin::tune {
namespace {

Config config_of(int number) {
  Config config;
  config.set("n", std::int64_t{number});
  return config;
}

// Builds in the test's hands: each ends once its number is released.
class Builds {
 public:
  BuildAhead::Start start() {
    return [this](const std::atomic<bool>& stop) -> BuildAhead::Build {
      return [this, &stop](const Config& config) -> Result<Evaluation> {
        std::unique_lock lock(mutex_);
        begun_.insert(config.text());
        changed_.notify_all();
        while (!released_.contains(config.text()) && !stop)
          changed_.wait_for(lock, std::chrono::milliseconds(1));
        return Evaluation{};
      };
    };
  }
  void release(int number) {
    const std::lock_guard lock(mutex_);
    released_.insert(config_of(number).text());
    changed_.notify_all();
  }
  void wait_until_begun(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= count; });
  }
  std::size_t begun() {
    const std::lock_guard lock(mutex_);
    return begun_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> begun_, released_;
};

void wait_until_built(BuildAhead& ahead, int number) {
  const Config config = config_of(number);
  while (!ahead.first_built({&config})) std::this_thread::yield();
}

// Measures 1 and 2, which are built, while 3 and 4 are not.
class Measured : public testing::Test {
 protected:
  void build_two_of_four(BuildAhead& ahead) {
    for (int number = 1; number <= 4; ++number) ahead.announce(config_of(number));
    builds_.wait_until_begun(2);
    for (const int number : {1, 2}) builds_.release(number), wait_until_built(ahead, number);
  }
  static void measure(BuildAhead& ahead, int number) {
    EXPECT_TRUE(ahead.collect(config_of(number), [] { return false; }).is_ok());
    int looks = 0;
    ahead.begin_measuring([&] { return ++looks > 20; });
    EXPECT_LE(looks, 20) << "waits for a build that does not end";
    ahead.end_measuring();
  }
  Builds builds_;
};

TEST_F(Measured, OneAfterTheOtherWithNoBuildBetweenThem) {
  BuildAhead ahead(builds_.start(), 2, true);
  build_two_of_four(ahead);
  measure(ahead, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // in which a build would begin
  measure(ahead, 2);
  builds_.wait_until_begun(4);
}

// What is wanted next is built, though others are built and wait.
TEST_F(Measured, InAnyOrder) {
  BuildAhead ahead(builds_.start(), 2, true);
  build_two_of_four(ahead);
  for (const int number : {3, 4}) builds_.release(number);
  for (const int number : {4, 3, 2, 1}) measure(ahead, number);
  EXPECT_EQ(builds_.begun(), 4u);
}

TEST_F(Measured, BesideBuildsWhereTheseDisturbNothing) {
  BuildAhead ahead(builds_.start(), 2, false);
  build_two_of_four(ahead);
  builds_.wait_until_begun(4);
  for (const int number : {1, 2}) measure(ahead, number);
}

}  // namespace
}  // namespace purlin::tune
