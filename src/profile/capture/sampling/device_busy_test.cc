// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/device_busy.h"

#include "profile/capture/sampling/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace purlin::profile::capture {
namespace {

using Hidden = DeviceBusy::Hidden;
constexpr std::int64_t kEpoch = 1'800'000'000 * kSecond;  // of the wall clock
constexpr DeviceBusy::Prices kPrices = {2000, 1000, 0};

struct Record {
  DeviceBusy::Work work;
  int thread = 0;
};

// Back to back, `busy_ns` of each `every_ns`.
std::vector<Record> steady(std::int64_t from, std::int64_t until, std::int64_t every_ns,
                           std::int64_t busy_ns, std::uint32_t stream = 1, int threads = 1) {
  std::vector<Record> records;
  for (std::int64_t at = from; at + busy_ns <= until; at += every_ns)
    records.push_back({{{0, 1, stream}, at, at + busy_ns},
                       static_cast<int>(static_cast<std::int64_t>(records.size()) % threads)});
  return records;
}

// As CUPTI gives them back: a buffer of each thread, when it is full.
template <class After>
void deliver(DeviceBusy& busy, const std::vector<Record>& records, std::size_t each, After after) {
  std::vector<std::vector<DeviceBusy::Work>> buffers(8);
  const auto give = [&](std::vector<DeviceBusy::Work>& works, std::int64_t now) {
    DeviceBusy::Batch batch(now);
    for (const DeviceBusy::Work& work : works) batch.add(work);
    works.clear();
    busy.add(batch);
    after(now);
  };
  for (const Record& record : records) {
    std::vector<DeviceBusy::Work>& buffer = buffers[static_cast<std::size_t>(record.thread)];
    buffer.push_back(record.work);
    if (buffer.size() == each) give(buffer, record.work.end_ns);
  }
  for (std::vector<DeviceBusy::Work>& buffer : buffers)
    if (!buffer.empty()) give(buffer, records.back().work.end_ns + kSecond);
}
void deliver(DeviceBusy& busy, const std::vector<Record>& records, std::size_t each = 100) {
  deliver(busy, records, each, [](std::int64_t) {});
}

Hidden judged(const std::vector<Record>& records, std::size_t each = 100) {
  DeviceBusy busy;
  busy.open(kEpoch);
  deliver(busy, records, each);
  return busy.judge(kPrices);
}
double charged(const Hidden& hidden) { return hidden.estimate_ns - hidden.hidden_ns; }

TEST(DeviceBusy, WhereTheDeviceIsWaitedForOnlyItsIdleTimeIsCharged) {
  // 10,000 launches a second: 2 %; the device rests for 0.5 %.
  const Hidden hidden = judged(steady(kEpoch, kEpoch + 10 * kSecond, 100'000, 99'200));
  EXPECT_NEAR(hidden.estimate_ns, 0.02 * 10e9, 1e5);
  EXPECT_NEAR(charged(hidden), 0.005 * 10e9, 1e6);  // 300 ns of each 800 are the stream's own
  EXPECT_NEAR(hidden.bounded_ns, charged(hidden), 1);
  EXPECT_NEAR(hidden.share, 0.75, 0.01);
}

TEST(DeviceBusy, WhereItRestsTheEstimateStands) {
  const Hidden hidden = judged(steady(kEpoch, kEpoch + 10 * kSecond, 100'000, 50'000));
  EXPECT_EQ(hidden.hidden_ns, 0);
  EXPECT_EQ(hidden.bounded_ns, 0);
  EXPECT_EQ(hidden.share, 0);
}

TEST(DeviceBusy, ThreadsOfOneStreamMayComeInAnyOrder) {
  const std::vector<Record> records = steady(kEpoch, kEpoch + 10 * kSecond, 100'000, 99'200, 1, 3);
  EXPECT_NEAR(charged(judged(records)), 0.005 * 10e9, 1e6);
  EXPECT_NEAR(charged(judged(records, 4855)), 0.005 * 10e9, 1e6);
}

// Two streams that are busy by turns keep the device busy all the time, and neither all the time.
TEST(DeviceBusy, StreamsThatOverlapHideNothingForOneAnother) {
  std::vector<Record> records = steady(kEpoch, kEpoch + 10 * kSecond, 100'000, 60'000, 1);
  for (const Record& record : steady(kEpoch + 40'000, kEpoch + 10 * kSecond, 100'000, 60'000, 2))
    records.push_back(record);
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.work.end_ns < b.work.end_ns; });
  EXPECT_EQ(judged(records).hidden_ns, 0);
}

TEST(DeviceBusy, OfSeveralDevicesTheBusiestCounts) {
  std::vector<Record> records = steady(kEpoch, kEpoch + 10 * kSecond, 200'000, 199'700);
  const double alone = charged(judged(records));
  for (Record record : steady(kEpoch, kEpoch + 10 * kSecond, 200'000, 20'000)) {
    record.work.stream.device = 1;
    record.thread = 1;
    records.push_back(record);
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.work.end_ns < b.work.end_ns; });
  const Hidden both = judged(records);
  EXPECT_NEAR(both.estimate_ns, 0.02 * 10e9, 1e5);
  EXPECT_NEAR(charged(both), alone, 1e6);
}

// The work of the one need not have waited for the other's.
TEST(DeviceBusy, AnotherStreamThatIsTheBusiestHidesNothingAtOnce) {
  std::vector<Record> records;
  const std::int64_t turn = DeviceBusy::kBlockNs, begin = kEpoch - kEpoch % turn + turn;
  for (int i = 0; i < 40; ++i)
    for (const Record& record :
         steady(begin + i * turn, begin + (i + 1) * turn, 100'000, 99'900, i % 2 == 0 ? 1 : 2))
      records.push_back(record);
  DeviceBusy busy;
  busy.open(begin);
  deliver(busy, records);
  const Hidden hidden = busy.judge(kPrices);
  EXPECT_GT(charged(hidden), 0.97 * hidden.estimate_ns);
}

TEST(DeviceBusy, NodesOfGraphsAreDearOnTheDeviceItself) {
  std::vector<Record> records = steady(kEpoch, kEpoch + 4 * kSecond, 100'000, 100'000);
  for (Record& record : records) record.work.node = true;
  const Hidden hidden = judged(records);
  EXPECT_EQ(hidden.estimate_ns, 40'000 * kPrices.node_ns);
  EXPECT_EQ(hidden.hidden_ns, 0);
}

TEST(DeviceBusy, AKernelThatMayWaitForOthersKeepsNoDeviceBusy) {
  std::vector<Record> records = steady(kEpoch, kEpoch + 4 * kSecond, 100'000, 99'900);
  for (std::size_t i = 0; i < records.size(); i += 4) records[i].work.may_wait = true;
  EXPECT_EQ(judged(records).hidden_ns, 0);
}

TEST(DeviceBusy, WhatHasNotComeCountsAsIdleUntilItDoes) {
  DeviceBusy busy;
  busy.open(kEpoch);
  const std::vector<Record> records = steady(kEpoch, kEpoch + 2 * kSecond, 100'000, 99'700, 1, 2);
  std::vector<Record> one, other;
  for (const Record& record : records) (record.thread == 0 ? one : other).push_back(record);
  deliver(busy, one);
  const Hidden half = busy.judge(kPrices);
  EXPECT_EQ(half.hidden_ns, 0);
  deliver(busy, other);  // two seconds late
  const Hidden whole = busy.judge(kPrices);
  EXPECT_GT(whole.hidden_ns, 0.8 * whole.estimate_ns);
  EXPECT_NEAR(whole.estimate_ns, 2 * half.estimate_ns, 1e4);
}

// A minute late: what was charged stays charged.
TEST(DeviceBusy, WhatComesTooLateIsCharged) {
  DeviceBusy busy;
  busy.open(kEpoch);
  deliver(busy, steady(kEpoch + 60 * kSecond, kEpoch + 61 * kSecond, 100'000, 50'000));
  const Hidden before = busy.judge(kPrices);
  deliver(busy, steady(kEpoch, kEpoch + kSecond, 100'000, 99'900));
  const Hidden after = busy.judge(kPrices);
  EXPECT_EQ(after.hidden_ns, before.hidden_ns);
  EXPECT_EQ(after.estimate_ns, before.estimate_ns);
}

TEST(DeviceBusy, OutsideOfTheTimeThatItIsOpenNothingIsHidden) {
  DeviceBusy busy;
  const std::vector<Record> records = steady(kEpoch, kEpoch + 20 * kSecond, 100'000, 99'900);
  deliver(busy, records);
  EXPECT_EQ(busy.judge(kPrices).estimate_ns, 0) << "never opened";
  busy.open(kEpoch + 10 * kSecond);
  busy.close(kEpoch + 12 * kSecond + 100 * kMs);
  deliver(busy, records, 1000);
  const Hidden hidden = busy.judge(kPrices);
  EXPECT_NEAR(hidden.hidden_ns, 0.02 * 2e9, 0.006 * 1e9);
  EXPECT_LT(hidden.hidden_ns, 0.02 * 2e9);
  // And once more: what was hidden before still was.
  busy.open(kEpoch + 30 * kSecond);
  EXPECT_EQ(busy.judge(kPrices).hidden_ns, hidden.hidden_ns);
  deliver(busy, records);
  EXPECT_EQ(busy.judge(kPrices).hidden_ns, hidden.hidden_ns);
  deliver(busy, steady(kEpoch + 30 * kSecond, kEpoch + 40 * kSecond, 100'000, 99'900));
  EXPECT_GT(busy.judge(kPrices).hidden_ns, 4 * hidden.hidden_ns);
}

// Windows are short against a block, and what they brought ran on after they closed.
TEST(DeviceBusy, ShortWindowsHideNothing) {
  DeviceBusy busy;
  for (int i = 0; i < 50; ++i) {
    const std::int64_t from = kEpoch + i * kSecond + 10 * kMs, until = from + 20 * kMs;
    busy.open(from);
    busy.close(until);
    deliver(busy, steady(from, until + 400 * kMs, 100'000, 99'900));
  }
  const Hidden hidden = busy.judge(kPrices);
  EXPECT_LT(hidden.hidden_ns, 0.05 * 50 * 20e6 * 0.02);
}

TEST(DeviceBusy, NonsenseIsNotBelieved) {
  DeviceBusy busy;
  busy.open(kEpoch);
  DeviceBusy::Batch batch(kEpoch + kSecond);
  batch.add({{0, 1, 1}, kEpoch, kEpoch + 3600 * kSecond});  // it ends in an hour
  batch.add({{0, 1, 1}, 0, kEpoch + kMs});
  batch.add({{0, 1, 1}, kEpoch + 2, kEpoch + 1});
  batch.add({{0, 1, 1}, -5, 5});
  busy.add(batch);
  EXPECT_EQ(busy.judge(kPrices).estimate_ns, 0);
}

TEST(DeviceBusy, MemoryAndTimeAreBounded) {
  DeviceBusy busy;
  busy.open(kEpoch);
  for (std::uint32_t stream = 0; stream < 1000; ++stream)
    deliver(busy, steady(kEpoch + stream * kMs, kEpoch + (stream + 20) * kMs, kMs, kMs, stream));
  EXPECT_GT(busy.judge(kPrices).estimate_ns, 0);
  const std::int64_t later = kEpoch + 365 * 86'400 * kSecond;  // a year's rest
  deliver(busy, steady(later, later + 4 * kSecond, 100'000, 99'900));
  EXPECT_GT(busy.judge(kPrices).estimate_ns, 0.02 * 3.9e9);
}

// ---- programs: a host, streams with queues, and the truth ----

struct Launch {
  double host_ns = 0, device_ns = 0;
  int stream = 0, thread = 0, waits_for = -1;  // a stream
  bool synchronizes = false;
};

double run(const std::vector<Launch>& program, double price_ns, std::vector<Record>* records) {
  constexpr double kNaturalGapNs = 800, kLatencyNs = 3000;
  double host = 0, last = 0;
  std::vector<double> free(4, 0);
  std::vector<std::vector<double>> starts(4);
  for (const Launch& launch : program) {
    const auto s = static_cast<std::size_t>(launch.stream);
    host += launch.host_ns + price_ns;
    std::vector<double>& queue = starts[s];
    const auto depth = static_cast<std::size_t>(DeviceBusy::kQueued);
    if (queue.size() >= depth) host = std::max(host, queue[queue.size() - depth]);
    double start = std::max(host + kLatencyNs, free[s] + kNaturalGapNs);
    if (launch.waits_for >= 0)
      start = std::max(start, free[static_cast<std::size_t>(launch.waits_for)]);
    queue.push_back(start);
    free[s] = start + launch.device_ns;
    last = std::max(last, free[s]);
    if (launch.synchronizes) host = std::max(host, last) + 10'000;
    if (records != nullptr)
      records->push_back({{{0, 1, static_cast<std::uint32_t>(launch.stream)},
                           kEpoch + static_cast<std::int64_t>(start),
                           kEpoch + static_cast<std::int64_t>(free[s])},
                          launch.thread});
  }
  return std::max(host, last);
}

// The host fills the queue while the device is busy, and is late with what comes after that.
TEST(DeviceBusy, WhatWasHiddenMayComeToLightLater) {
  constexpr double kPrice = 2000;
  std::vector<Launch> program(1000, {3000, 500'000});
  program.resize(2000, {600'000, 2000});
  std::vector<Record> records;
  const double lost = run(program, kPrice, &records) - run(program, 0, nullptr);
  EXPECT_NEAR(lost, 2000 * kPrice, 1e4);
  DeviceBusy busy;
  busy.open(kEpoch);
  deliver(busy, records);
  EXPECT_GE(charged(busy.judge({kPrice, 0, 0})) + 1, lost);
}

// Of random programs, with phases, none lost more than it is charged.
TEST(DeviceBusy, NoProgramLosesMoreThanItIsCharged) {
  constexpr double kPrice = 2000;
  int hidden_much = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](double low, double high) {
      return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random));
    };
    std::vector<Launch> program;
    const int phases = 1 + static_cast<int>(random() % 6);
    for (int phase = 0; phase < phases; ++phase) {
      const double host = pick(3000, 60'000), device = pick(5000, 400'000);
      const auto streams = static_cast<int>(1 + random() % 3);
      const auto threads = static_cast<int>(1 + random() % 2);
      const std::uint64_t step = 1 + random() % 400;
      const bool bursts = random() % 2 == 0, waits = random() % 3 == 0;
      const int launches = static_cast<int>(pick(300, 30'000));
      for (int i = 0; i < launches; ++i) {
        Launch launch;
        const double noise = std::uniform_real_distribution<double>(0.5, 1.5)(random);
        launch.host_ns = host * noise;
        launch.device_ns = device * (1.5 - noise / 2);
        launch.stream = static_cast<int>(random() % static_cast<std::uint64_t>(streams));
        launch.thread = i / 50 % threads;
        if (streams > 1 && random() % 5 == 0) launch.waits_for = (launch.stream + 1) % streams;
        const bool ends = static_cast<std::uint64_t>(i) % step == step - 1;
        launch.synchronizes = ends && waits;
        if (ends && bursts) launch.host_ns += pick(10'000, 5e6);
        program.push_back(launch);
      }
    }
    std::vector<Record> records;
    const double lost = run(program, kPrice, &records) - run(program, 0, nullptr);
    std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
      return a.work.end_ns < b.work.end_ns;
    });
    DeviceBusy busy;
    busy.open(kEpoch);
    deliver(busy, records, 2000, [&](std::int64_t) { (void)busy.judge({kPrice, 0, 0}); });
    const Hidden hidden = busy.judge({kPrice, 0, 0});
    EXPECT_GE(charged(hidden) + 1, lost) << seed << ": estimated " << hidden.estimate_ns;
    EXPECT_LE(hidden.estimate_ns, kPrice * static_cast<double>(program.size()) + 1) << seed;
    if (hidden.hidden_ns > hidden.estimate_ns / 2) ++hidden_much;
  }
  EXPECT_GT(hidden_much, 20) << "else this says little";
}

}  // namespace
}  // namespace purlin::profile::capture
