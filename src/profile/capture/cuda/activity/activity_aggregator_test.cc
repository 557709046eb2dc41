// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/activity_aggregator.h"

#include "profile/capture/cuda/activity/records_for_test.h"
#include "profile/capture/cuda/cupti/toggle_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

using Record = KernelRecord;

class ActivityAggregatorTest : public testing::Test {
 protected:
  static Record record(const char* name, std::int64_t start_ns, std::int64_t duration_ns,
                       std::uint64_t node = 0) {
    return kernel_record(name, start_ns, duration_ns, node);
  }
  void deliver(const std::vector<Record>& records) { rig_.deliver(records); }
  // {count, total ns} by name, and what was lost under "".
  std::map<std::string, std::pair<double, double>> recorded() {
    aggregator_.account();
    const Result<Profile> profile = rig_.profile();
    EXPECT_TRUE(profile.is_ok()) << profile.status().message();
    std::map<std::string, std::pair<double, double>> result;
    const Profile empty;
    const Profile& found = profile.is_ok() ? *profile : empty;
    for (const KernelRow& row : found.kernels) {
      result[row.name].first += row.duration.count();
      result[row.name].second += row.duration.total_ns();
    }
    if (found.coverage.launches_lost > 0) result[""] = {found.coverage.launches_lost, 0};
    return result;
  }

  // Sleeps for most of it: who has slept gets a processor at once.
  void until(std::int64_t ns) {
    constexpr std::int64_t kSpunNs = 100'000;
    const std::int64_t slept = ns - monotonic_ns() - kSpunNs;
    if (slept > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(slept));
    while (monotonic_ns() < ns) {
    }
    late_ns_ = std::max(late_ns_, monotonic_ns() - ns);
  }
  // One launch of "a" with the ID 1000, then launches are counted.
  void start_after_a_launch() {
    aggregator_.begin_period(1, true, false);
    Record head = record("a", wall_ns(), 10);
    head.correlationId = 1000;
    deliver({head});
    aggregator_.start_counter(true);
  }
  // That of a call at the program's end has the next.
  void deliver_last_id(std::uint32_t id) {
    aggregator_.await_last_id();
    Record version = {};
    auto& call = reinterpret_cast<CUpti_ActivityAPI&>(version);
    call.kind = CUPTI_ACTIVITY_KIND_DRIVER;
    call.cbid = CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion;
    call.correlationId = id + 1;
    deliver({version});
  }

  AggregatorRig rig_;
  ActivityAggregator& aggregator_ = rig_.aggregator;
  std::int64_t late_ns_ = 0;  // the longest
};

// Some tests go by the clock. On a busy machine the thread loses its processor for more than a part
// of a window, and the times it reports are wrong. Then all is made again. The last try counts
// in any case.
template <class Try>
void until_undisturbed() {
  constexpr int kTries = 50;
  for (int i = 1; i <= kTries; ++i) {
    Try one;
    if (one.judged(i == kTries)) return;
  }
}

using Recorded = std::map<std::string, std::pair<double, double>>;

TEST_F(ActivityAggregatorTest, ReplayUnderWayAsAWindowClosesLastsAsLongAsOnesBefore) {
  aggregator_.begin_period(1, true, false);
  aggregator_.begin_window();
  const std::int64_t inside = wall_ns();
  deliver({record("a", inside, 10, 1), record("b", inside, 20, 2), record("k", inside, 30)});
  while (wall_ns() <= inside + 1000) {
  }
  aggregator_.end_window();
  const std::int64_t closed = wall_ns();
  const std::int64_t later = 250'000'000;  // that is when another replay ended
  deliver({record("a", inside, later, 1), record("b", closed + 5, later, 2),
           record("new", inside, later, 9), record("k", inside, later)});
  // "k" is of no graph: it may well have run for so long.
  EXPECT_EQ(recorded(), (Recorded{{"", {1, 0}},
                                  {"a", {2, 20}},
                                  {"b", {2, 40}},
                                  {"k", {2, 30.0 + static_cast<double>(later)}}}));
}

TEST_F(ActivityAggregatorTest, WorkWithoutAnEndTakesTheTimeOfAnEarlierLaunchOfItsKernel) {
  aggregator_.begin_period(1, true, false);
  aggregator_.begin_window();
  const std::int64_t inside = wall_ns();
  Record endless = record("k", inside, 0), unstarted = record("k", 0, 0);
  endless.end = unstarted.end = 0;
  Record wider = endless, stranger = endless;
  wider.gridX = 2;
  stranger.name = "never seen to end";
  deliver({endless, record("k", inside, 30), endless, unstarted, wider, stranger});
  while (wall_ns() <= inside + 1000) {
  }
  aggregator_.end_window();
  // A node of a graph that was made again, of a kernel that was seen as a node of another and in a
  // stream.
  deliver({record("node", inside, 7, 1), record("node", inside, 250'000'000, 2),
           record("k", inside, 250'000'000, 3)});
  EXPECT_EQ(recorded(), (Recorded{{"", {2, 0}}, {"k", {5, 150}}, {"node", {2, 14}}}));
}

TEST_F(ActivityAggregatorTest, GraphsMadeAgainDoNotCrowdOutLaterOnes) {
  NodeTimes times;
  for (std::uint32_t graph = 1; graph <= 5 * NodeTimes::kMax; ++graph) times.learn(graph, 1, 10);
  EXPECT_EQ(times.believe(5 * NodeTimes::kMax, 1, 250'000'000), 10);
  EXPECT_EQ(times.believe(1, 1, 250'000'000), -1);
}

TEST(ToggleWatch, AClosingThatStaysLongIsTakenForAStuckCupti) {
  ToggleWatch watch;
  for (int i = 0; i < 102; ++i) EXPECT_FALSE(watch.closed(i % 9 == 0 ? 3'000'000 : 15'000));
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(watch.closed(600'000 + i));
  EXPECT_TRUE(watch.closed(500'000));
  // Where it always takes long, or was interrupted often, that is how it is.
  ToggleWatch slow, interrupted;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(slow.closed(700'000));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(interrupted.closed(i % 8 == 0 ? 15'000 : 900'000));
}

TEST(Buffers, AClientThatTookThemForItsOwnMayFreeThem) {
  Buffers buffers;
  std::uint8_t* first = buffers.lend();
  std::uint8_t* second = buffers.lend();
  std::free(first);
  buffers.give_back(second);
  buffers.release_unused();
  EXPECT_EQ(buffers.lend(), second);
  buffers.give_back(second);
}

TEST(Buffers, WhatABurstNeededIsGivenBackToTheSystem) {
  Buffers buffers;
  std::vector<std::uint8_t*> lent;
  for (int i = 0; i < 40; ++i) {
    lent.push_back(buffers.lend());
    ASSERT_NE(lent.back(), nullptr);
    lent.back()[0] = lent.back()[Buffers::kBytes - 1] = 1;
  }
  std::uint8_t* kept = lent[7];
  for (std::uint8_t* buffer : lent)
    if (buffer != kept) buffers.give_back(buffer);
  buffers.release_unused();  // all were needed until just now
  EXPECT_EQ(buffers.bytes(), 40 * Buffers::kBytes);
  for (int i = 0; i < 10; ++i) lent[static_cast<std::size_t>(i)] = buffers.lend();
  for (int i = 0; i < 10; ++i) buffers.give_back(lent[static_cast<std::size_t>(i)]);
  buffers.release_unused();
  EXPECT_EQ(buffers.bytes(), 11 * Buffers::kBytes) << "what is lent, and what was needed again";
  EXPECT_EQ(buffers.lent(), 1u);
  buffers.release_unused();
  EXPECT_EQ(buffers.bytes(), Buffers::kKept * Buffers::kBytes);
  EXPECT_EQ(kept[0], 1) << "one that is lent keeps what is in it";
  for (std::uint8_t* buffer : lent) EXPECT_TRUE(buffers.owns(buffer));
  for (int i = 0; i < 39; ++i) {
    std::uint8_t* again = buffers.lend();
    EXPECT_TRUE(buffers.owns(again)) << "addresses are used again";
    again[0] = 1;
    lent[static_cast<std::size_t>(i)] = again;
  }
  EXPECT_EQ(buffers.lent(), 40u);
  for (int i = 0; i < 39; ++i) buffers.give_back(lent[static_cast<std::size_t>(i)]);
  buffers.give_back(kept);
}

TEST_F(ActivityAggregatorTest, NodesThatGoOnBeingRecordedAfterAWindowKeepTheirOwnTimes) {
  aggregator_.begin_period(1, true, false);
  aggregator_.begin_window();
  const std::int64_t inside = wall_ns();
  deliver({record("a", inside, 100, 1)});
  aggregator_.end_window();
  // Graphs that were made in the start-up window are recorded until CUPTI is asked again.
  deliver({record("a", wall_ns(), 90, 1), record("a", wall_ns(), 130, 1)});
  EXPECT_EQ(recorded(), (Recorded{{"a", {3, 320}}}));
}

TEST_F(ActivityAggregatorTest, WindowsOfOnePeriodAreDistinguished) {
  aggregator_.begin_period(1, true, false);
  aggregator_.begin_window();
  aggregator_.end_window();
  aggregator_.begin_window();
  const std::int64_t inside = wall_ns();
  deliver({record("long", inside, 7'000'000'000, 4)});
  EXPECT_EQ(recorded(), (Recorded{{"long", {1, 7e9}}}));
}

TEST_F(ActivityAggregatorTest, AWindowThatWasRefusedIsNoneThatIsOpen) {
  aggregator_.begin_period(1, true, false);
  aggregator_.begin_window();
  const std::int64_t inside = wall_ns();
  deliver({record("a", inside, 10, 1)});
  while (wall_ns() <= inside + 1000) {
  }
  aggregator_.end_window();
  aggregator_.begin_window();
  aggregator_.drop_window();
  aggregator_.drop_window();  // one that has ended stays
  deliver({record("a", inside, 250'000'000, 1), record("a", wall_ns(), 30, 1)});
  // The end of the first is doubtful: its window has closed.
  EXPECT_EQ(recorded(), (Recorded{{"a", {3, 50}}}));
}

TEST_F(ActivityAggregatorTest, BuffersThatCuptiHasAreAwaited) {
  aggregator_.begin_period(1, true, false);
  EXPECT_FALSE(aggregator_.awaits_records());
  std::uint8_t *first = nullptr, *second = nullptr;
  std::size_t size = 0, most = 0;
  aggregator_.lend(&first, &size, &most);
  aggregator_.lend(&second, &size, &most);
  aggregator_.take(nullptr, 0, first, 0);
  EXPECT_TRUE(aggregator_.awaits_records());
  aggregator_.stop_counter();  // another client may have it, for good
  EXPECT_FALSE(aggregator_.awaits_records());
  aggregator_.lend(&first, &size, &most);
  EXPECT_TRUE(aggregator_.awaits_records());
  aggregator_.take(nullptr, 0, first, 0);
  aggregator_.take(nullptr, 0, second, 0);
  EXPECT_FALSE(aggregator_.awaits_records());
}

TEST_F(ActivityAggregatorTest, RecordsAreCountedOnceWhetherHeldOrNot) {
  aggregator_.begin_period(1, true, false);
  deliver({record("a", wall_ns(), 10), record("b", wall_ns(), 10, 1)});
  aggregator_.begin_period(4, false, false);
  deliver({record("a", wall_ns(), 10), record("a", wall_ns(), 10), record("b", wall_ns(), 10, 1)});
  const ActivityAggregator::Counts counts = aggregator_.take_counts();
  EXPECT_EQ(counts.launches, 3);
  EXPECT_EQ(counts.nodes, 2);
  EXPECT_GT(counts.at_work.launches, 0);
  EXPECT_GT(counts.at_work.nodes, 0);
  aggregator_.settle(5, 1, false);
  const ActivityAggregator::Counts settled = aggregator_.take_counts();
  EXPECT_EQ(settled.launches + settled.nodes, 0);
  EXPECT_EQ(recorded(), (Recorded{{"a", {11, 110}}, {"b", {6, 60}}}));
}

// 190 launches between windows of ten, of which time would have 90.
struct WeighedByIds : ActivityAggregatorTest {
  void TestBody() override {}
  bool judged(bool is_last) {
    constexpr std::int64_t kWindowNs = 5'000'000, kPeriodNs = 50'000'000;
    start_after_a_launch();
    std::int64_t now = monotonic_ns();
    for (std::uint32_t window = 1; window <= 2; ++window) {
      until(now += kPeriodNs - kWindowNs);
      aggregator_.begin_period(10, false, false);
      aggregator_.begin_window();
      std::vector<Record> records;
      for (std::uint32_t i = 0; i < 10; ++i)
        for (std::uint64_t node = 1; node <= 3; ++node) {
          records.push_back(record("node", wall_ns(), 10, node));  // three have their replay's id
          records.back().correlationId = 1000 + 200 * window - 9 + i;
        }
      deliver(records);
      until(now += kWindowNs);
      aggregator_.end_window();
      aggregator_.settle(10, static_cast<double>(kPeriodNs), window == 2);
    }
    if (late_ns_ > kWindowNs / 4 && !is_last) return false;
    EXPECT_EQ(aggregator_.estimate().counted, 2);
    EXPECT_EQ(aggregator_.estimate().timed, 0);
    const auto rows = recorded();
    EXPECT_EQ(rows.at("a").first, 1);
    EXPECT_NEAR(rows.at("node").first, 3 * 400, 3 * 40);
    return true;
  }
};

TEST(ActivityAggregator, WindowsAreWeighedByWhatIdsSayLiesBetween) {
  until_undisturbed<WeighedByIds>();
}

// CUPTI returns the records of the first two windows at once. The 190 launches between them were
// not recorded, so they do not show that launches have more than one id each.
struct RecordsComeTogether : ActivityAggregatorTest {
  void TestBody() override {}
  bool judged(bool is_last) {
    constexpr std::int64_t kWindowNs = 5'000'000, kPeriodNs = 50'000'000;
    start_after_a_launch();
    std::int64_t now = monotonic_ns();
    std::vector<Record> records;
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, most = 0;
    for (std::uint32_t window = 1; window <= 4; ++window) {
      until(now += kPeriodNs - kWindowNs);
      aggregator_.begin_period(10, false, false);
      aggregator_.begin_window();
      for (std::uint32_t i = 0; i < 10; ++i) {
        records.push_back(record("b", wall_ns(), 10));
        records.back().correlationId = 1000 + 200 * window - 9 + i;
      }
      if (window == 1) {
        aggregator_.lend(&buffer, &size, &most);
      } else if (window == 2) {
        EXPECT_LE(records.size() * sizeof(Record), size);
        if (records.size() * sizeof(Record) > size) return true;
        std::memcpy(buffer, records.data(), records.size() * sizeof(Record));
        aggregator_.take(nullptr, 0, buffer, records.size() * sizeof(Record));
      } else {
        deliver(records);
      }
      if (window > 1) records.clear();
      until(now += kWindowNs);
      aggregator_.end_window();
      aggregator_.settle(10, static_cast<double>(kPeriodNs), window == 4);
    }
    if (late_ns_ > kWindowNs / 4 && !is_last) return false;
    EXPECT_NEAR(recorded().at("b").first, 800, 80);
    return true;
  }
};

TEST(ActivityAggregator, WindowsWhoseRecordsComeTogetherDoNotTeachIdsPerLaunch) {
  until_undisturbed<RecordsComeTogether>();
}

// A program's last window opened after its work was done. The number of launches after the window
// before is known by an id at the end, and the launches of that window represent them.
TEST_F(ActivityAggregatorTest, LaunchesAfterTheLastWindowWithLaunchesAreRepresentedByIt) {
  start_after_a_launch();
  until(monotonic_ns() + 10'000'000);
  for (int window = 0; window < 2; ++window) {
    aggregator_.begin_period(10, false, false);
    aggregator_.begin_window();
    std::vector<Record> records;
    for (std::uint32_t i = 1191; window == 0 && i <= 1200; ++i) {
      records.push_back(record("a", wall_ns(), 10));
      records.back().correlationId = i;
    }
    deliver(records);
    aggregator_.end_window();
    if (window == 0) aggregator_.settle(10, 10e6, false);
  }
  deliver_last_id(1500);
  aggregator_.settle(10, 10e6, true);
  EXPECT_NEAR(recorded().at("a").first, 501, 5);
  EXPECT_FALSE(aggregator_.awaits_records());
  EXPECT_EQ(aggregator_.lent_buffers(), 0u);
}

// What was held back of a busy time is not for the little that was launched last.
TEST_F(ActivityAggregatorTest, LaunchesWithoutAWindowAreSpreadOverAllKeptOnes) {
  aggregator_.begin_period(1, true, false);
  Record head = record("busy", wall_ns(), 10);
  head.correlationId = 1000;
  deliver({head});
  aggregator_.start_counter(true);
  std::int64_t before = monotonic_ns();
  const auto window = [&](const char* name, std::uint32_t from, std::uint32_t to, bool last) {
    while (monotonic_ns() < before + 1'000'000) {
    }
    aggregator_.begin_period(10, false, false);
    aggregator_.begin_window();
    std::vector<Record> records;
    for (std::uint32_t id = from; id <= to; ++id) {
      records.push_back(record(name, wall_ns(), 10));
      records.back().correlationId = id;
    }
    deliver(records);
    aggregator_.end_window();
    if (last) deliver_last_id(to);
    const std::int64_t now = monotonic_ns();  // as long as the period was, on a busy machine too
    aggregator_.settle(10, static_cast<double>(now - std::exchange(before, now)), last);
  };
  for (std::uint32_t i = 1; i <= 40; ++i)
    window("busy", 1000 + 1000 * i - 99, 1000 + 1000 * i, false);
  // 5,000 of which no window saw any, and then hardly anything.
  window("quiet", 46'001, 46'001, false);
  window("quiet", 46'002, 46'002, true);
  const auto rows = recorded();
  EXPECT_GT(rows.at("busy").first, 44'000);
  EXPECT_LT(rows.at("quiet").first, 1'000);
  EXPECT_NEAR(rows.at("busy").first + rows.at("quiet").first, 45'003, 1);
}

TEST_F(ActivityAggregatorTest, TimeWeighsWindowsWhereIdsAreTheSameForAll) {
  aggregator_.begin_period(1, true, false);
  deliver({record("a", wall_ns(), 10)});
  aggregator_.start_counter(true);
  for (int window = 0; window < 3; ++window) {
    aggregator_.begin_period(5, false, false);
    aggregator_.begin_window();
    deliver({record("a", wall_ns(), 10)});
    aggregator_.end_window();
    aggregator_.settle(5, 1e6, window == 2);
  }
  EXPECT_EQ(aggregator_.estimate().counted, 0);
  EXPECT_EQ(aggregator_.estimate().timed, 3);
  EXPECT_EQ(recorded(), (Recorded{{"a", {16, 160}}}));
}

// A stream had a second. By time alone the window represents ten.
TEST_F(ActivityAggregatorTest, AWindowByTimeRepresentsNoMoreThanItsStreamCanHaveRun) {
  const std::int64_t now = wall_ns();
  deliver({record("a", now - 1'000'000'000, 200'000'000)});
  aggregator_.begin_period(100, false, false);
  aggregator_.begin_window();
  deliver({record("a", wall_ns(), 100'000'000)});
  aggregator_.end_window();
  aggregator_.settle(100, 1e9, true, 0, {0.25, -0.5});
  const ActivityAggregator::Estimate estimate = aggregator_.estimate();
  const auto had = static_cast<double>(wall_ns() - now) + 1e9;
  EXPECT_EQ(estimate.timed, 1);
  EXPECT_LE(estimate.total_ns, had);
  EXPECT_GE(estimate.total_ns, 1e9);
  // That time has it represent so much more is a doubt, too.
  EXPECT_GT(estimate.unsure_ns, 8e9);
}

// What the main thread waited more in one window and less in another leaves nothing.
TEST_F(ActivityAggregatorTest, DoubtsOfBothSignsAddUp) {
  aggregator_.begin_period(1, true, false);
  deliver({record("a", wall_ns() - 1'000'000'000, 10)});
  for (const double waited : {0.5, -0.5}) {
    aggregator_.begin_period(10, false, false);
    aggregator_.begin_window();
    deliver({record("a", wall_ns(), 1000)});
    aggregator_.end_window();
    aggregator_.settle(10, 1e6, false, 0, {0, waited});
  }
  EXPECT_EQ(aggregator_.estimate().timed, 2);
  EXPECT_NEAR(aggregator_.estimate().unsure_ns, 0, 1e-6);
}

TEST_F(ActivityAggregatorTest, AHeldBufferHasItsNamesWhenTheirModulesAreGone) {
  aggregator_.begin_period(2, false, false);
  char first[] = "kernel_of_a_module", second[] = "kernel_of_another";
  const std::int64_t start = wall_ns() + 1000;
  deliver({record(first, start, 500), record(first, start, 500), record(first, start, 500)});
  deliver({record(second, start, 500), record(second, start, 500)});
  // The place of a name that was freed is another's now.
  std::memset(first, '?', sizeof first - 1);
  std::memset(second, '!', sizeof second - 1);
  aggregator_.settle(2, 1e9, false);
  EXPECT_EQ(recorded(),
            (Recorded{{"kernel_of_a_module", {6, 3000}}, {"kernel_of_another", {4, 2000}}}));
}

TEST_F(ActivityAggregatorTest, KnownRecordsAreAggregatedBeforeCuptiIsAnswered) {
  aggregator_.begin_period(1, true, false);
  char name[] = "kernel_of_a_module";
  deliver({record(name, wall_ns() + 1000, 500)});
  std::memset(name, '?', sizeof name - 1);
  EXPECT_EQ(recorded(), (Recorded{{"kernel_of_a_module", {1, 500}}}));
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
