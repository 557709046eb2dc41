// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/watch.h"

#include "base/random.h"
#include "guard/check/compare.h"

#include <gtest/gtest.h>

#include <functional>

namespace purlin::guard {
namespace {

class FakeMonitor : public gpu::Monitor {
 public:
  gpu::DeviceState read() override {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  Status lock_clocks(unsigned, unsigned) override { return Status::ok(); }
  Status unlock_clocks() override { return Status::ok(); }
  void set(const std::function<void(gpu::DeviceState&)>& change) {
    const std::lock_guard lock(mutex_);
    change(state_);
  }

 private:
  std::mutex mutex_;
  gpu::DeviceState state_;
};

TEST(Watch, RecordsWhatTheDeviceDid) {
  FakeMonitor monitor;
  FakeClock clock;
  monitor.set([](gpu::DeviceState& state) {
    state = {1980, 41, 300, 700, {}, false, std::vector<unsigned>{}};
  });
  Watch watch(monitor, clock);
  watch.begin();
  monitor.set([](gpu::DeviceState& state) {
    state = {1620, 63, 699, 700, {"power cap"}, false, std::vector<unsigned>{77}};
  });
  // Our process has left the device at the end of the launch.
  monitor.set([](gpu::DeviceState& state) { state.processes->clear(); });
  const Conditions conditions = watch.end();
  EXPECT_EQ(conditions.unfit, "");  // the workload itself causes a power cap
  EXPECT_EQ(conditions.lowest_clock_mhz, 1620);
  EXPECT_EQ(conditions.highest_clock_mhz, 1980);
  EXPECT_EQ(conditions.highest_temperature_c, 63);
  EXPECT_EQ(conditions.limits, std::set<std::string>{"power cap"});
}

TEST(Watch, ADeviceThatProtectsItselfIsUnfit) {
  FakeMonitor monitor;
  FakeClock clock;
  Watch watch(monitor, clock);
  watch.begin();
  monitor.set([](gpu::DeviceState& state) {
    state = {990, 92, 500, 700, {"thermal, hardware"}, true, {}};
  });
  EXPECT_NE(watch.end().unfit.find("thermal, hardware"), std::string::npos);
  monitor.set([](gpu::DeviceState& state) { state.protects_itself = false; });
  watch.begin();
  EXPECT_EQ(watch.end().unfit, "");
}

TEST(Watch, TellsNewcomersFromNeighboursAndFromOurOwn) {
  FakeMonitor monitor;
  FakeClock clock;
  monitor.set([](gpu::DeviceState& state) { state.processes = std::vector<unsigned>{5}; });
  Watch watch(monitor, clock);
  ASSERT_TRUE(watch.neighbours().has_value());
  EXPECT_EQ(watch.neighbours()->size(), 1u);
  watch.begin();
  EXPECT_EQ(watch.end().unfit, "");  // a neighbour is no newcomer
  monitor.set([](gpu::DeviceState& state) { state.processes = std::vector<unsigned>{5, 9}; });
  watch.begin();
  EXPECT_NE(watch.end().unfit.find("process 9"), std::string::npos);
  monitor.set([](gpu::DeviceState& state) { state.processes = std::nullopt; });
  watch.begin();
  EXPECT_EQ(watch.end().unfit, "");
}

// An arm whose process makes the device hot at its third launch.
class HotArm : public Arm {
 public:
  HotArm(FakeMonitor& monitor, Random& random) : monitor_(monitor), random_(random) {}
  std::string label() const override { return "hot"; }
  Status prepare() override { return Status::ok(); }
  const std::vector<Item>& items() const override { return items_; }
  std::string fingerprint() const override { return "hot"; }
  Json record() const override { return Json::object(); }
  Result<Readings> rehearse(const std::vector<Item>& wanted) override { return say(wanted); }
  Result<Readings> launch(const std::vector<Item>& wanted) override {
    const bool hot = ++launches_ == 3;
    monitor_.set([&](gpu::DeviceState& state) {
      state.protects_itself = hot;
      state.limits =
          hot ? std::vector<std::string>{"thermal, hardware"} : std::vector<std::string>{};
    });
    return say(wanted);
  }

 private:
  Readings say(const std::vector<Item>& wanted) {
    Readings readings(1);
    readings[0].item = wanted[0];
    readings[0].process.reading.time_ns = 1e6 * random_.uniform(0.999, 1.001);
    return readings;
  }
  FakeMonitor& monitor_;
  Random& random_;
  std::vector<Item> items_{{"k", "", ""}};
  int launches_ = 0;
};

TEST(Watch, ThePairOfAnUnfitLaunchIsTakenAgain) {
  FakeMonitor monitor;
  FakeClock clock;
  Random noise(1), coins(2);
  Watch watch(monitor, clock);
  HotArm a(monitor, noise), b(monitor, noise);
  PairsOptions options;
  options.watch = &watch;
  const Result<Report> report =
      compare({"t", a, b, Design{}, {}, "", "", Environment{}, "", options, coins, clock});
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(report->items[0].result.verdict, Verdict::kPass);
  EXPECT_EQ(report->items[0].result.pairs, 8);
  // Both arms' third launches are one pair; the next may still begin on a hot device.
  const int rejected = report->measurement.rejected_pairs;
  EXPECT_GE(rejected, 1);
  EXPECT_LE(rejected, 2);
  EXPECT_EQ(report->measurement.launches, 2 * (8 + rejected));
  EXPECT_EQ(report->measurement.conditions.limits.count("thermal, hardware"), 1u);
  const Json json = to_json(*report);
  EXPECT_EQ(json["measurement"]["rejected_pairs"].as_int(), rejected);
  EXPECT_EQ(json["measurement"]["device"]["clock_limits"].size(), 1u);
}

}  // namespace
}  // namespace purlin::guard
