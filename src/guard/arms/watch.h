// SPDX-License-Identifier: Apache-2.0
// Watch: the state of the device while a process of an arm runs. A separate thread reads it.
//
// The watch finds foreign processes without pids, which differ between containers: a process that
// computes while none of ours runs is foreign. Thread-safety: belongs to one thread; its own thread
// ends with end(). Failure: an unreadable value is unknown, and never makes a launch unfit.
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
  std::set<std::string> limits;  // the causes of a lower clock at any time
  std::string unfit;             // why the measurement must not count; "" = it counts

  void add(const gpu::DeviceState& state);
  void merge(const Conditions& other);  // all except `unfit`
};
Json to_json(const Conditions& conditions);

class Watch {
 public:
  // Processes on the device now are its neighbours. REQUIRES: none of them is ours.
  Watch(gpu::Monitor& monitor, Clock& clock, double period_s = 0.02);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void begin();  // before a launch
  Conditions end();
  // The processes from before the watch; nullopt = the driver does not list them.
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
