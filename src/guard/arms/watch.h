// SPDX-License-Identifier: Apache-2.0
// Watch: what happened to the device while a process of an arm ran, read beside it from a thread.
//
// A process that somebody else has put on the device is told from ours without knowing pids, which
// differ between containers: what computes there while none of ours runs is not ours.
// Thread-safety: belongs to one thread; its own thread ends with end(). Failure: what cannot be
// read is not known, and never makes a launch unfit.
#pragma once

#include "base/json/json.h"
#include "base/time.h"
#include "gpu/monitor.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace purlin::guard {

// Of one launch, or of many; 0 = not known.
struct Conditions {
  int readings = 0;
  double lowest_clock_mhz = 0, highest_clock_mhz = 0;
  double highest_temperature_c = 0, highest_power_w = 0;
  std::set<std::string> limits;  // what held the clock down at any time
  std::string unfit;             // why what was measured must not count; "" = it counts

  void add(const gpu::DeviceState& state);
  void merge(const Conditions& other);  // but for `unfit`
};
Json to_json(const Conditions& conditions);

class Watch {
 public:
  // Takes who is on the device now as its neighbours. REQUIRES: no process of ours is on it.
  Watch(gpu::Monitor& monitor, Clock& clock, double period_s = 0.02);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void begin();  // before a launch
  Conditions end();
  // Who was there from the start; nullopt = the driver does not tell.
  const std::optional<std::vector<unsigned>>& neighbours() const { return neighbours_; }

 private:
  std::string newcomer();

  gpu::Monitor& monitor_;
  Clock& clock_;
  double period_s_;
  std::optional<std::vector<unsigned>> neighbours_;
  Conditions conditions_;  // of the launch under way; the thread's until end()
  std::string disturbed_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace purlin::guard
