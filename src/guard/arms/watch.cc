// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/watch.h"

#include "base/text.h"

#include <algorithm>
#include <chrono>

namespace purlin::guard {
namespace {

// A driver lists a process for a moment after its end. Our own must not count as foreign.
constexpr int kFarewells = 10;
constexpr std::int64_t kFarewellNs = 20'000'000;

void widen(double value, double& low, double& high) {
  if (value <= 0) return;
  low = low == 0 ? value : std::min(low, value);
  high = std::max(high, value);
}

}  // namespace

void Conditions::add(const gpu::DeviceState& state) {
  ++readings;
  widen(state.sm_clock_mhz, lowest_clock_mhz, highest_clock_mhz);
  highest_temperature_c = std::max(highest_temperature_c, state.temperature_c);
  highest_power_w = std::max(highest_power_w, state.power_w);
  limits.insert(state.limits.begin(), state.limits.end());
  if (state.protects_itself && unfit.empty())
    unfit = fmt::format("the device slowed itself down ({}) at {:.0f} C and {:.0f} W",
                        join(state.limits, ", "), state.temperature_c, state.power_w);
}

void Conditions::merge(const Conditions& other) {
  readings += other.readings;
  widen(other.lowest_clock_mhz, lowest_clock_mhz, highest_clock_mhz);
  widen(other.highest_clock_mhz, lowest_clock_mhz, highest_clock_mhz);
  highest_temperature_c = std::max(highest_temperature_c, other.highest_temperature_c);
  highest_power_w = std::max(highest_power_w, other.highest_power_w);
  limits.insert(other.limits.begin(), other.limits.end());
}

Json to_json(const Conditions& conditions) {
  return Json::object(
      {{"readings", conditions.readings},
       {"sm_clock_mhz", Json::array({conditions.lowest_clock_mhz, conditions.highest_clock_mhz})},
       {"highest_temperature_c", conditions.highest_temperature_c},
       {"highest_power_w", conditions.highest_power_w},
       {"clock_limits", Json::array_of(conditions.limits)}});
}

Watch::Watch(gpu::Monitor& monitor, Clock& clock, double period_s)
    : monitor_(monitor), clock_(clock), period_s_(period_s) {
  neighbours_ = monitor_.read().processes;
}

Watch::~Watch() {
  if (thread_.joinable()) (void)end();
}

// A process that is on the device now, is not ours, and was not there at the start.
std::string Watch::newcomer() {
  if (!neighbours_) return "";
  for (int farewell = 0;; ++farewell) {
    const std::vector<unsigned> now = monitor_.read().processes.value_or(std::vector<unsigned>());
    const auto stranger = std::find_if(now.begin(), now.end(), [&](unsigned pid) {
      return std::find(neighbours_->begin(), neighbours_->end(), pid) == neighbours_->end();
    });
    if (stranger == now.end()) return "";
    if (farewell == kFarewells) return fmt::format("process {} came onto the device", *stranger);
    clock_.sleep_ns(kFarewellNs);
  }
}

void Watch::begin() {
  disturbed_ = newcomer();
  conditions_ = {};
  conditions_.add(monitor_.read());
  stopping_ = false;
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stop_.wait_for(lock, std::chrono::duration<double>(period_s_),
                           [this] { return stopping_; })) {
      conditions_.add(monitor_.read());
    }
  });
}

Conditions Watch::end() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
  conditions_.add(monitor_.read());
  // A process that came while ours ran is still there, or was too short to matter.
  const std::string came = disturbed_.empty() ? newcomer() : disturbed_;
  if (!came.empty()) conditions_.unfit = came;
  return conditions_;
}

}  // namespace purlin::guard
