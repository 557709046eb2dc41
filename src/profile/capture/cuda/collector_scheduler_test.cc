// SPDX-License-Identifier: Apache-2.0
// The scheduler with a tier that opens when the test says so, and CUPTI's functions that the
// folding and the ownership need.
#include "profile/capture/cuda/collector_scheduler.h"

#include "base/json/json.h"
#include "profile/capture/cuda/activity/records_for_test.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

int dumped = 0, disabled = 0;  // of the kind that reports contexts

// And those that the ownership needs.
Cupti functions() {
  Cupti cupti = record_functions();
  cupti.register_callbacks = [](CUpti_BuffersCallbackRequestFunc,
                                CUpti_BuffersCallbackCompleteFunc) { return CUPTI_SUCCESS; };
  cupti.enable_and_dump = [](CUpti_ActivityKind kind) {
    dumped += kind == CUPTI_ACTIVITY_KIND_CONTEXT ? 1 : 0;
    return CUPTI_SUCCESS;
  };
  cupti.flush_all = [](std::uint32_t) { return CUPTI_SUCCESS; };
  cupti.disable = [](CUpti_ActivityKind kind) {
    disabled += kind == CUPTI_ACTIVITY_KIND_CONTEXT ? 1 : 0;
    return CUPTI_SUCCESS;
  };
  return cupti;
}

struct Script {
  Tier::Opened answer = Tier::Opened::kYes;
  int opened = 0, refused = 0, closed = 0;
  std::int64_t cost_ns = 0;
  std::int64_t closing_ns = 0;  // how long that takes
  bool stays = false;           // a kind stays on after the window, until it leaves
  std::vector<std::int64_t> flushes, switches;
};

class ScriptedTier : public Tier {
 public:
  explicit ScriptedTier(Script& script) : script_(script) {}
  const char* name() const override { return "activity"; }
  Opened open(const Window&) override {
    ++(script_.answer == Opened::kYes ? script_.opened : script_.refused);
    script_.switches.push_back(monotonic_ns());
    return script_.answer;
  }
  void close() override {
    ++script_.closed;
    const std::int64_t began = monotonic_ns();
    while (monotonic_ns() < began + script_.closing_ns) {
    }
    script_.switches.push_back(monotonic_ns());
  }
  void leave() override {
    close();
    script_.stays = false;
  }
  bool stays() const override { return script_.stays; }
  void collect(bool) override { script_.flushes.push_back(monotonic_ns()); }
  std::int64_t take_cost_ns() override { return std::exchange(script_.cost_ns, 0); }

 private:
  Script& script_;
};

// A tier next to which launches cannot be opened, such as sampled stalls.
class PinningTier : public Tier {
 public:
  const char* name() const override { return "stalls"; }
  Requirements requirements() const override {
    Requirements result;
    result.pins_launches = true;
    return result;
  }
  Opened open(const Window&) override { return Opened::kNever; }
  void close() override {}
  void collect(bool) override {}
  std::int64_t take_cost_ns() override { return 0; }
};

class CollectorSchedulerTest : public testing::Test {
 protected:
  static ControllerOptions controller_options() {
    ControllerOptions result;
    result.full_window_ns = 2'000'000;
    result.full_cell_ns = 10'000'000;
    return result;
  }
  std::vector<std::unique_ptr<Tier>> tiers() {
    std::vector<std::unique_ptr<Tier>> result;
    result.push_back(std::make_unique<ScriptedTier>(script_));
    return result;
  }
  static ControllerOptions idle_options() {
    ControllerOptions result;
    result.idle = true;
    return result;
  }
  // As of a program that was started with neither --idle nor --windows.
  static ControllerOptions plain_options() {
    ControllerOptions result;
    result.windows = false;
    return result;
  }
  static constexpr std::int64_t kHourNs = 3'600'000'000'000;
  static constexpr std::int64_t kAskedNs = 5'000'000;
  // One of those options, which can be asked what `purlin capture` asks.
  struct Capture {
    Capture(CollectorSchedulerTest& test, const ControllerOptions& options)
        : scheduler(options, test.tiers(), test.aggregator_, test.recorder_),
          ownership(test.rig_.cupti, test.recorder_, test.aggregator_, scheduler) {
      dumped = disabled = 0;
      EXPECT_TRUE(begin_owning(ownership, options.idle));
      scheduler.begin();
      scheduler.tick(ownership);
    }
    Json ask(ControlRequest::Verb verb, std::int64_t length_ns = kAskedNs) {
      const Result<Json> answer = Json::parse(scheduler.control(ownership, {verb, length_ns}));
      EXPECT_TRUE(answer.is_ok()) << answer.status().message();
      return answer.is_ok() ? *answer : Json();
    }
    CollectorScheduler scheduler;
    Ownership ownership;
  };
  // Those of the profile so far, by cause. To be asked once.
  std::map<std::string, CoverageNote> notes() {
    std::map<std::string, CoverageNote> result;
    const Result<Profile> profile = rig_.profile();
    EXPECT_TRUE(profile.is_ok()) << profile.status().message();
    if (profile.is_ok())
      for (const CoverageNote& note : profile->coverage.notes) result[note.cause] = note;
    return result;
  }
  static bool begin_owning(Ownership& ownership, bool later) {
    return ownership.begin([](std::uint8_t**, std::size_t*, std::size_t*) {},
                           [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {},
                           later);
  }
  // As CUPTI does when the program makes its context.
  void make_context() { make_context(ownership_); }
  static void make_context(Ownership& ownership) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, most = 0;
    ownership.buffer_requested(&buffer, &size, &most);
    ownership.buffer_completed(nullptr, 0, buffer, size, 0);
  }
  void begin_without_context() {
    dumped = disabled = 0;
    ASSERT_TRUE(begin_owning(ownership_, false));
    scheduler_.begin();
    scheduler_.tick(ownership_);
  }
  void begin() {
    begin_without_context();
    make_context();
    scheduler_.tick(ownership_);
    ASSERT_EQ(script_.opened, 1);
  }
  template <class Condition>
  void tick_until(Condition condition) {
    while (!condition()) {
      scheduler_.tick(ownership_);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  // Of a graph's node, with that duration.
  void deliver(std::int64_t start_ns, std::int64_t duration_ns) {
    rig_.deliver({kernel_record("node", start_ns, duration_ns, 1)});
  }
  double longest_ns() {
    const Result<Profile> profile = rig_.profile();
    EXPECT_TRUE(profile.is_ok()) << profile.status().message();
    double longest = 0;
    if (profile.is_ok())
      for (const KernelRow& row : profile->kernels)
        longest = std::max(longest, row.duration.quantile(1));
    return longest;
  }

  Script script_;
  AggregatorRig rig_{false, functions()};
  ActivityAggregator& aggregator_ = rig_.aggregator;
  Recorder& recorder_ = rig_.session.recorder();
  CollectorScheduler scheduler_{controller_options(), tiers(), aggregator_, recorder_};
  Ownership ownership_{rig_.cupti, recorder_, aggregator_, scheduler_};
};

// Where a thread that launches holds CUPTI's lock. What is recorded meanwhile would else be taken
// for the launches of a short window.
TEST_F(CollectorSchedulerTest, RecordingGoesOnUntilClosingIsOver) {
  begin();
  deliver(wall_ns(), 500);
  script_.cost_ns = 1'000'000'000;  // the start-up window's end
  script_.closing_ns = 20'000'000;
  tick_until([&] { return script_.closed >= 4; });
  script_.closing_ns = 0;
  const Result<Json> status =
      Json::parse(scheduler_.control(ownership_, {ControlRequest::Verb::kStatus, 0}));
  ASSERT_TRUE(status.is_ok());
  EXPECT_GE((*status)["recorded_ns"].as_double(), 4 * 20e6);
}

// CUPTI has crashed programs where it was flushed shortly before kinds were enabled.
TEST_F(CollectorSchedulerTest, NoFlushIsNearTheOpeningOrClosingOfAWindow) {
  begin();
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, most = 0;
  aggregator_.lend(&buffer, &size, &most);  // whose records are awaited throughout
  deliver(wall_ns(), 500);
  script_.cost_ns = 1'000'000'000;  // the start-up window's end
  tick_until([&] { return script_.closed > 0; });
  // Those in the gaps, and those of the seals, which come when they come.
  tick_until([&] {
    scheduler_.collect(ownership_, false);
    return script_.flushes.size() > 20 && script_.opened > 40;
  });
  for (const std::int64_t flushed : script_.flushes)
    for (const std::int64_t switched : script_.switches)
      EXPECT_GE(std::abs(flushed - switched), FlushTimes::kApartNs) << flushed - switched;
  aggregator_.take(nullptr, 0, buffer, 0);
}

// Where windows follow. CUPTI 13.0 loses the records of threads that are launching when what was on
// before there was a context is switched off.
TEST_F(CollectorSchedulerTest, NothingIsOpenedBeforeTheProgramHasAContext) {
  begin_without_context();
  EXPECT_EQ(dumped, 1) << "CUPTI is to tell of one";
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(scheduler_.tick(ownership_), monotonic_ns() + 100'000'000) << "it is looked after";
    scheduler_.collect(ownership_, false);
  }
  EXPECT_EQ(script_.opened, 0);
  EXPECT_EQ(dumped, 1);
  EXPECT_EQ(disabled, 0);
  make_context();
  scheduler_.tick(ownership_);
  EXPECT_EQ(script_.opened, 1);
  EXPECT_EQ(disabled, 1);
}

TEST_F(CollectorSchedulerTest, AWindowThatIsAskedForBeforeThereIsAContextBeginsWithIt) {
  Capture idle(*this, idle_options());
  EXPECT_EQ(dumped, 0) << "a capture that idles does without CUPTI";
  const Json asked = idle.ask(ControlRequest::Verb::kWindow);
  EXPECT_EQ(asked["state"].as_string(), "waiting");
  EXPECT_EQ(asked["waiting_window_ns"].as_double(), kAskedNs);
  std::this_thread::sleep_for(std::chrono::nanoseconds(2 * kAskedNs));
  idle.scheduler.tick(idle.ownership);
  EXPECT_EQ(idle.ask(ControlRequest::Verb::kStatus)["state"].as_string(), "waiting");
  EXPECT_EQ(script_.opened, 0);
  make_context(idle.ownership);
  idle.scheduler.tick(idle.ownership);
  ASSERT_EQ(script_.opened, 1);
  while (script_.closed == 0) idle.scheduler.tick(idle.ownership);
  const Json done = idle.ask(ControlRequest::Verb::kStatus);
  EXPECT_EQ(done["state"].as_string(), "stopped");
  EXPECT_TRUE(done["waiting_window_ns"].is_null());
  EXPECT_GE(done["recorded_ns"].as_double(), kAskedNs);
  std::map<std::string, CoverageNote> said = notes();
  EXPECT_EQ(said["asked_window"].seconds, kAskedNs * 1e-9);
  EXPECT_EQ(said.count("window_never_began"), 0u);
}

// Nor does one that is killed, which says no more at its end.
TEST_F(CollectorSchedulerTest, AWindowThatAProgramNeverHadAContextForIsNoted) {
  Capture idle(*this, idle_options());
  idle.ask(ControlRequest::Verb::kWindow);
  idle.ask(ControlRequest::Verb::kWindow);  // the same, as far as there is one
  idle.scheduler.tick(idle.ownership);
  std::map<std::string, CoverageNote> said = notes();
  EXPECT_EQ(said.count("asked_window"), 0u);
  EXPECT_EQ(said["window_never_began"].seconds, kAskedNs * 1e-9);
  EXPECT_EQ(said["window_never_began"].count, 1);
}

TEST_F(CollectorSchedulerTest, AWindowThatWaitsIsGivenUpByStop) {
  Capture idle(*this, idle_options());
  idle.ask(ControlRequest::Verb::kWindow);
  const Json stopped = idle.ask(ControlRequest::Verb::kStop);
  EXPECT_EQ(stopped["state"].as_string(), "stopped");
  EXPECT_TRUE(stopped["waiting_window_ns"].is_null());
  make_context(idle.ownership);
  idle.scheduler.tick(idle.ownership);
  EXPECT_EQ(script_.opened, 0);
  std::map<std::string, CoverageNote> said = notes();
  EXPECT_EQ(said.count("asked_window"), 0u) << "it never began";
  EXPECT_EQ(said.count("window_never_began"), 0u) << "nobody wants it any more";
}

// When CUPTI reports no contexts, only a device's primary context can be seen.
TEST_F(CollectorSchedulerTest, AContextThatNothingTellsOfIsNotAwaitedForEver) {
  void* const driver = dlopen(PURLIN_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(driver, nullptr);
  reinterpret_cast<void (*)(int)>(dlsym(driver, "fake_primary_context"))(0);
  Cupti mute = functions();
  mute.enable_and_dump = nullptr;
  setenv("PURLIN_CONTEXT_WAIT_MS", "30", 1);
  Ownership ownership(mute, recorder_, aggregator_, scheduler_);
  const std::int64_t began = monotonic_ns();
  ASSERT_TRUE(begin_owning(ownership, false));
  scheduler_.begin();
  while (script_.opened == 0) {
    scheduler_.tick(ownership);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_GE(monotonic_ns() - began, 30'000'000);
  EXPECT_GE(notes()["context_untold"].seconds, 0.03);
}

TEST_F(CollectorSchedulerTest, OneThatCuptiWillTellOfIsAwaitedForAsLongAsItTakes) {
  setenv("PURLIN_CONTEXT_WAIT_MS", "0", 1);
  ControllerOptions options;
  Capture capture(*this, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  capture.scheduler.tick(capture.ownership);
  EXPECT_EQ(script_.opened, 0);
  EXPECT_EQ(notes().count("context_untold"), 0u);
}

TEST_F(CollectorSchedulerTest, AContextThatIsThereAlreadyIsSeenAsAWindowIsAskedFor) {
  Capture idle(*this, idle_options());
  make_context(idle.ownership);
  EXPECT_EQ(idle.ask(ControlRequest::Verb::kWindow)["state"].as_string(), "recording");
}

TEST_F(CollectorSchedulerTest, AGovernedCaptureSaysThatItWaitsForTheContext) {
  ControllerOptions options;
  Capture capture(*this, options);
  EXPECT_EQ(capture.ask(ControlRequest::Verb::kStatus)["state"].as_string(), "waiting");
  make_context(capture.ownership);
  EXPECT_EQ(capture.ask(ControlRequest::Verb::kStatus)["state"].as_string(), "governed");
}

// CUPTI 13.0 loses threads where kinds that were on before the context are switched off and on.
TEST_F(CollectorSchedulerTest, WhatWasOnBeforeTheContextIsNotStartedAgainWithoutAWarning) {
  Capture plain(*this, plain_options());
  ASSERT_EQ(script_.opened, 1);
  EXPECT_TRUE(plain.ask(ControlRequest::Verb::kStart)["warning"].is_null()) << "it was on";
  EXPECT_TRUE(plain.ask(ControlRequest::Verb::kWindow)["warning"].is_null()) << "it was on";
  EXPECT_TRUE(plain.ask(ControlRequest::Verb::kStop)["warning"].is_null()) << "and stays off";
  EXPECT_FALSE(plain.ask(ControlRequest::Verb::kStart)["warning"].as_string().empty());
  EXPECT_TRUE(plain.ask(ControlRequest::Verb::kStart)["warning"].is_null()) << "it is due already";
  plain.scheduler.tick(plain.ownership);
  ASSERT_EQ(script_.opened, 2);
  for (const auto verb : {ControlRequest::Verb::kStatus, ControlRequest::Verb::kStart,
                          ControlRequest::Verb::kWindow, ControlRequest::Verb::kStop})
    EXPECT_TRUE(plain.ask(verb)["warning"].is_null()) << "it switches nothing on";
  EXPECT_EQ(notes()["threads_lost"].count, 1) << "as often as that was done, not asked for";
}

TEST_F(CollectorSchedulerTest, WhatWasAskedForAndNotDoneLosesNoThreads) {
  Capture plain(*this, plain_options());
  plain.ask(ControlRequest::Verb::kStop);
  plain.ask(ControlRequest::Verb::kStart);
  plain.ask(ControlRequest::Verb::kStop);
  plain.scheduler.tick(plain.ownership);
  EXPECT_EQ(script_.opened, 1);
  EXPECT_EQ(notes().count("threads_lost"), 0u);
}

// No window follows the start-up window, and a start changes nothing of that.
TEST_F(CollectorSchedulerTest, AStartThatLeadsToNothingIsNotWarnedOf) {
  Capture plain(*this, plain_options());
  script_.cost_ns = 1'000'000'000;
  while (script_.closed == 0) plain.scheduler.tick(plain.ownership);
  plain.ask(ControlRequest::Verb::kStop);
  const Json started = plain.ask(ControlRequest::Verb::kStart);
  EXPECT_EQ(started["state"].as_string(), "ended");
  EXPECT_TRUE(started["warning"].is_null());
}

// It switches the same kinds off, and then on again.
TEST_F(CollectorSchedulerTest, StandingAsideMayLoseThreadsToo) {
  setenv("PURLIN_CUPTI_GRACE_MS", "0", 1);
  Capture plain(*this, plain_options());
  ASSERT_EQ(script_.opened, 1);
  plain.ownership.client_registers(
      [](std::uint8_t**, std::size_t*, std::size_t*) {},
      [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {});
  EXPECT_EQ(script_.closed, 2) << "and what stays on beside";
  plain.ownership.resume_if_idle();
  plain.scheduler.tick(plain.ownership);
  ASSERT_EQ(script_.opened, 2);
  EXPECT_EQ(notes()["threads_lost"].count, 1);
}

TEST_F(CollectorSchedulerTest, ItLosesNoneWhereRecordingBeganWithTheContext) {
  setenv("PURLIN_CUPTI_GRACE_MS", "0", 1);
  ControllerOptions options;
  Capture capture(*this, options);
  make_context(capture.ownership);
  capture.scheduler.tick(capture.ownership);
  capture.ownership.client_registers(
      [](std::uint8_t**, std::size_t*, std::size_t*) {},
      [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {});
  capture.ownership.resume_if_idle();
  capture.scheduler.tick(capture.ownership);
  ASSERT_EQ(script_.opened, 2);
  EXPECT_EQ(notes().count("threads_lost"), 0u);
}

// To close may have to wait for a flush, and it is recorded on meanwhile.
TEST_F(CollectorSchedulerTest, WhatIsRecordedIsNoMoreThanItStandsFor) {
  Capture plain(*this, plain_options());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  plain.scheduler.collect(plain.ownership, false);
  const Json stopped = plain.ask(ControlRequest::Verb::kStop);
  EXPECT_GT(stopped["recorded_ns"].as_double(), 0);
  EXPECT_LE(stopped["recorded_ns"].as_double(), stopped["governed_ns"].as_double());
}

// By this the PyTorch hook decides whether its trace leaves CUPTI attached.
TEST_F(CollectorSchedulerTest, TheRestOfAStartUpWindowDoesNotNeedCupti) {
  const auto needs = [&](const ControllerOptions& options, ControlRequest::Verb verb) {
    Capture capture(*this, options);
    make_context(capture.ownership);
    capture.scheduler.tick(capture.ownership);
    return capture.ask(verb)["needs_cupti"].as_bool();
  };
  ControllerOptions full = plain_options();
  full.every_launch = true;
  EXPECT_FALSE(needs(plain_options(), ControlRequest::Verb::kStatus));
  EXPECT_TRUE(needs(full, ControlRequest::Verb::kStatus));
  EXPECT_FALSE(needs(full, ControlRequest::Verb::kStop));
  EXPECT_TRUE(needs(ControllerOptions(), ControlRequest::Verb::kStatus));
  EXPECT_FALSE(needs(idle_options(), ControlRequest::Verb::kStatus));
  EXPECT_TRUE(needs(idle_options(), ControlRequest::Verb::kWindow));
}

TEST_F(CollectorSchedulerTest, NorIsAWindowOpenedOfWhatHadStopped) {
  Capture plain(*this, plain_options());
  plain.ask(ControlRequest::Verb::kStop);
  // Long: a request that is over when the next tick comes opens nothing.
  EXPECT_FALSE(plain.ask(ControlRequest::Verb::kWindow, kHourNs)["warning"].as_string().empty());
  plain.scheduler.tick(plain.ownership);
  ASSERT_EQ(script_.opened, 2);
  EXPECT_EQ(notes()["threads_lost"].count, 1);
}

TEST_F(CollectorSchedulerTest, WhatWasFirstOnWithTheContextMayBeStoppedAndStarted) {
  ControllerOptions options;
  Capture capture(*this, options);
  make_context(capture.ownership);
  capture.scheduler.tick(capture.ownership);
  ASSERT_EQ(script_.opened, 1);
  capture.ask(ControlRequest::Verb::kStop);
  EXPECT_TRUE(capture.ask(ControlRequest::Verb::kStart)["warning"].is_null());
  EXPECT_EQ(notes().count("threads_lost"), 0u);
}

TEST_F(CollectorSchedulerTest, PinnedLaunchesAreOpenedBeforeThatNevertheless) {
  std::vector<std::unique_ptr<Tier>> both = tiers();
  both.push_back(std::make_unique<PinningTier>());
  CollectorScheduler scheduler(controller_options(), std::move(both), aggregator_, recorder_);
  Ownership ownership(rig_.cupti, recorder_, aggregator_, scheduler);
  ASSERT_TRUE(begin_owning(ownership, false));
  scheduler.begin();
  scheduler.tick(ownership);
  EXPECT_EQ(script_.opened, 1);
}

TEST_F(CollectorSchedulerTest, WhatTellsOfContextsIsOffWhenAClientComes) {
  begin_without_context();
  ownership_.client_registers(
      [](std::uint8_t**, std::size_t*, std::size_t*) {},
      [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {});
  EXPECT_EQ(disabled, 1);
}

// A kind that is recorded outside windows is charged while it is on.
TEST_F(CollectorSchedulerTest, CopiesThatAnotherClientEndsCostNothingMore) {
  ControllerOptions options;
  options.windows = false;
  CollectorScheduler scheduler(options, tiers(), aggregator_, recorder_);
  Ownership ownership(rig_.cupti, recorder_, aggregator_, scheduler);
  ASSERT_TRUE(begin_owning(ownership, false));
  script_.stays = true;
  scheduler.begin();
  scheduler.tick(ownership);
  std::vector<KernelRecord> records;
  for (int i = 0; i < 1000; ++i) records.push_back(kernel_record("kernel", wall_ns(), 500));
  rig_.deliver(records);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // long enough to know a rate
  script_.cost_ns = 1'000'000'000;                             // the start-up window's end
  while (script_.closed == 0) {
    scheduler.tick(ownership);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  scheduler.collect(ownership, false);
  EXPECT_GT(recorder_.spent().sampling.copies, 0);
  EXPECT_TRUE(script_.stays);
  ownership.client_registers(
      [](std::uint8_t**, std::size_t*, std::size_t*) {},
      [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {});
  EXPECT_FALSE(script_.stays);
  EXPECT_EQ(recorder_.spent().sampling.copies, 0);
}

TEST(FlushTimes, TheMiddleOfAShortGapAndNoneOfAShorterOne) {
  constexpr std::int64_t kMs = 1'000'000, kBegin = 1000 * kMs;
  FlushTimes times;
  times.switched(kBegin);
  EXPECT_EQ(times.best_flush_ns(kBegin + 9 * kMs), FlushTimes::kNever);
  EXPECT_EQ(times.best_flush_ns(kBegin + 15 * kMs), kBegin + 15 * kMs / 2);
  EXPECT_EQ(times.best_flush_ns(kBegin + 300 * kMs), kBegin + 280 * kMs);
  EXPECT_FALSE(times.may_flush(kBegin + 4 * kMs, FlushTimes::kNever));
  EXPECT_TRUE(times.may_flush(kBegin + 5 * kMs, kBegin + 10 * kMs));
  EXPECT_FALSE(times.may_flush(kBegin + 6 * kMs, kBegin + 10 * kMs));
  times.flushed(kBegin + 7 * kMs);
  EXPECT_EQ(times.switch_from_ns(), kBegin + 12 * kMs);
}

// What was recorded in the window before ends when that was closed, and what seems to end later has
// a doubtful end: a window that CUPTI refused does not stretch it.
TEST_F(CollectorSchedulerTest, AWindowThatIsRefusedIsNotTakenForAnOpenOne) {
  begin();
  deliver(wall_ns(), 500);
  script_.cost_ns = 1'000'000'000;  // the start-up window's end
  tick_until([&] { return script_.closed > 0; });
  script_.answer = Tier::Opened::kNotNow;
  const int refused = script_.refused;
  tick_until([&] { return script_.refused > refused; });
  const std::int64_t refused_ns = wall_ns();
  tick_until([&] { return script_.refused > refused + 1; });
  deliver(refused_ns, 250'000'000);  // of a graph that was made in the start-up window
  script_.answer = Tier::Opened::kYes;
  const int opened = script_.opened;
  tick_until([&] { return script_.opened > opened; });
  scheduler_.collect(ownership_, true);
  EXPECT_LT(longest_ns(), 1000);
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
