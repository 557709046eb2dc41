// SPDX-License-Identifier: Apache-2.0
// The overhead controller with programs that wait for their devices: what it charges, and what it
// makes of it. Records come in whole buffers, some late.
#include "profile/capture/sampling/overhead_controller.h"
#include "profile/capture/sampling/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace purlin::profile::capture {
namespace {

struct DeviceProgram {
  std::function<double(std::int64_t)> launches_per_s;
  std::function<double(std::int64_t)> busy;  // of its time, the first device
  double other_busy = 0;                     // the second
  int threads = 1;                           // that launch: buffers are theirs
  std::int64_t late_ns = 0;                  // that full buffers come
};

struct DeviceOutcome {
  double launches = 0, recorded = 0, felt_ns = 0, worst_ten_seconds = 0;
  int opened = 0;
  std::int64_t ended_ns = 0;
  OverheadController::Totals totals;
  double presence = 0;
};

DeviceOutcome simulate(const ControllerOptions& options, std::int64_t length_ns,
                       const DeviceProgram& program) {
  constexpr std::size_t kBuffer = 4855;
  struct Buffer {
    std::int64_t due_ns = 0;
    std::vector<DeviceBusy::Work> works = {};
  };
  DeviceOutcome out;
  OverheadController controller(options, {Requirements{}}, 1);
  DeviceBusy busy;
  std::vector<Buffer> filling(static_cast<std::size_t>(program.threads)), coming;
  bool open = false;
  std::int64_t wake = 0;
  std::uint64_t made = 0;
  double owed = 0;
  std::vector<double> felt_until;
  for (std::int64_t now = kMs; now < length_ns; now += kMs) {
    owed += program.launches_per_s(now) / 1e3;
    const auto launches = static_cast<int>(owed);
    owed -= launches;
    out.launches += launches;
    const auto each = launches > 0 ? kMs / launches : 0;
    for (int i = 0; open && i < launches; ++i) {
      const std::int64_t start = now - kMs + i * each;
      const auto device = static_cast<std::uint32_t>(program.other_busy > 0 ? made % 2 : 0);
      const double part = device == 0 ? program.busy(now) : program.other_busy;
      const std::int64_t until =
          start + static_cast<std::int64_t>(part * static_cast<double>(each));
      Buffer& buffer = filling[made++ % filling.size()];
      buffer.works.push_back({{device, 1, 7}, start, until});
      // The first has work all the time: its kernels last from one of them to the next.
      if (device == 0 && program.other_busy > 0) buffer.works.back().end_ns += until - start;
      if (buffer.works.size() < kBuffer) continue;
      buffer.due_ns = now + program.late_ns;
      coming.push_back(std::exchange(buffer, {}));
    }
    if (open) {
      out.recorded += launches;
      out.felt_ns += std::min(launches * options.costs.launch_ns, (1 - program.busy(now)) * kMs);
    }
    felt_until.push_back(out.felt_ns);
    bool poked = false;
    for (std::size_t i = 0; i < coming.size();) {
      if (coming[i].due_ns > now) {
        ++i;
        continue;
      }
      DeviceBusy::Batch batch(now);
      for (const DeviceBusy::Work& work : coming[i].works) batch.add(work);
      busy.add(batch);
      controller.recorded(static_cast<double>(coming[i].works.size()), 0,
                          now - coming[i].works.front().start_ns);
      coming.erase(coming.begin() + static_cast<std::ptrdiff_t>(i));
      poked = true;
    }
    if (now < wake && !poked) continue;
    controller.hidden(busy.judge(controller.prices(now)));
    const OverheadController::Decision decision = controller.decide(now);
    wake = decision.ask_again_ns;
    if (decision.tier == 0 && !open) controller.opened(0, now), busy.open(now), ++out.opened;
    if (decision.tier != 0 && open) controller.closed(0, now), busy.close(now), out.ended_ns = now;
    open = decision.tier == 0;
  }
  controller.interrupted(length_ns);
  out.totals = controller.totals();
  out.presence = controller.presence_at_work();
  for (std::size_t i = 10'000; i < felt_until.size(); ++i)
    out.worst_ten_seconds =
        std::max(out.worst_ten_seconds, (felt_until[i] - felt_until[i - 10'000]) / 1e10);
  return out;
}

ControllerOptions by_default() {
  ControllerOptions options;
  options.windows = false;
  return options;
}

DeviceProgram device_bound(double launches_per_s = 7500, double busy = 0.994) {
  DeviceProgram program;
  program.launches_per_s = [=](std::int64_t) { return launches_per_s; };
  program.busy = [=](std::int64_t) { return busy; };
  return program;
}

void expect_recorded_throughout(const ControllerOptions& options, const DeviceProgram& program) {
  const double rate = program.launches_per_s(0);
  const DeviceOutcome out = simulate(options, 120 * kSecond, program);
  const auto text = testing::Message() << rate << ", " << program.threads << ", " << program.late_ns
                                       << ", " << options.windows;
  EXPECT_EQ(out.opened, 1) << text;
  EXPECT_EQ(out.ended_ns, 0) << text;
  EXPECT_NEAR(out.recorded, out.launches, 20) << text;
  EXPECT_LE(out.totals.spent_ns / 120e9, 0.01) << text;
  EXPECT_EQ(out.totals.unseen_ns, 0) << text;
  if (rate < 5000) return;
  EXPECT_GT(out.totals.hidden_ns, 0.3 * 120 * rate * 2420) << text;
  if (program.threads == 1) {
    EXPECT_LT(out.presence, 0.8 * rate * 220e-9) << text;
  }
}

TEST(OverheadControllerAndDevices, AProgramThatWaitsForItsDeviceIsRecordedThroughout) {
  for (const double rate : {300.0, 2000.0, 7500.0, 15e3})
    for (const int threads : {1, 2, 8})
      for (const std::int64_t late : {std::int64_t{0}, kSecond})
        for (const bool windows : {false, true}) {
          ControllerOptions options = by_default();
          options.windows = windows;
          DeviceProgram program = device_bound(rate);
          program.threads = threads;
          program.late_ns = late;
          expect_recorded_throughout(options, program);
        }
}

// The same launches, and a device that has time for more.
TEST(OverheadControllerAndDevices, AProgramThatDoesNotHasItsHeadOnly) {
  const DeviceOutcome out = simulate(by_default(), 60 * kSecond, device_bound(7500, 0.9));
  EXPECT_EQ(out.opened, 1);
  EXPECT_GT(out.ended_ns, 5 * kSecond);
  EXPECT_LT(out.ended_ns, 20 * kSecond);
  EXPECT_LE(out.worst_ten_seconds, 0.0165);
  EXPECT_LT(out.totals.hidden_ns, 0.001 * 60e9);
}

TEST(OverheadControllerAndDevices, WhatBecomesLaunchBoundIsNoticed) {
  for (const double rate : {9e3, 3e4, 9e4})
    for (const std::int64_t late : {std::int64_t{0}, kSecond}) {
      DeviceProgram program = device_bound();
      const std::int64_t change = 40 * kSecond;
      program.launches_per_s = [=](std::int64_t now) { return now < change ? 7500 : rate; };
      program.busy = [=](std::int64_t now) { return now < change ? 0.994 : 0.5; };
      program.late_ns = late;
      const DeviceOutcome out = simulate(by_default(), 80 * kSecond, program);
      EXPECT_GT(out.ended_ns, change) << rate;
      EXPECT_LT(out.ended_ns, change + 10 * kSecond) << rate;
      // What is late cannot be known: a second of that.
      const double unknown = static_cast<double>(late) / 1e9 * rate * 2200e-9 / 10;
      EXPECT_LE(out.worst_ten_seconds, 0.018 + unknown) << rate;
    }
}

// It waits for requests, and then for its device: the estimate is small in the one, its idle time
// in the other.
TEST(OverheadControllerAndDevices, AServerThatRestsIsRecordedThroughout) {
  DeviceProgram program = device_bound();
  const auto works = [](std::int64_t now) { return now / (7 * kSecond) % 2 == 1; };
  program.launches_per_s = [=](std::int64_t now) { return works(now) ? 7500 : 20; };
  program.busy = [=](std::int64_t now) { return works(now) ? 0.994 : 0.01; };
  const DeviceOutcome out = simulate(by_default(), 120 * kSecond, program);
  EXPECT_EQ(out.ended_ns, 0);
  EXPECT_LE(out.totals.spent_ns / 120e9, 0.01);
}

TEST(OverheadControllerAndDevices, OfTwoDevicesTheBusierIsWaitedFor) {
  DeviceProgram program = device_bound();
  program.other_busy = 0.05;
  EXPECT_EQ(simulate(by_default(), 60 * kSecond, program).ended_ns, 0);
  program.busy = [](std::int64_t) { return 0.9; };
  EXPECT_GT(simulate(by_default(), 60 * kSecond, program).ended_ns, 0);
}

}  // namespace
}  // namespace purlin::profile::capture
