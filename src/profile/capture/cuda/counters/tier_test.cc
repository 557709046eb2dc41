// SPDX-License-Identifier: Apache-2.0
// Against a fake of the driver and of CUPTI's range profiler; tests/gpu/counters_gpu.sh runs the
// real ones.
#include "profile/capture/cuda/counters/tier.h"

#include "profile/format/file.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

const int kContext = 0, kOtherContext = 0;

// What happened at the hardware, and what it answers.
struct Fake {
  LaunchListener* listener = nullptr;
  bool watching = false, left = false;
  std::int64_t now = 1'000'000'000;
  std::int64_t busy_until = 0;  // of the GPU
  std::string refuses;          // subscription
  CounterHardware::Answer answer = CounterHardware::Answer::kYes;
  bool push_works = true, finish_works = true;
  std::string chip = "GH100";
  bool in_range = false, replay = false;
  int captures = 0;
  std::size_t begun = 0, ranges = 0, finished = 0;
  std::int64_t begin_ns = 0;
  std::vector<std::string_view> topics;  // of the sessions begun
  const CounterCard* card = nullptr;
  double tensor_busy = 20;
  std::function<void()> while_waiting;  // once
};

class FakeHardware : public CounterHardware {
 public:
  explicit FakeHardware(Fake& fake) : fake_(fake) {}
  bool subscribe(LaunchListener& listener, std::string& reason) override {
    reason = fake_.refuses;
    fake_.listener = reason.empty() ? &listener : nullptr;
    return reason.empty();
  }
  void unsubscribe() override { fake_.listener = nullptr; }
  void watch_launches(bool on) override { fake_.watching = on; }
  std::string chip(const void*) override { return fake_.chip; }
  bool idle(const void*, bool) override {
    EXPECT_EQ(fake_.captures, 0);
    return fake_.now >= fake_.busy_until;
  }
  void warm_up() override {}
  Answer begin(const void*, const CounterCard& card, std::size_t, bool replay,
               std::string& reason) override {
    EXPECT_GE(fake_.now, fake_.busy_until) << "began while the GPU was busy";
    fake_.now += fake_.begin_ns;
    reason = "no";
    if (fake_.answer != Answer::kYes) return fake_.answer;
    ++fake_.begun;
    fake_.topics.push_back(card.topic);
    cards_.push_back(card);
    fake_.ranges = 0;
    fake_.replay = replay;
    return Answer::kYes;
  }
  bool push(std::size_t range) override {
    EXPECT_GE(fake_.now, fake_.busy_until);
    EXPECT_FALSE(fake_.in_range);
    EXPECT_EQ(range, fake_.ranges);
    fake_.in_range = fake_.push_works;
    return fake_.push_works;
  }
  bool pop() override {
    EXPECT_GE(fake_.now, fake_.busy_until) << "would wait for the GPU";
    EXPECT_TRUE(fake_.in_range);
    fake_.in_range = false;
    ++fake_.ranges;
    return true;
  }
  bool finish(CounterImage& image) override {
    EXPECT_FALSE(fake_.in_range);
    ++fake_.finished;
    image.bytes.assign(fake_.ranges, 0);
    image.config = reinterpret_cast<const void*>(cards_.size());
    return fake_.finish_works;
  }
  void leave() override {
    fake_.left = true;
    fake_.in_range = false;
  }
  LaunchFacts facts(const LaunchSite& site) override {
    LaunchFacts facts;
    facts.name = site.symbol;
    facts.grid = site.grid;
    facts.block = site.block;
    return facts;
  }
  bool values(const CounterImage& image, std::size_t range, std::vector<double>& values) override {
    if (range >= image.bytes.size()) return false;
    const CounterCard& card = cards_[reinterpret_cast<std::size_t>(image.config) - 1];
    values.clear();
    for (const std::string_view metric : card.metrics)
      values.push_back(metric == kTensorBusy ? fake_.tensor_busy : 1000);
    return true;
  }
  std::int64_t now_ns() override { return fake_.now; }
  void pause() override {
    fake_.now += 1'000'000;
    if (const auto action = std::exchange(fake_.while_waiting, nullptr)) action();
  }

 private:
  Fake& fake_;
  std::vector<CounterCard> cards_;
};

class CounterTierTest : public testing::Test {
 protected:
  void make(const char* topics = "", CounterOptions options = {}) {
    EXPECT_TRUE(parse_counter_topics(topics, options.topics));
    tier_ =
        std::make_unique<CounterTier>(std::make_unique<FakeHardware>(fake_), recorder_, options);
    tier_->prepare();
  }
  bool open(std::int64_t length_ns = 50'000'000) {
    fake_.now += 1'000'000;
    return tier_->open({fake_.now, fake_.now + length_ns, 1}) == Tier::Opened::kYes;
  }
  void window(const std::function<void()>& program) {
    ASSERT_TRUE(open());
    program();
    tier_->close();
    EXPECT_FALSE(fake_.watching);
    tier_->collect(false);
  }
  static LaunchSite site(const char* name, std::uint32_t grid = 1) {
    static std::map<std::string, int> functions;
    LaunchSite site;
    site.context = &kContext;
    site.function = &functions[name];
    site.symbol = name;
    site.grid = {grid, 1, 1};
    site.block = {64, 1, 1};
    return site;
  }
  // What CUPTI's callbacks do around a launch; the kernel then runs for run_ns. True: it was read.
  bool launch(const LaunchSite& site, std::int64_t run_ns = 10'000) {
    if (fake_.listener == nullptr || !fake_.watching) return false;
    const bool chosen = fake_.listener->entering(site);
    const bool counted = chosen && fake_.in_range;
    fake_.now += 5'000;
    fake_.busy_until = std::max(fake_.busy_until, fake_.now) + run_ns;
    if (chosen) fake_.listener->left();
    if (chosen && !counted) ++trials_;
    return counted;
  }
  // A window in which these pass their trials: the next begins with readings.
  void meet(const std::vector<LaunchSite>& sites) {
    ASSERT_TRUE(open());
    const std::size_t before = trials_;
    for (const LaunchSite& each : sites) EXPECT_FALSE(launch(each));
    EXPECT_EQ(trials_ - before, sites.size());
    tier_->close();
  }
  void capture(bool begin) {
    fake_.captures += begin ? 1 : -1;
    begin ? fake_.listener->capture_begins() : fake_.listener->capture_ended();
  }
  // The profile, and its notes' causes with their counts.
  Profile finish() {
    if (tier_) {
      tier_->close();
      tier_->collect(true);
    }
    recorder_.set_meta(R"({"pid":1,"layer":"cuda"})", "[]");
    const Result<Profile> profile = decode_profile(recorder_.drain(0, 1, true));
    EXPECT_TRUE(profile.is_ok());
    for (const CoverageNote& note : profile->coverage.notes) notes_[note.cause] = note;
    return *profile;
  }
  static std::map<std::string, Counter> counters(const Profile& profile, const char* kernel) {
    std::map<std::string, Counter> found;
    for (const KernelRow& row : profile.kernels)
      if (row.name == kernel)
        for (const Counter& counter : row.counters) found[counter.name] = counter;
    return found;
  }

  Fake fake_;
  Recorder recorder_{false};
  std::size_t trials_ = 0;
  std::unique_ptr<CounterTier> tier_;
  std::map<std::string, CoverageNote> notes_;
};

TEST_F(CounterTierTest, ReadsALaunchIntoItsRow) {
  make("memory");
  meet({site("gemm")});
  window([&] { EXPECT_TRUE(launch(site("gemm"))); });
  const Profile profile = finish();
  const auto read = counters(profile, "gemm");
  ASSERT_EQ(read.count("dram__bytes_read.sum"), 1u);
  EXPECT_EQ(read.at("dram__bytes_read.sum").value, 1000);
  EXPECT_EQ(read.at("dram__bytes_read.sum").launches, 1);
  EXPECT_EQ(fake_.begun, 1u);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(CounterTierTest, CardsTurnThroughAllTopics) {
  make("memory,caches,flops");
  meet({site("a")});
  for (int i = 0; i < 40; ++i)
    window([&] {
      for (int k = 0; k < 30; ++k) launch(site("a"));
    });
  std::set<std::string_view> topics(fake_.topics.begin(), fake_.topics.end());
  EXPECT_EQ(topics, (std::set<std::string_view>{"memory", "caches", "flops"}));
  EXPECT_LE(fake_.begun, 40u);  // one a window: a start is expensive
  const Profile profile = finish();
  const auto read = counters(profile, "a");
  EXPECT_EQ(read.count("lts__t_sectors_lookup_hit.sum"), 1u);
  EXPECT_EQ(read.count("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), 1u);
}

TEST_F(CounterTierTest, TensorCardsAreLeftOutWhereNothingUsesTensorCores) {
  fake_.tensor_busy = 0;
  make("memory,tensor");
  meet({site("copy")});
  for (int i = 0; i < 20; ++i)
    window([&] {
      for (int k = 0; k < 30; ++k) launch(site("copy"));
    });
  EXPECT_EQ(std::count(fake_.topics.begin(), fake_.topics.end(), "tensor"), 0);
  fake_.tensor_busy = 50;
  window([&] { launch(site("gemm")); });
  window([&] { launch(site("gemm")); });
  for (int i = 0; i < 20; ++i)
    window([&] {
      for (int k = 0; k < 30; ++k) launch(site("gemm"));
    });
  EXPECT_GT(std::count(fake_.topics.begin(), fake_.topics.end(), "tensor"), 0);
}

TEST_F(CounterTierTest, AWindowTakesFewReadingsAndNewKernelsFirst) {
  make("memory");
  for (std::uint32_t i = 0; i < 64; i += 2) meet({site("k", i), site("k", i + 1)});
  std::size_t read = 0;
  std::set<std::uint32_t> shapes;
  window([&] {
    for (std::uint32_t i = 0; i < 640; ++i)
      if (launch(site("k", i % 64))) {
        ++read;
        shapes.insert(i % 64);
      }
  });
  EXPECT_EQ(read, CounterTier::kReadingsPerWindow);
  EXPECT_EQ(shapes.size(), read);
}

TEST_F(CounterTierTest, NothingIsReadAfterTheWindowsTime) {
  make();
  meet({site("a")});
  ASSERT_TRUE(open(2'000'000));
  fake_.now += 3'000'000;
  EXPECT_FALSE(launch(site("a")));
  tier_->close();
  EXPECT_FALSE(launch(site("a")));
}

TEST_F(CounterTierTest, KernelsThatMayWaitForOthersAreLeftAlone) {
  make();
  meet({site("_ZN7cutlass6KernelINS_12NamedBarrierEEEvT_")});
  window([&] {
    EXPECT_FALSE(launch(site("_Z21ncclDevKernel_AllReduce_Sum_f32_RING_LLv")));
    EXPECT_FALSE(launch(site("_ZN4vllm26cross_device_reduce_1stageIfLi2EEEvPv")));
    LaunchSite cooperative = site("grid_sync");
    cooperative.dependent = true;
    EXPECT_FALSE(launch(cooperative));
    EXPECT_TRUE(launch(site("_ZN7cutlass6KernelINS_12NamedBarrierEEEvT_")));  // made of one
  });
  finish();
  EXPECT_EQ(notes_["counters_left_out"].count, 3);
}

TEST_F(CounterTierTest, PatternsAllowAndDeny) {
  CounterOptions options;
  options.only = "gemm|conv";
  options.never = "slow_gemm";
  make("", options);
  meet({site("_Z7my_gemmPf")});
  window([&] {
    EXPECT_TRUE(launch(site("_Z7my_gemmPf")));
    EXPECT_FALSE(launch(site("_Z9slow_gemmPf")));
    EXPECT_FALSE(launch(site("_Z4copyPf")));
  });
  CounterOptions bad;
  bad.only = "(";
  make("", bad);
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  finish();
  EXPECT_EQ(notes_.count("counters_pattern"), 1u);
}

TEST_F(CounterTierTest, ADeepQueueEndsTheWindowAndDoesNotStall) {
  make();
  ASSERT_TRUE(open(1'000'000'000));
  for (int i = 0; i < 300; ++i) launch(site("a", 1000), 0);  // all into one stream
  tier_->close();
  ASSERT_TRUE(open(1'000'000'000));
  fake_.busy_until = fake_.now + 60'000'000'000;
  const std::int64_t before = fake_.now;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(launch(site("a", static_cast<std::uint32_t>(i))));
  EXPECT_LT(fake_.now - before, 2 * CounterTier::kQueuePatienceNs);
  EXPECT_EQ(fake_.begun, 0u);
  finish();
  EXPECT_EQ(notes_["counters_unready"].count, 1);
}

// What is in flight may wait for the very launch that is held up.
TEST_F(CounterTierTest, WithSeveralStreamsAQueueIsAwaitedForAMomentOnlyAndNotForEver) {
  make("memory");
  LaunchSite first = site("waits"), second = site("lets_go");
  const int streams[2] = {};
  first.stream = &streams[0];
  second.stream = &streams[1];
  first.dependent = true;
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(notes_.count("counters_never_idle"), 0u);
    ASSERT_TRUE(open(1'000'000'000));
    launch(first, 5'000'000'000);
    const std::int64_t before = fake_.now;
    EXPECT_FALSE(launch(second, 0));
    EXPECT_LT(fake_.now - before, 60'000'000);
    tier_->close();
    tier_->collect(false);
    fake_.now = fake_.busy_until + 1;
  }
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  finish();
  EXPECT_EQ(notes_["counters_unready"].count, 3);
  EXPECT_EQ(notes_.count("counters_never_idle"), 1u);
}

// What it waits for may be launched later: it is let go after its trial, before anything counts.
TEST_F(CounterTierTest, AKernelThatDoesNotEndByItselfIsNeverCounted) {
  make("memory");
  meet({site("other")});
  window([&] {
    const std::int64_t before = fake_.now;
    EXPECT_FALSE(launch(site("waits"), 5'000'000'000));
    EXPECT_LT(fake_.now - before, 2 * CounterTier::kTrialPatienceNs);
    EXPECT_EQ(fake_.begun, 0u);
    EXPECT_FALSE(fake_.watching && fake_.listener->entering(site("other")));
  });
  fake_.now = fake_.busy_until + 1;
  window([&] {
    EXPECT_FALSE(launch(site("waits"), 10));
    EXPECT_FALSE(launch(site("waits"), 10));
    EXPECT_TRUE(launch(site("other")));
  });
  const Profile profile = finish();
  EXPECT_EQ(counters(profile, "waits").size(), 0u);
  EXPECT_GT(counters(profile, "other").size(), 0u);
  EXPECT_EQ(notes_["counters_unended"].count, 1);
}

TEST_F(CounterTierTest, ManyKernelsThatDoNotEndByThemselvesEndIt) {
  make("memory");
  for (std::uint32_t i = 0; i < 8; ++i) {
    window([&] { launch(site("waits", i), 1'000'000'000); });
    fake_.now += 2'000'000'000;
  }
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  finish();
  EXPECT_EQ(notes_.count("counters_waiting"), 1u);
  EXPECT_EQ(fake_.begun, 0u);
}

// One that passed its trial and waits later on: let go soon, and no counters ever after.
TEST_F(CounterTierTest, ALaunchThatDoesNotEndWhileItIsCountedEndsIt) {
  make("memory");
  meet({site("waits"), site("other")});
  window([&] {
    EXPECT_TRUE(launch(site("other")));
    const std::int64_t before = fake_.now;
    EXPECT_TRUE(launch(site("waits"), 5'000'000'000));
    EXPECT_LT(fake_.now - before, 30'000'000);
    EXPECT_TRUE(fake_.in_range);  // popping would wait for it
    EXPECT_FALSE(launch(site("other")));
  });
  fake_.now = fake_.busy_until + 1;
  window([&] { EXPECT_FALSE(launch(site("other"))); });
  EXPECT_TRUE(fake_.left);
  EXPECT_EQ(fake_.listener, nullptr);
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  const Profile profile = finish();
  EXPECT_EQ(counters(profile, "waits").size(), 0u);
  EXPECT_GT(counters(profile, "other").size(), 0u);  // what was read before is kept
  EXPECT_NE(notes_["counters_stuck"].text.find("waits"), std::string::npos);
}

TEST_F(CounterTierTest, WithSeveralStreamsOneEndIsNotEnough) {
  make("memory");
  LaunchSite first = site("a"), second = site("b");
  const int streams[2] = {};
  first.stream = &streams[0];
  second.stream = &streams[1];
  window([&] {
    launch(first);
    launch(second);
    for (int i = 0; i < 10; ++i) launch(first);
  });
  EXPECT_EQ(trials_, 4u);
  EXPECT_EQ(fake_.begun, 0u);
  window([&] {
    EXPECT_TRUE(launch(first));
    EXPECT_FALSE(launch(second));  // tried once
  });
}

TEST_F(CounterTierTest, AWindowBeginsWithTrialsWhereTheLastLeftKernelsOut) {
  make("memory");
  meet({site("a")});
  window([&] {
    EXPECT_TRUE(launch(site("a")));
    EXPECT_FALSE(launch(site("late")));
  });
  const std::size_t before = trials_;
  window([&] {
    EXPECT_FALSE(launch(site("a")));
    EXPECT_FALSE(launch(site("late")));
    EXPECT_FALSE(launch(site("a")));
    fake_.now += 20'000'000;
    EXPECT_FALSE(launch(site("a")));  // read lately
    EXPECT_TRUE(launch(site("a")));
  });
  EXPECT_EQ(trials_ - before, 1u);
  window([&] { EXPECT_TRUE(launch(site("late"))); });
}

TEST_F(CounterTierTest, CardsThatWereNotReadAreNoted) {
  make("memory,caches");
  meet({site("a")});
  window([&] { launch(site("a")); });
  finish();
  EXPECT_NE(notes_["counters_turns"].text.find("only 1 of 5"), std::string::npos)
      << notes_["counters_turns"].text;
}

TEST_F(CounterTierTest, ThreadsThatLaunchAllTheTimeEndIt) {
  make("memory");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(notes_.count("counters_threads"), 0u);
    ASSERT_TRUE(open());
    for (int k = 0; k < 30; ++k) {
      if (!fake_.listener->entering(site("a"))) continue;
      fake_.listener->entering(site("b"));  // of another thread
      fake_.listener->left();
    }
    tier_->close();
    tier_->collect(false);
  }
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  EXPECT_EQ(fake_.begun, 0u);
  finish();
  EXPECT_EQ(notes_["counters_disturbed"].count, 24);
  EXPECT_EQ(notes_.count("counters_threads"), 1u);
}

TEST_F(CounterTierTest, TheFirstCardsOverheadCountsOnce) {
  make("memory,caches");
  meet({site("a")});
  tier_->take_cost_ns();
  fake_.begin_ns = 500'000'000;
  ASSERT_TRUE(open(2'000'000'000));
  EXPECT_TRUE(launch(site("a")));
  EXPECT_GE(tier_->take_once_ns(), 500'000'000);
  EXPECT_LT(tier_->take_cost_ns(), 100'000'000);
  tier_->close();
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(open(2'000'000'000));
    for (int i = 0; i < 10; ++i) launch(site("a"));
    tier_->close();
  }
  EXPECT_EQ(fake_.begun, 2u);
  EXPECT_EQ(tier_->take_once_ns(), 0);
  EXPECT_GE(tier_->take_cost_ns(), 500'000'000);
}

TEST_F(CounterTierTest, ASessionThatIsAlmostEmptyGoesOnInTheNextWindow) {
  make("memory,caches");
  meet({site("a")});
  for (int turn = 0; turn < 3; ++turn) window([&] { launch(site("a")); });
  EXPECT_EQ(fake_.begun, 1u);
  EXPECT_EQ(fake_.finished, 0u);
  window([&] { launch(site("a")); });
  EXPECT_EQ(fake_.begun, 2u);  // another card's turn
  EXPECT_EQ(counters(finish(), "a").at("dram__bytes_read.sum").launches, 2);
}

TEST_F(CounterTierTest, NothingHappensDuringAStreamCapture) {
  make();
  meet({site("a"), site("b")});
  capture(true);  // before any window
  window([&] { EXPECT_FALSE(launch(site("a"))); });
  capture(false);
  window([&] {
    EXPECT_TRUE(launch(site("a")));
    capture(true);
    EXPECT_FALSE(launch(site("b")));
  });
  tier_->collect(true);  // the process exits: the session must not be ended now
  EXPECT_EQ(fake_.finished, 0u);
  capture(false);
}

TEST_F(CounterTierTest, ALaunchOfAnotherThreadSpoilsTheReading) {
  make("memory");
  meet({site("a")});
  window([&] {
    ASSERT_TRUE(fake_.listener->entering(site("a")));
    std::thread([&] { EXPECT_FALSE(fake_.listener->entering(site("b"))); }).join();
    fake_.listener->left();
  });
  const Profile profile = finish();
  EXPECT_EQ(counters(profile, "a").size(), 0u);
  EXPECT_EQ(notes_["counters_disturbed"].count, 1);
}

// Its callback at the end must still come: without it no thread could use the hardware again.
TEST_F(CounterTierTest, AWindowThatClosesDuringALaunchWaitsForIt) {
  make("memory");
  meet({site("a")});
  ASSERT_TRUE(open());
  ASSERT_TRUE(fake_.listener->entering(site("a")));
  fake_.while_waiting = [&] {
    EXPECT_TRUE(fake_.watching);
    fake_.listener->left();
  };
  tier_->close();
  EXPECT_FALSE(fake_.watching);
  EXPECT_FALSE(fake_.in_range);
  EXPECT_GT(counters(finish(), "a").size(), 0u);
}

TEST_F(CounterTierTest, WithoutPermissionItSaysSoOnceAndNeverTriesAgain) {
  make();
  meet({site("a")});
  fake_.answer = CounterHardware::Answer::kNever;
  window([&] {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(launch(site("a")));
  });
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  EXPECT_EQ(fake_.listener, nullptr);  // the callbacks are given back
  finish();
  EXPECT_EQ(notes_.count("counters_refused"), 1u);
  EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(CounterTierTest, CountersInUseElsewhereAreAskedForAgainInTheNextWindow) {
  make();
  meet({site("a")});
  fake_.answer = CounterHardware::Answer::kNotNow;
  window([&] {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(launch(site("a")));
  });
  fake_.answer = CounterHardware::Answer::kYes;
  window([&] { EXPECT_TRUE(launch(site("a"))); });
  finish();
  EXPECT_EQ(notes_["counters_busy"].count, 1);
}

TEST_F(CounterTierTest, FailuresEndItAfterAFew) {
  make();
  meet({site("a", 0), site("a", 1), site("a", 2)});
  fake_.push_works = false;
  for (int i = 0; i < 3; ++i)
    window([&] { EXPECT_FALSE(launch(site("a", static_cast<std::uint32_t>(i)))); });
  EXPECT_TRUE(fake_.left);
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  finish();
  EXPECT_EQ(notes_.count("counters_failed"), 1u);
}

TEST_F(CounterTierTest, AnUndecodableSessionLosesItsReadingsOnly) {
  make("memory");
  meet({site("a")});
  fake_.finish_works = false;
  window([&] { launch(site("a")); });
  const Profile profile = finish();
  EXPECT_EQ(counters(profile, "a").size(), 0u);
  EXPECT_TRUE(fake_.left);
}

TEST_F(CounterTierTest, AClientThatNeedsTheCallbacksGetsThem) {
  make();
  meet({site("a")});
  window([&] { launch(site("a")); });
  tier_->yield();
  EXPECT_EQ(fake_.listener, nullptr);
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  const Profile profile = finish();
  EXPECT_GT(counters(profile, "a").size(), 0u);  // what was read before is kept
  EXPECT_EQ(notes_.count("counters_yielded"), 1u);
}

TEST_F(CounterTierTest, WithoutCallbacksItStaysShut) {
  fake_.refuses = "somebody else has the callbacks";
  make();
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);
  finish();
  EXPECT_NE(notes_["counters_unavailable"].text.find("somebody else"), std::string::npos);
}

TEST_F(CounterTierTest, AnUnknownChipIsNamed) {
  fake_.chip = "GX999";
  make();
  window([&] { EXPECT_FALSE(launch(site("a"))); });
  finish();
  EXPECT_NE(notes_["counters_unsupported"].text.find("GX999"), std::string::npos);
}

TEST_F(CounterTierTest, ASessionEndsWithItsContext) {
  make("memory");
  meet({site("a")});
  window([&] { launch(site("a")); });
  fake_.now += 1'000'000;
  fake_.listener->context_ends();
  EXPECT_EQ(fake_.finished, 1u);
  EXPECT_TRUE(fake_.left);
  LaunchSite elsewhere = site("b");
  elsewhere.context = &kOtherContext;
  meet({elsewhere});
  window([&] { EXPECT_TRUE(launch(elsewhere)); });
  EXPECT_GT(counters(finish(), "a").size(), 0u);
}

TEST_F(CounterTierTest, ReplayTakesTheFirstLaunchesOfEachKernel) {
  CounterOptions options;
  options.replay = true;
  options.replays = 2;
  options.only = "gemm";
  make("", options);
  EXPECT_EQ(tier_->open({}), Tier::Opened::kNever);  // it needs no windows
  EXPECT_FALSE(launch(site("gemm", 1)));             // its trial
  EXPECT_TRUE(launch(site("gemm", 1)));
  EXPECT_TRUE(launch(site("gemm", 1)));
  EXPECT_FALSE(launch(site("gemm", 1)));
  EXPECT_FALSE(launch(site("gemm", 2)));
  EXPECT_TRUE(launch(site("gemm", 2)));
  EXPECT_FALSE(launch(site("copy", 1)));
  std::size_t read = 0;  // more than a window's worth, and than a session's
  for (std::uint32_t i = 20; i < 220; ++i) read += launch(site("gemm", i / 2)) ? 1 : 0;
  EXPECT_EQ(read, 100u);
  EXPECT_TRUE(fake_.replay);
  EXPECT_EQ(counters(finish(), "gemm").count("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
            1u);
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
