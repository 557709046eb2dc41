// SPDX-License-Identifier: Apache-2.0
// Governor: decides which tier records when, so that what capture takes from the program stays
// within a budget. It owns no clock and calls nothing: it is told the time and what was spent, and
// says what should be open now and when to ask again.
//
// Time is cut into periods; in each, every tier that can afford it gets one window at a random
// place. Tier 0 records launches: what each of its records stands for follows from its windows, so
// its place is drawn first. No two windows overlap. Owned by the Arbiter; thread-safety: none.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace purlin::profile::capture {

struct Window {
  std::int64_t open_ns = 0, close_ns = 0;  // monotonic, planned
  double weight = 1;                       // launches that each recorded one stands for
};

// What a tier asks of its windows.
struct Wishes {
  double share = 0.2;                            // of the budget
  std::int64_t window_ns = 30'000'000;           // length
  std::int64_t least_period_ns = 1'000'000'000;  // from one window to the next
  std::int64_t first_cost_ns = 5'000'000;        // of one window, until the first was measured
};

struct GovernorOptions {
  double budget = 0.01;  // of the program's time
  std::uint64_t seed = 1;
  bool every_launch = false;  // tier 0 is open whenever no other tier is
};

class Governor {
 public:
  static constexpr int kNone = -1;
  static constexpr std::int64_t kPeriodNs = 1'000'000'000;

  struct Decision {
    int tier = kNone;  // what should be open now
    Window window;
    std::int64_t ask_again_ns = 0;
  };

  // The first of the tiers records launches.
  Governor(const GovernorOptions& options, std::vector<Wishes> tiers, std::int64_t now_ns);

  Decision decide(std::int64_t now_ns);
  void spent(int tier, std::int64_t cost_ns);  // of the program's time
  void refused(int tier, bool forever);        // it did not open: not again in this period, or ever

 private:
  struct Planned {
    int tier = kNone;
    Window window;
  };
  struct State {
    Wishes wishes;
    double tokens_ns = 0;  // what it may spend
    double window_cost_ns = 0;
    double spent_ns = 0;  // since its window opened
    std::int64_t last_open_ns = 0;
    bool opened = false, never = false;
  };

  void begin_period(std::int64_t now_ns);
  void place(int tier, std::int64_t now_ns);

  const GovernorOptions options_;
  std::vector<State> tiers_;
  std::mt19937_64 random_;
  std::int64_t period_begin_ns_ = 0, period_end_ns_ = 0;
  std::vector<Planned> planned_;  // in order of time, all but tier 0's
};

}  // namespace purlin::profile::capture
