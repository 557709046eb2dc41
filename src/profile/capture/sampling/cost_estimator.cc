// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/cost_estimator.h"

#include <algorithm>
#include <utility>

namespace purlin::profile::capture {
namespace {

constexpr double kOneSecondNs = 1e9;
constexpr double kMinNs = 2'500'000;  // of time recorded, that anything is learnt from
constexpr double kRateMemoryNs = 30 * kOneSecondNs;  // of time recorded
constexpr double kWorkNs = 0.2 * kOneSecondNs;       // of it, with launches: enough to know a rate
// Likewise, of a few steps of any program: a burst as the start-up window ends does not decide
// about windows.
constexpr double kRecentNs = kOneSecondNs;
constexpr double kCostMemoryNs = 0.1 * kOneSecondNs;
constexpr double kCostMemorySteadyNs = 10 * kOneSecondNs;
// Where the device always has work, records come in whole buffers, seconds apart: so long is waited
// for them before nothing is taken to have been launched.
constexpr double kLateNs = 5 * kOneSecondNs;

// A mean over about `memory_ns`, 0: of the last time only.
void follow(double& known, double amount, double over_ns, double memory_ns) {
  if (over_ns <= 0) return;
  const double part = memory_ns > 0 ? std::min(1.0, over_ns / memory_ns) : 1;
  known += part * (amount / over_ns - known);
}

}  // namespace

void CostEstimator::launched(const Amounts& amounts, double age_ns, const Amounts& at_work) {
  launched_.launches += amounts.launches;
  launched_.nodes += amounts.nodes;
  age_ns_ = std::max(age_ns_, age_ns);
  told_work_ = at_work;
}

void CostEstimator::learn(const Period& period,
                          const std::function<double(const Amounts&)>& presence) {
  const double all_ns = open_ns_;
  if (all_ns < kMinNs) return;
  if (all_ns > held_open_ns_) {
    toggle_cost_ns_ += (toggle_cost_ns_ > 0 ? 0.2 : 1) * (calls_ns_ - toggle_cost_ns_);
    calls_ns_ = 0;
  }
  const bool none = launched_.launches + launched_.nodes <= 0;
  if (none && period.throughout && all_ns < kLateNs) {
    held_open_ns_ = all_ns;
    return;
  }
  // Delayed records also belong to earlier periods. The remaining time of those periods had no
  // launches.
  const double least_ns = all_ns - std::exchange(held_open_ns_, 0);
  if (none) rested_open_ns_ += all_ns;
  const double open_ns =
      none ? all_ns : std::clamp(age_ns_, least_ns, all_ns + std::exchange(rested_open_ns_, 0));
  // In windows the rates of whole stretches of time are not known.
  if (period.throughout && told_work_.launches + told_work_.nodes > 0)
    work_ = told_work_;
  else
    learn_work(open_ns, presence);
  follow(cost_density_, std::max(0.0, cost_ns_), all_ns,
         cost_density_ <= 0 ? 0
         : period.steady    ? kCostMemorySteadyNs
                            : kCostMemoryNs);
  learn_rates(period, open_ns, std::max(0.0, all_ns - open_ns));
  open_ns_ = cost_ns_ = age_ns_ = 0;
  launched_ = {};
}

void CostEstimator::learn_rates(const Period& period, double open_ns, double rest_ns) {
  // A program with a long start suddenly launches at a rate far above its average until then. When
  // the buffers of several threads arrive one after the other, each reports the same time.
  const double recent_ns = std::max(kRecentNs, 2 * age_ns_);
  follow(recent_rate_, 0, rest_ns, recent_ns);
  follow(recent_rate_, launched_.launches, open_ns, recent_ns);
  // The start-up window's rates are those of its end; later bursts count as part of the whole.
  if (period.startup && launched_.launches + launched_.nodes <= 0) return;
  const bool first = rates_.launches + rates_.nodes <= 0;
  const double memory_ns = first            ? 0
                           : period.startup ? recent_ns
                                            : std::max(recent_ns, kRateMemoryNs);
  if (!period.startup) follow(rates_.launches, 0, rest_ns, memory_ns);
  if (!period.startup) follow(rates_.nodes, 0, rest_ns, memory_ns);
  follow(rates_.launches, launched_.launches, open_ns, memory_ns);
  follow(rates_.nodes, launched_.nodes, open_ns, memory_ns);
}

// Of time in which nothing was launched nothing is learnt, so that a program that rests for hours
// is known as it works. More than thought is believed soon, less by and by.
void CostEstimator::learn_work(double open_ns,
                               const std::function<double(const Amounts&)>& presence) {
  if (launched_.launches + launched_.nodes <= 0) return;
  work_open_ns_ += open_ns;
  new_work_.launches += launched_.launches;
  new_work_.nodes += launched_.nodes;
  const bool first = work_.launches + work_.nodes <= 0;
  if (work_open_ns_ < kWorkNs && !first) return;
  const Amounts seen = {new_work_.launches / work_open_ns_, new_work_.nodes / work_open_ns_};
  new_work_ = {};
  work_open_ns_ = 0;
  const double part = first ? 1 : presence(seen) > presence(work_) ? 0.7 : 0.2;
  work_.launches += part * (seen.launches - work_.launches);
  work_.nodes += part * (seen.nodes - work_.nodes);
}

}  // namespace purlin::profile::capture
