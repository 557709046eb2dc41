// SPDX-License-Identifier: Apache-2.0
// CounterChooser: chooses the launches for which counters are read. Every kernel and launch shape
// gets an early first reading, which shows its time. Later readings prefer kernels with much of the
// program's time. Each card of a kernel is read more and more rarely: after the nth reading, once
// in 2^n of its launches. With a limit, the first launches of every kernel are chosen instead.
//
// Launches that may wait for another kernel or another GPU are never chosen. While counters are
// read a kernel runs alone, and one that waits for a later launch would never end. They are known
// by launch attribute (cooperative, programmatic dependence) or by name (kWaiting in the .cc;
// docs/guide/profiling.md). Other kernels need a *trial*: the tier must see one launch end without
// a later launch, and counts nothing. With several streams one such end may be luck, so more
// trials are required.
//
// Owned by the counter tier, used under its gate; thread-safety: none. Memory is bounded.
#pragma once

#include "profile/capture/recording/recorder.h"

#include <array>
#include <cstdint>
#include <regex.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::profile::capture::cuda {

// The facts of a launch before it is made.
struct LaunchSite {
  const void* context = nullptr;
  const void* function = nullptr;
  const void* stream = nullptr;
  const char* symbol = nullptr;  // mangled
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool dependent = false;  // by its attributes it works with other launches or blocks
};

// True for the name of a kernel that may wait for others.
bool waits_for_others(std::string_view symbol);

class NamePattern {
 public:
  NamePattern() = default;
  ~NamePattern();
  NamePattern(const NamePattern&) = delete;
  NamePattern& operator=(const NamePattern&) = delete;
  // A POSIX extended expression; "" is none. False where it is not one.
  bool set(const std::string& expression);
  bool is_set() const { return set_; }
  bool matches(const std::string& symbol) const;  // the mangled or the readable name

 private:
  regex_t compiled_ = {};
  bool set_ = false;
};

class CounterChooser {
 public:
  static constexpr std::size_t kMaxShapes = 10'000;
  static constexpr std::uint64_t kSeen = 256;
  static constexpr std::uint32_t kTrials = 1, kTrialsOfSeveralStreams = 3;

  // Where one is given, only kernels that `only` matches, and none that `never` matches.
  CounterChooser(const NamePattern& only, const NamePattern& never, std::uint32_t limit = 0)
      : only_(only), never_(never), limit_(limit) {}

  // For every launch while launches are watched: records its stream.
  void saw(const LaunchSite& site);
  // True if enough launches were seen, all in one stream: none of them can wait for a later one.
  bool single_stream() const { return !several_streams_ && seen_ >= kSeen; }
  // Whether this launch needs a trial before a launch like it is counted.
  bool wants_trial(const LaunchSite& site);
  // The trial ended after so many nanoseconds.
  void tried(const LaunchSite& site, std::int64_t took_ns);
  std::int64_t trial_ns(const LaunchSite& site) const;  // the longest; 0 without any
  // Whether launches that need a trial were left out since the last call.
  bool take_untried() { return std::exchange(untried_, false); }

  // Whether to read `card` of this launch; counts the launch.
  bool choose(const LaunchSite& site, std::size_t card, bool tensor_card);
  // It is being read.
  void took(const LaunchSite& site, std::size_t card);
  // The result of a reading; a negative value is not known. how_long: in any unit, always the same.
  void measured(const LaunchSite& site, double how_long, double tensor_busy);
  // Its work did not end in time. Not chosen again.
  void give_up(const LaunchSite& site);
  // False if no kernel seen uses the tensor cores.
  bool tensor_cores_used() const;
  std::size_t denied() const { return denied_; }  // kernels and shapes

 private:
  struct Key {
    const void* function;
    std::array<std::uint32_t, 10> shape;
    bool operator==(const Key& other) const {
      return function == other.function && shape == other.shape;
    }
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Card {
    std::uint32_t readings = 0;
    std::uint64_t next = 0;  // the launch from which it may be read again
  };
  struct Shape {
    bool denied = false, no_tensor = false;
    std::uint64_t launches = 0;
    std::uint32_t readings = 0, trials = 0;
    std::int64_t trial_ns = 0;
    double how_long = 0;  // by the last reading
    std::vector<Card> cards;
    double time() const { return how_long * static_cast<double>(launches); }
  };
  static Key key_of(const LaunchSite& site);
  Shape* shape_of(const LaunchSite& site);  // null where there is no room for another
  bool needs_trial(const Shape& shape) const {
    return shape.trials < (several_streams_ ? kTrialsOfSeveralStreams : kTrials);
  }

  const NamePattern& only_;
  const NamePattern& never_;
  std::unordered_map<Key, Shape, KeyHash> shapes_;
  const std::uint32_t limit_;
  double total_time_ = 0;  // of all shapes, as estimated
  std::size_t denied_ = 0;
  const void* stream_ = nullptr;  // of the first launch
  std::uint64_t seen_ = 0;
  bool several_streams_ = false, untried_ = false;
};

}  // namespace purlin::profile::capture::cuda
