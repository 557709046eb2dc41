// SPDX-License-Identifier: Apache-2.0
// CounterHardware: the functions of the driver and of CUPTI that the counter tier needs. Its tests
// replace this interface with a fake.
//
// A session counts one card in one context. It begins with begin(), has any number of ranges (push,
// launch, pop), and ends with finish(), which returns the numbers of all ranges. These functions
// wait for all of the context's work. They also break a stream capture that is in progress in the
// context. The tier calls them only when the context is idle and nothing is captured.
#pragma once

#include "model/device/counter_cards.h"
#include "profile/capture/cuda/counters/chooser.h"
#include "profile/capture/recording/recorder.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace purlin::profile::capture::cuda {

// The numbers of a session, for values().
struct CounterImage {
  std::vector<std::uint8_t> bytes;
  const void* config = nullptr;
};

// Called on the program's threads, inside its calls of the driver; nothing may throw.
class LaunchListener {
 public:
  virtual ~LaunchListener() = default;
  // Before a launch. True: left() is called on this thread when it has been made.
  virtual bool entering(const LaunchSite& site) = 0;
  virtual void left() = 0;
  virtual void graph_launched() = 0;
  virtual void capture_begins() = 0;  // of a stream; before the driver does it
  virtual void capture_ended() = 0;   // or did not begin
  virtual void context_ends() = 0;    // some context is about to be destroyed
};

class CounterHardware {
 public:
  enum class Answer { kYes, kNotNow, kNever };

  virtual ~CounterHardware() = default;
  // From here on the listener is called for captures and ends of contexts, and for launches while
  // they are watched. False with a reason: another client has the callbacks, or a function is
  // missing.
  virtual bool subscribe(LaunchListener& listener, std::string& reason) = 0;
  virtual void unsubscribe() = 0;
  virtual void watch_launches(bool on) = 0;
  // Of the device of a context; "" if it is not known.
  virtual std::string chip(const void* context) = 0;
  // All work that the context had been given when this was last asked `afresh` has ended. Does not
  // wait and does not call CUPTI, but breaks a capture when asked afresh.
  virtual bool idle(const void* context, bool afresh) = 0;
  // Slow preparations that need no context, on the session's thread before the first session.
  virtual void warm_up() = 0;
  // kNotNow: another tool uses the counters.
  virtual Answer begin(const void* context, const CounterCard& card, std::size_t ranges,
                       bool replay, std::string& reason) = 0;
  virtual bool push(std::size_t range) = 0;
  virtual bool pop() = 0;
  virtual bool finish(CounterImage& image) = 0;
  virtual void leave() = 0;  // gives the counters back
  // The row that the launch's record has: site.symbol must outlive it.
  virtual LaunchFacts facts(const LaunchSite& site) = 0;
  // As many values as the card has metrics. False: there is no such range.
  virtual bool values(const CounterImage& image, std::size_t range,
                      std::vector<double>& values) = 0;
  virtual std::int64_t now_ns() = 0;  // monotonic
  virtual void pause() = 0;           // some microseconds
};

}  // namespace purlin::profile::capture::cuda
