// SPDX-License-Identifier: Apache-2.0
// CostEstimator: estimates the overhead of recording launches and the program's rate of launches,
// from the time in which launches were recorded. Callers report each event when it happens. The
// estimates change at the end of each of the overhead controller's periods. They are averages over
// several periods: when windows are short against a program's steps, one window sees nothing and
// the next a burst. Records may come seconds after their launches; `age_ns` is that delay.
//
// Owned by the OverheadController. Thread-safety: none. Pure arithmetic: it owns no clock.
#pragma once

#include "profile/capture/sampling/work_rates.h"

#include <algorithm>
#include <functional>

namespace purlin::profile::capture {

class CostEstimator {
 public:
  // Of launches into streams, and of nodes of graphs; as rates: per ns.
  using Amounts = WorkRates::Amounts;

  // Amounts since the last call of learn().
  void open(double ns) { open_ns_ += ns; }   // recording was on
  void call(double ns) { calls_ns_ += ns; }  // switching and fetching cost
  void cost(double ns) { cost_ns_ += ns; }   // records cost; negative: given back
  // `at_work`: how many there are in time that has any, as far as recording was on; zeros: not
  // known.
  void launched(const Amounts& amounts, double age_ns, const Amounts& at_work = {});

  struct Period {
    bool startup = false;     // of the program's start
    bool throughout = false;  // recorded without a break
    bool steady = false;      // and so it stays: no window follows
  };
  // `presence`: the share of the program's time that such rates cost by themselves.
  void learn(const Period& period, const std::function<double(const Amounts&)>& presence);

  double cost_density() const { return cost_density_; }      // of records, per ns recorded
  double toggle_cost_ns() const { return toggle_cost_ns_; }  // of calls, per learn()
  const Amounts& rates() const { return rates_; }
  const Amounts& at_work() const { return work_; }  // in time that had launches
  // Of launches, in the busier of the last periods.
  double busy_rate() const { return std::max(rates_.launches, recent_rate_); }

 private:
  void learn_rates(const Period& period, double open_ns, double rest_ns);
  void learn_work(double open_ns, const std::function<double(const Amounts&)>& presence);

  double cost_density_ = 0, toggle_cost_ns_ = 0, recent_rate_ = 0;
  Amounts rates_, work_;

  double open_ns_ = 0, cost_ns_ = 0, calls_ns_ = 0, age_ns_ = 0;
  Amounts launched_;
  double held_open_ns_ = 0;    // of the open time, in periods of which nothing had come
  double rested_open_ns_ = 0;  // before that, since something had
  double work_open_ns_ = 0;
  Amounts new_work_, told_work_;
};

}  // namespace purlin::profile::capture
