// SPDX-License-Identifier: Apache-2.0
// HostCalls: when the host waited for a device, copied or launched a graph, from CUPTI's callbacks
// of these driver calls. Other launches have no callback. Callbacks leave nothing in later
// launches, as records of calls do (bench/results/cupti_calls_cost.md). While launches are
// recorded, the calls go to the timeline. After that their number goes on: it shows how fast the
// program's steps are when nothing is recorded (analyze/timeline/pace.h).
//
// CUPTI has one subscriber in a process. Another client gets it at once and for good (yield).
// Owned by the ActivityTier, with the turn held as every Tier; callbacks come on all threads.
#pragma once

#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/recording/call_log.h"
#include "profile/capture/recording/recorder.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace purlin::profile::capture::cuda {

class HostCalls {
 public:
  // The cost of one callback; measured as 0.4 us for both of a launch.
  static constexpr std::int64_t kCallbackNs = 400;

  HostCalls(const Cupti& cupti, Recorder& recorder) : cupti_(cupti), recorder_(recorder) {}

  // From now on calls go to the timeline. Subscribes at the first time.
  void open();
  // From now on they are counted only.
  void close() { in_timeline_ = false; }
  // Hands the logged calls to the recorder, before the launches of the same time.
  void collect();
  // Once in a while after recording has ended for good. Writes the pace since the last time, and
  // ends the watch after kPaces.
  void rest();
  // Gives up the callbacks for good.
  void yield();
  std::int64_t take_cost_ns() { return cost_ns_.exchange(0); }

 private:
  static constexpr int kPaces = 10;
  static constexpr double kMostCallsPerS = 20'000;  // beyond, counting them has a cost

  static void CUPTIAPI called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void* data);
  void left(CUpti_CallbackId id, std::int64_t began_ns);
  bool count_pace();

  const Cupti& cupti_;
  Recorder& recorder_;
  std::mutex mutex_;  // of the subscription: a client's thread may end it
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool over_ = false;
  std::unique_ptr<CallLog> log_;  // never freed before the process ends
  std::atomic<bool> in_timeline_ = false;
  std::atomic<std::uint64_t> calls_ = 0, dropped_ = 0;
  std::atomic<std::int64_t> cost_ns_ = 0;
  std::uint64_t paced_calls_ = 0;
  std::int64_t paced_ns_ = 0;  // begin of the present pace; 0: none
  int paces_ = 0;
};

}  // namespace purlin::profile::capture::cuda
