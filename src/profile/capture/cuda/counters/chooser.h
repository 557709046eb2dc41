// SPDX-License-Identifier: Apache-2.0
// CounterChooser: which launches counters are read for. Every kernel and launch shape gets one
// reading soon, so that its time is known; from then on those that own the program's time are
// preferred, and each card of a kernel is read ever more rarely (after the nth reading, once in
// 2^n of its launches). With a limit, the first launches of every kernel are chosen instead.
//
// Never chosen: what may wait for another kernel or another GPU. While counters are read a kernel
// runs alone, and one that waits for a later launch would wait for ever. By launch attribute
// (cooperative, programmatic dependence), by name (kWaiting in the .cc; docs/guide/profiling.md),
// and until it has been seen to end by itself, with nothing launched after it: its *trial*, which
// the tier makes without counting anything. Where launches come into several streams one such end
// may be luck, and more are asked for.
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

// What is known of a launch before it is made.
struct LaunchSite {
  const void* context = nullptr;
  const void* function = nullptr;
  const void* stream = nullptr;
  const char* symbol = nullptr;  // mangled
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool dependent = false;  // its attributes say that it works with other launches or blocks
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

  // Of every launch while launches are watched: where they go.
  void saw(const LaunchSite& site);
  // As far as is known, after enough of them: none of them can wait for a later one.
  bool single_stream() const { return !several_streams_ && seen_ >= kSeen; }
  // Whether this launch should be seen to end by itself, before any like it is counted.
  bool wants_trial(const LaunchSite& site);
  // It did, in so many nanoseconds.
  void tried(const LaunchSite& site, std::int64_t took_ns);
  std::int64_t trial_ns(const LaunchSite& site) const;  // the longest; 0 without any
  // Launches were left out since this was last asked that need a trial.
  bool take_untried() { return std::exchange(untried_, false); }

  // Whether to read `card` of this launch; counts the launch.
  bool choose(const LaunchSite& site, std::size_t card, bool tensor_card);
  // It is being read.
  void took(const LaunchSite& site, std::size_t card);
  // What came of it; a negative one is not known. How long: in any unit, always the same.
  void measured(const LaunchSite& site, double how_long, double tensor_busy);
  // Its work did not end in time. Not chosen again.
  void give_up(const LaunchSite& site);
  // False when every kernel seen is known to leave the tensor cores alone.
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
