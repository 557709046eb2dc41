// SPDX-License-Identifier: Apache-2.0
// OverheadController: decides which tier records now, and how many launches each recorded launch
// represents. The overhead of capture stays within the budget. docs/design/sampling.md explains the
// steps, the terms and the measured case of each mechanism.
//
// Owned by the CollectorScheduler. Thread-safety: none. It owns no clock and calls nothing: callers
// pass the time and the measured overhead. It cannot fail.
//
// Length and place of a window are drawn before its period begins, from the overhead of earlier
// periods. A launch is therefore recorded with a probability that does not depend on the launch.
// The weight, the period's time divided by the window's, is an unbiased estimate (Horvitz and
// Thompson).
#pragma once

#include "profile/capture/sampling/budget_balance.h"
#include "profile/capture/sampling/cost_estimator.h"
#include "profile/capture/sampling/cost_model.h"
#include "profile/capture/sampling/device_busy.h"
#include "profile/capture/sampling/requested_windows.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace purlin::profile::capture {

struct Window {
  std::int64_t open_ns = 0, close_ns = 0;  // monotonic, planned
  double weight = 1;                       // launches that each recorded launch represents
};

// What a tier requires for its windows.
struct Requirements {
  double share = 0.2;                          // Part of the budget; tier 0 has the rest.
  double min_budget = 0;                       // Part of the program's time, if its share is less.
  bool windows = true;                         // False: it has none.
  bool pins_launches = false;                  // Tier 0 cannot reopen next to it: it stays open.
  std::int64_t window_ns = 30'000'000;         // Tier 0 computes its own.
  std::int64_t min_period_ns = 1'000'000'000;  // From one window to the next.
  std::int64_t first_cost_ns = 5'000'000;      // Until the first window was measured.
};

struct ControllerOptions {
  double budget = 0.01;  // of the program's time
  std::uint64_t seed = 1;
  bool every_launch = false;  // tier 0 is open unless another tier is
  bool idle = false;          // nothing is open until start() or record()
  bool waits = false;         // tier 0 also records the host's waits
  // Windows follow the start-up window when the budget does not allow all launches.
  bool windows = true;
  // Tier 0 opens once the program has a context. The lasting overhead exists from then on.
  bool after_context = false;
  // One window of this length in each cell records every launch. 0: none.
  std::int64_t full_window_ns = 0, full_cell_ns = 0;
  CostModel costs;
};

class OverheadController {
 public:
  static constexpr int kNone = -1;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kMinWindowNs = 5'000'000;
  static constexpr std::int64_t kMinPeriodNs = 250'000'000, kMaxPeriodNs = 10'000'000'000;

  struct Decision {
    int tier = kNone;    // what should be open now
    bool cycle = false;  // nothing, but tier 0 is to be opened and closed before
    Window window;
    bool full = false;  // record every launch, with its time
    // Later records of tier 0 represent another time: see take_weight.
    bool new_period = false;
    std::int64_t ask_again_ns = 0;
  };

  struct Totals {
    double governed_ns = 0;  // Time that records represent.
    double recorded_ns = 0;  // Of that, with tier 0 open.
    double windows = 0;      // Of tier 0.
    double unseen_ns = 0;    // Nothing recorded, after the end of recording.
    double spent_ns = 0;     // Overhead of all tiers that the program may notice.
    double hidden_ns = 0;    // Further overhead, while the program waited for a device.
  };

  // The first of the tiers records launches.
  OverheadController(const ControllerOptions& options, const std::vector<Requirements>& tiers,
                     std::int64_t now_ns);

  Decision decide(std::int64_t now_ns);

  // What happened, called when CUPTI's call is over: a call that waits takes effect at its end.
  // `took_ns`: how long the call took.
  void opened(int tier, std::int64_t now_ns, std::int64_t took_ns = 0);
  void refused(int tier, bool forever, std::int64_t now_ns);
  void closed(int tier, std::int64_t now_ns, std::int64_t took_ns = 0);
  // Decision::cycle was carried out: launches in that time were recorded, with weight 1.
  void cycled(std::int64_t took_ns);
  void spent(int tier, std::int64_t cost_ns);
  // By tier 0, for each record.
  void spent_on_records(std::int64_t cost_ns);
  void spent_once(std::int64_t cost_ns) { totals_.spent_ns += static_cast<double>(cost_ns); }
  // By tier 0: into streams, of graphs; so long ago did the first of them begin, and so many are
  // there while the program is at work (zeros: not known). `kernels`: how many of different names
  // were recorded so far.
  void recorded(double launches, double nodes, std::int64_t age_ns = 0,
                const WorkRates::Amounts& at_work = {}, std::size_t kernels = 0);
  // The part of tier 0's overhead that device waits hid, since the beginning. It was charged when
  // reported and is returned here. prices(): the overhead per record to compute it with.
  DeviceBusy::Prices prices(std::int64_t now_ns) const;
  void hidden(const DeviceBusy::Hidden& hidden);
  // Nothing can be open now: another client has CUPTI, or the program ends.
  void interrupted(std::int64_t now_ns);

  struct Standing {
    double weight = 1;
    double time_ns = 0;  // that they represent
    double unsure = 0;   // Of the windows' length: the part spent in calls that switched them.
  };
  // The weight of tier 0's records since the last call. Call it before a window of another period
  // opens, and at the end (`last`).
  Standing take_weight(bool last = false);
  // Time since the last call in which tier 0 recorded at weight 1.
  double take_alone_ns() { return std::exchange(alone_ns_, 0); }
  // The planned weight of the window that opens now; exact if it is final.
  double planned_weight() const { return planned_weight_; }
  bool weight_is_final() const { return final_; }

  // On demand.
  void start(std::int64_t now_ns);                           // within the budget
  void stop(std::int64_t now_ns);                            // nothing open
  void record(std::int64_t now_ns, std::int64_t length_ns);  // in full, then as before
  bool stopped() const { return stopped_; }
  bool recording(std::int64_t now_ns) const { return requested_.active(now_ns); }
  void back_off();  // from now on, half the budget
  // Whether memcpy and memset alone are recorded: this adds overhead to every launch.
  void copies_stay(bool stay) { copies_stay_ = stay; }

  bool in_startup_window() const { return in_startup_; }
  // Nothing follows the start-up window: no windows are wanted, or the program is launch-bound.
  bool ended() const { return ended_; }
  bool launch_bound() const { return ended_ && launch_bound_; }
  double launches_per_s() const { return estimator_.busy_rate() * 1e9; }
  // Launches and nodes of graphs.
  double records_per_s() const {
    return (estimator_.rates().launches + estimator_.rates().nodes) * 1e9;
  }
  double lasting_share() const { return estimator_.busy_rate() * options_.costs.lasting_launch_ns; }
  double copies_share() const { return estimator_.busy_rate() * options_.costs.copies_launch_ns; }
  double copies_presence() const { return copies_stay_ ? copies_share() : 0; }
  bool partly() const { return ended_ || windowed_; }  // not every launch is recorded
  bool beyond_windows() const { return lasting_share() > options_.budget / 2; }
  // CUPTI's presence as a share of the program's time, and of its time at work.
  double unavoidable_share() const {
    return felt(presence_of(estimator_.rates())) + copies_presence();
  }
  double presence_at_work() const { return felt(presence_of(estimator_.at_work())); }
  double launches_per_s_at_work() const { return estimator_.at_work().launches * 1e9; }
  double nodes_per_s_at_work() const { return estimator_.at_work().nodes * 1e9; }

  std::int64_t period_end_ns() const { return running_ ? period_end_ns_ : kNever; }

  const Totals& totals() const { return totals_; }
  double budget() const { return options_.budget; }
  bool every_launch() const { return options_.every_launch; }
  bool after_context() const { return options_.after_context; }
  // Whether later windows may represent the time to come.
  bool windows_may_follow() const {
    return !stopped_ && (options_.windows || requested_.in_cells());
  }
  bool waits() const { return options_.waits; }

 private:
  struct Planned {
    int tier = kNone;
    Window window;
  };
  struct State {
    Requirements requirements;
    BudgetBalance balance;
    double window_cost_ns = 0;  // of a whole window: tiers after the first
    double since_open_ns = 0;
    std::int64_t last_open_ns = 0;
    bool opened = false, never = false;
  };

  State& state(int tier) { return tiers_[static_cast<std::size_t>(tier)]; }
  void begin_period(std::int64_t now_ns);
  void end_period(std::int64_t now_ns);
  double still_open_ns(std::int64_t now_ns) const;
  void earn(std::int64_t now_ns);
  void plan_launches(std::int64_t now_ns);
  void plan_others(std::int64_t now_ns);
  double presence_of(const CostEstimator::Amounts& rates) const {
    return options_.costs.presence(rates.launches, rates.nodes, lasting_);
  }
  // The hidden part is known only while launches are recorded.
  double felt(double share) const { return ended_ ? share : share * (1 - hidden_share_); }
  double launch_price_ns() const {
    return options_.costs.launch_ns + (options_.waits ? options_.costs.waits_launch_ns : 0);
  }
  bool windows_are_worth_it();
  bool others_due(std::int64_t now_ns) const;
  bool due(const State& tier, std::int64_t now_ns) const;
  void follow_requests(std::int64_t now_ns);
  bool overspent() const;
  bool overlaps(const Window& window) const;
  void insert(int tier, const Window& window);
  double income(const State& tier) const;  // per ns
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  ControllerOptions options_;
  std::vector<State> tiers_;
  std::mt19937_64 random_;
  bool stopped_ = false, running_ = false;  // running: inside a period
  bool pinned_ = false;                     // tier 0 stays open

  std::int64_t period_begin_ns_ = 0, period_end_ns_ = 0, earned_until_ns_ = 0;
  std::vector<Planned> planned_;  // windows of the period, in order of time
  bool throughout_ = false;       // tier 0 is open whenever nothing else is
  bool final_ = true;             // the period's records have weight 1
  bool open_final_ = true;        // the open records have
  double planned_weight_ = 1;
  bool period_is_new_ = true;
  bool in_startup_ = true, ended_ = false, launch_bound_ = false, cycle_due_ = false;
  bool copies_stay_ = false;
  bool windowed_ = false;  // windows were planned: not every launch is recorded
  bool lasting_ = false;   // the lasting overhead exists
  double startup_cost_ns_ = 0;
  std::size_t kernels_ = 0;   // names recorded so far
  double known_cost_ns_ = 0;  // of records since the last new one
  std::int64_t first_launch_ns_ = -1;
  RequestedWindows requested_;
  bool full_ = false;  // one is active

  CostEstimator estimator_;  // of tier 0
  std::int64_t open_since_ns_ = -1;
  std::int64_t wanted_ns_ = -1;  // since when it is to be open for a new period, and is not yet

  // Of tier 0: time that is not yet represented, the windows for it, and windows of weight 1.
  double standing_ns_ = 0, open_ns_ = 0, alone_ns_ = 0;
  double unsure_ns_ = 0;       // of open_ns_: calls that opened and closed
  double outlasted_ns_ = 0;    // open in a period without records
  bool outlasts_ = false;      // the open window is of an earlier period
  double represented_ns_ = 0;  // of the running period, by such a window and by a cycle

  double launches_ = 0, nodes_ = 0;  // recorded by tier 0
  double other_costs_ns_ = 0;        // of tier 0, by the clock: calls, and the records' folding
  double presence_ns_ = 0;           // charged for it
  double given_back_ns_ = 0;         // of what records cost, and of the margin
  double hidden_share_ = 0;          // of late

  Totals totals_;
};

}  // namespace purlin::profile::capture
