// SPDX-License-Identifier: Apache-2.0
// OverheadController: decides which tier records when, so that what capture takes from the program
// stays within a budget, and knows what the recorded launches stand for. It owns no clock and calls
// nothing: it is told the time and what was spent, and says what should be open now and when to ask
// again.
//
// Time is cut into periods of random length. In each, tier 0 (the one that records launches) has
// one window at a random place, or stays open throughout where the budget allows it; other tiers
// that can afford it have one window each in what is left. Length and place are drawn before the
// period begins, from what earlier periods cost, never from what the window sees: hence a launch is
// recorded with a chance that does not depend on it, and its weight, the period's time divided by
// the window's, is an unbiased estimate (Horvitz and Thompson); who can count launches sets right
// what a program does less while it is recorded (launch_counter.h). Only a period that is recorded
// throughout, at weight 1, may be cut short by what it sees.
//
// Each tier has a purse: it fills with the budget's share of passing time, up to five seconds'
// worth, and pays for what its windows cost.
//
// The *head*: tier 0 is open from the start, so that start, warm-up and short programs are recorded
// in full, until that has cost ten seconds' worth of the budget or ten seconds have passed since
// the first launch. It goes on where it is cheap. Where it is not, opening again has a lasting
// price for every later launch (cost_model.h): if that is more than half of the budget, the program
// is launch bound and tier 0 stays shut, but for what is asked for expressly; else windows begin
// (where they are wanted: ControllerOptions::windows), with what the lasting price leaves of the
// budget. Graphs that were made in the head stay dearer until tier 0 was open once more, and CUPTI
// numbers launches from then on only: hence it is cycled, opened and shut with nothing between, as
// soon as the head has ended and windows are to follow. Where tier 0 was first opened once there
// was a context (ControllerOptions::after_context) all that is so from the beginning: its lasting
// price is being paid, and launches have numbers.
//
// Owned by the CollectorScheduler. Thread-safety: none.
#pragma once

#include "profile/capture/sampling/cost_estimator.h"
#include "profile/capture/sampling/cost_model.h"
#include "profile/capture/sampling/device_busy.h"

#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace purlin::profile::capture {

struct Window {
  std::int64_t open_ns = 0, close_ns = 0;  // monotonic, planned
  double weight = 1;                       // launches that each recorded one stands for
};

// What a tier asks of its windows.
struct Requirements {
  double share = 0.2;          // of the budget; tier 0 has what the others leave
  double min_budget = 0;       // of the program's time: where its share of the budget is less
  bool windows = true;         // false: it works without any
  bool pins_launches = false;  // tier 0 cannot open again beside it, and stays open
  std::int64_t window_ns = 30'000'000;         // length; tier 0's is worked out
  std::int64_t min_period_ns = 1'000'000'000;  // from one window to the next
  std::int64_t first_cost_ns = 5'000'000;      // of one window, until the first was measured
};

struct ControllerOptions {
  double budget = 0.01;  // of the program's time
  std::uint64_t seed = 1;
  bool every_launch = false;  // tier 0 is open whenever no other tier is, whatever it costs
  bool idle = false;          // nothing is open until start() or record()
  bool waits = false;         // tier 0 records the host's waits, too, at their price
  // Windows follow the head where not everything can be had; else nothing does.
  bool windows = true;
  // Tier 0 is opened when the program has a context already (cuda/collector scheduler.h), and not
  // before: what opening it again costs each later launch is paid from the beginning.
  bool after_context = false;
  // Recorded in full, whatever it costs: so much time at a random place in each such cell. 0: none.
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
    bool full = false;  // every launch is wanted, with its time
    // Tier 0's records from here on stand for another time than those before: see take_weight.
    bool new_period = false;
    std::int64_t ask_again_ns = 0;
  };

  struct Totals {
    double governed_ns = 0;  // time that records stand for, and that they may
    double recorded_ns = 0;  // of that, with tier 0 open
    double windows = 0;      // of tier 0
    double unseen_ns = 0;    // with nothing recorded, in a program that is launch bound
    double spent_ns = 0;     // by all tiers, and what of it the program may have felt
    double hidden_ns = 0;    // besides, while the program waited for a device
  };

  // The first of the tiers records launches.
  OverheadController(const ControllerOptions& options, const std::vector<Requirements>& tiers,
                     std::int64_t now_ns);

  Decision decide(std::int64_t now_ns);

  // What happened.
  void opened(int tier, std::int64_t now_ns);
  void refused(int tier, bool forever, std::int64_t now_ns);
  void closed(int tier, std::int64_t now_ns);
  void spent(int tier, std::int64_t cost_ns);
  // By tier 0, for each record and not for each window: a longer window costs more of it.
  void spent_on_records(std::int64_t cost_ns);
  void spent_once(std::int64_t cost_ns) { totals_.spent_ns += static_cast<double>(cost_ns); }
  // By tier 0: into streams, of graphs; so long ago did the first of them begin, and so many are
  // there while the program is at work (zeros: not known).
  void recorded(double launches, double nodes, std::int64_t age_ns = 0,
                const WorkRates::Amounts& at_work = {});
  // What of tier 0's prices the program cannot have felt, since the beginning: they are charged
  // when they are told of, and given back here. The prices that this is to be judged by:
  DeviceBusy::Prices prices(std::int64_t now_ns) const;
  void hidden(const DeviceBusy::Hidden& hidden);
  // Nothing can be open from here on: CUPTI is another's, or the program ends.
  void interrupted(std::int64_t now_ns);

  struct Standing {
    double weight = 1;
    double time_ns = 0;  // that they stand for
  };
  // What tier 0's records since the last call stand for each. To be asked before a window of
  // another period opens, and when there will be none (`last`).
  Standing take_weight(bool last = false);
  // How long tier 0 was open since the last call for what stands for itself.
  double take_alone_ns() { return std::exchange(alone_ns_, 0); }
  // The same of the window that opens now, as planned; exact where it says so.
  double planned_weight() const { return planned_weight_; }
  bool weight_is_final() const { return final_; }

  // On demand.
  void start(std::int64_t now_ns);                           // govern
  void stop(std::int64_t now_ns);                            // nothing open
  void record(std::int64_t now_ns, std::int64_t length_ns);  // in full, then as before
  bool stopped() const { return stopped_; }
  bool recording(std::int64_t now_ns) const { return now_ns < full_until_ns_; }
  void back_off();  // from now on, half the budget
  // Whether copies are still recorded though nothing else is: every launch pays for that.
  void copies_stay(bool stay) { copies_stay_ = stay; }

  bool head() const { return head_; }
  // Nothing follows the head: windows are not wanted, or (launch-bound) they would cost too much.
  bool ended() const { return ended_; }
  bool launch_bound() const { return ended_ && launch_bound_; }
  double launches_per_s() const { return estimator_.busy_rate() * 1e9; }
  double lasting_share() const { return estimator_.busy_rate() * options_.costs.lasting_launch_ns; }
  double copies_share() const { return estimator_.busy_rate() * options_.costs.copies_launch_ns; }
  double copies_presence() const { return copies_stay_ ? copies_share() : 0; }
  bool partly() const { return ended_ || windowed_; }  // not every launch is recorded
  bool beyond_windows() const { return lasting_share() > options_.budget / 2; }
  // Of the program's time, what CUPTI takes by being there, whatever is recorded: of all of it, and
  // of that in which the program has work for the device.
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
  // Whether windows are to stand for what comes, too.
  bool windows_may_follow() const {
    return !stopped_ && (options_.windows || options_.full_window_ns > 0);
  }
  bool waits() const { return options_.waits; }

 private:
  struct Planned {
    int tier = kNone;
    Window window;
  };
  struct State {
    Requirements requirements;
    double balance_ns = 0;
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
  double presence_of(const CostEstimator::Amounts& rates) const;
  // What is hidden is known of what is recorded only.
  double felt(double share) const { return ended_ ? share : share * (1 - hidden_share_); }
  double launch_price_ns() const {
    return options_.costs.launch_ns + (options_.waits ? options_.costs.waits_launch_ns : 0);
  }
  bool windows_are_worth_it();
  bool others_due(std::int64_t now_ns) const;
  bool due(const State& tier, std::int64_t now_ns) const;
  void follow_full_windows(std::int64_t now_ns);
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
  bool pinned_ = false;                     // tier 0 stays open whatever it costs

  std::int64_t period_begin_ns_ = 0, period_end_ns_ = 0, earned_until_ns_ = 0;
  std::vector<Planned> planned_;  // windows of the period, in order of time
  bool throughout_ = false;       // tier 0 is open whenever nothing else is
  bool final_ = true;             // what the period records stands for itself only
  bool open_final_ = true;        // what is being recorded does
  double planned_weight_ = 1;
  bool period_is_new_ = true;
  bool head_ = true, ended_ = false, launch_bound_ = false, cycle_due_ = false;
  bool copies_stay_ = false;
  bool windowed_ = false;  // windows were planned, as not everything could be had
  bool lasting_ = false;   // tier 0 was opened a second time, or may be: the price is being paid
  double head_cost_ns_ = 0;
  std::int64_t first_launch_ns_ = -1;
  bool full_ = false;

  CostEstimator estimator_;  // of tier 0
  double forgone_ns_ = 0;    // earned while it was open, and not kept
  std::int64_t open_since_ns_ = -1;

  // Of tier 0: the time not yet stood for, the windows that stand for it, and those that stand for
  // themselves.
  double standing_ns_ = 0, open_ns_ = 0, alone_ns_ = 0;
  double outlasted_ns_ = 0;  // of a period without records, in which it was open nevertheless

  double launches_ = 0, nodes_ = 0;  // recorded by tier 0
  double other_costs_ns_ = 0;        // of tier 0, by the clock: calls, and the records' folding
  double presence_ns_ = 0;           // charged for it
  double given_back_ns_ = 0;         // of what records cost, and of the margin
  double hidden_share_ = 0;          // of late

  std::int64_t full_until_ns_ = 0, full_next_ns_ = kNever, full_cell_end_ns_ = 0;
  std::int64_t asked_ns_ = 0;  // the length of a window asked for, until it opens
  Totals totals_;
};

}  // namespace purlin::profile::capture
