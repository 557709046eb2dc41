// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/overhead_controller.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace purlin::profile::capture {
namespace {

constexpr std::int64_t kAloneNs = 1'000'000'000;
constexpr double kSecondNs = 1e9;
constexpr double kStartupNs = 10 * kSecondNs;  // of the budget, and since the first launch
// A compiler that tries kernels out makes more launches than the steps after it. As long as kernels
// come that were not seen before, the start-up window may take this many times its budget, until
// this part of the budget went to kernels that were all known.
constexpr double kStartupWithNews = 3, kStartupWithoutNews = 0.25;
// Of the budget what is planned with: costs are estimates, and windows end late, not early.
constexpr double kSafety = 0.83;
// Of the budget what windows have where CUPTI takes all of it by being there: that is paid for
// anyway.
constexpr double kMinPart = 0.5;
constexpr double kSavingsPerPeriod = 0.125;  // of the balance, or of its debt
// Of what windows cost: where opening and closing would take more, they become longer and fewer.
constexpr double kMaxForToggles = 1.0 / 3;
constexpr double kThroughout = 0.8;  // a window this long leaves nothing worth a pause
// A period is at least this part of the time since the first launch: as a process grows old, its
// windows become as much longer as they become fewer. Each opening is a risk (CUPTI 13.0 gets stuck
// in one of some ten thousand: cupti/toggle_watch.h), and the hundredth window of a minute tells
// little that is new.
constexpr double kWindowsToAnAge = 400;
// A window that was opened late and ended before this time represents only itself.
constexpr double kMinOpenNs = 1'000'000;
constexpr std::int64_t kRefusedForNs = 100'000'000;
constexpr std::int64_t kSteadyPeriodNs = 1'000'000'000;  // of periods that nothing interrupts
// The same for periods that are recorded throughout: nodes of graphs are reported only at a flush,
// at the end of a period.
constexpr double kThroughoutPeriodNs = 300'000'000;

}  // namespace

OverheadController::OverheadController(const ControllerOptions& options,
                                       const std::vector<Requirements>& tiers, std::int64_t now_ns)
    : options_(options),
      random_(options.seed),
      stopped_(options.idle),
      in_startup_(!options.every_launch),
      lasting_(options.after_context && !options.idle),
      requested_(options.full_window_ns, options.full_cell_ns, now_ns) {
  double others = 0;
  for (std::size_t i = 1; i < tiers.size(); ++i) {
    if (tiers[i].windows) others += tiers[i].share;
    pinned_ |= tiers[i].pins_launches;
  }
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    State state;
    state.requirements = tiers[i];
    // However much the others ask for, launches keep half of the budget.
    if (others > 0.5) state.requirements.share *= 0.5 / others;
    if (i == 0) state.requirements.share = 1 - std::min(others, 0.5);
    state.window_cost_ns = static_cast<double>(tiers[i].first_cost_ns);
    state.never = !tiers[i].windows;
    tiers_.push_back(state);
    tiers_.back().balance.set(i == 0 ? 0 : income(tiers_.back()) * kSecondNs);
  }
  earned_until_ns_ = now_ns;
}

double OverheadController::income(const State& tier) const {
  const double share = std::max(kMinPart * options_.budget, options_.budget - unavoidable_share()) *
                       tier.requirements.share;
  return kSafety * std::max(share, tier.requirements.min_budget);
}

void OverheadController::earn(std::int64_t now_ns) {
  const auto elapsed = static_cast<double>(std::max<std::int64_t>(0, now_ns - earned_until_ns_));
  earned_until_ns_ = now_ns;
  for (State& tier : tiers_)
    tier.balance.earn(income(tier), elapsed, tier.window_cost_ns,
                      &tier == &tiers_.front() && open_since_ns_ >= 0);
}

// ---- periods ----

void OverheadController::begin_period(std::int64_t now_ns) {
  planned_.clear();
  running_ = true;
  period_begin_ns_ = now_ns;
  period_is_new_ = true;
  plan_launches(now_ns);
  // The other tiers need not wait for the end of the start-up window, but only launches are
  // recorded at its very beginning. Opening tier 0 again then has its lasting overhead too.
  const bool begun =
      !in_startup_ || (first_launch_ns_ >= 0 && now_ns - first_launch_ns_ >= kAloneNs);
  if (begun && !full_) plan_others(now_ns);
  if (in_startup_ && !planned_.empty()) lasting_ = true;
  double gaps = 0;
  for (const Planned& planned : planned_)
    if (planned.tier != 0)
      gaps += static_cast<double>(planned.window.close_ns - planned.window.open_ns);
  const auto length = static_cast<double>(period_end_ns_ - period_begin_ns_);
  const double before = final_ ? 0 : standing_ns_;
  if (throughout_) planned_weight_ = (before + length) / std::max(1.0, length - gaps);
}

bool OverheadController::due(const State& tier, std::int64_t now_ns) const {
  return !tier.never && tier.balance.ns() >= tier.window_cost_ns &&
         (!tier.opened || now_ns - tier.last_open_ns >= tier.requirements.min_period_ns / 2);
}

bool OverheadController::others_due(std::int64_t now_ns) const {
  return std::any_of(tiers_.begin() + 1, tiers_.end(),
                     [&](const State& tier) { return due(tier, now_ns); });
}

void OverheadController::plan_launches(std::int64_t now_ns) {
  double least = static_cast<double>(kMinPeriodNs);
  if (tiers_.size() > 1 && others_due(now_ns))
    for (std::size_t i = 1; i < tiers_.size(); ++i)
      least = std::max(least, 3.0 * static_cast<double>(tiers_[i].requirements.window_ns));
  const double jitter = between(0.75, 1.25);
  const auto period = [&](double length_ns) {
    const double most = static_cast<double>(full_ ? std::max(now_ns, requested_.until_ns()) - now_ns
                                                  : kMaxPeriodNs);
    period_end_ns_ = now_ns + static_cast<std::int64_t>(std::min(most, length_ns * jitter));
  };
  const bool went_on = std::exchange(throughout_, true);
  planned_weight_ = 1;
  // If the time before had no window, the launches recorded now represent that time too.
  final_ = open_ns_ >= kMinOpenNs || standing_ns_ <= 0;
  if (tiers_.empty() || full_ || pinned_ || options_.every_launch)
    return period(std::max(least, static_cast<double>(kSteadyPeriodNs)));
  State& tier = tiers_[0];
  if (in_startup_) {
    if (!overspent() &&
        (first_launch_ns_ < 0 || static_cast<double>(now_ns - first_launch_ns_) < kStartupNs))
      return period(least);
    in_startup_ = false;
    // What it did not use is there for the first real load, however late; what it took too much, as
    // buffers are counted when they are full, is paid back by and by.
    tier.balance.set(options_.budget * kStartupNs - startup_cost_ns_);
  }
  if (ended_) {
    throughout_ = final_ = false;
    return period(static_cast<double>(kSteadyPeriodNs));
  }
  // What the period may cost, and the window that costs as much.
  const double savings = kSavingsPerPeriod * tier.balance.ns();
  const auto affordable = [&](double length_ns) {
    const double rest = savings + income(tier) * length_ns - estimator_.toggle_cost_ns();
    return rest <= 0                       ? 0
           : estimator_.cost_density() > 0 ? rest / estimator_.cost_density()
                                           : length_ns;
  };
  // A tier that was never closed stays open while its balance is not negative: to open it again has
  // an overhead, or is not wanted at all.
  const bool saved = went_on && !lasting_ && tier.balance.ns() >= 0;
  if (saved || affordable(kSteadyPeriodNs) >= kThroughout * kSteadyPeriodNs)
    return period(std::max(least, kThroughoutPeriodNs));
  if (affordable(least) >= kThroughout * least) return period(least);
  throughout_ = final_ = false;
  if (!windows_are_worth_it()) return period(static_cast<double>(kSteadyPeriodNs));
  if (tiers_.size() == 1)  // others have one window at most in each period
    least = std::clamp(std::max(static_cast<double>(now_ns - first_launch_ns_) / kWindowsToAnAge,
                                estimator_.toggle_cost_ns() / kMaxForToggles / income(tier)),
                       least, static_cast<double>(kMaxPeriodNs));
  double window = affordable(least);
  double length = least;
  if (window < static_cast<double>(kMinWindowNs)) {
    window = static_cast<double>(kMinWindowNs);
    const double cost = estimator_.toggle_cost_ns() + estimator_.cost_density() * window - savings;
    length = std::clamp(cost / income(tier), least, static_cast<double>(kMaxPeriodNs));
  }
  period(length);
  const auto whole = static_cast<double>(period_end_ns_ - now_ns);
  window = std::min(window, kThroughout * whole);
  const auto open = now_ns + static_cast<std::int64_t>(between(0, whole - window));
  planned_weight_ = whole / window;
  insert(0, {open, open + static_cast<std::int64_t>(window), planned_weight_});
  windowed_ = true;
}

void OverheadController::plan_others(std::int64_t now_ns) {
  for (int i = 1; i < static_cast<int>(tiers_.size()); ++i) {
    const State& tier = state(i);
    const auto whole = static_cast<double>(period_end_ns_ - period_begin_ns_);
    const auto length = static_cast<double>(tier.requirements.window_ns);
    if (!due(tier, now_ns) || length > whole / 2) continue;
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::int64_t open =
          period_begin_ns_ + static_cast<std::int64_t>(between(0, whole - length));
      const Window window = {open, open + tier.requirements.window_ns, whole / length};
      if (overlaps(window)) continue;
      insert(i, window);
      break;
    }
  }
}

bool OverheadController::overlaps(const Window& window) const {
  return std::any_of(planned_.begin(), planned_.end(), [&](const Planned& other) {
    return window.open_ns < other.window.close_ns && other.window.open_ns < window.close_ns;
  });
}

void OverheadController::insert(int tier, const Window& window) {
  const auto later = std::find_if(planned_.begin(), planned_.end(), [&](const Planned& other) {
    return other.window.open_ns > window.open_ns;
  });
  planned_.insert(later, {tier, window});
}

void OverheadController::end_period(std::int64_t now_ns) {
  if (!running_) return;
  const auto elapsed = static_cast<double>(std::max<std::int64_t>(0, now_ns - period_begin_ns_));
  const double presence = elapsed * presence_of(estimator_.rates());
  totals_.spent_ns += presence;  // what was hidden of it is given back
  presence_ns_ += presence;
  const double represented = std::exchange(represented_ns_, 0);
  if (ended_ && !full_ && open_since_ns_ < 0) {
    totals_.unseen_ns += elapsed - std::exchange(outlasted_ns_, 0);
    running_ = false;
    return;
  }
  if (!final_) standing_ns_ += elapsed - represented - still_open_ns(now_ns);
  totals_.governed_ns += elapsed;
  if (open_since_ns_ >= 0) {
    const std::int64_t since = std::exchange(open_since_ns_, now_ns);
    (open_final_ ? alone_ns_ : open_ns_) += static_cast<double>(now_ns - since);
    estimator_.open(static_cast<double>(now_ns - since));
    totals_.recorded_ns += static_cast<double>(now_ns - since);
    outlasts_ = true;
  }
  running_ = false;
  estimator_.learn({in_startup_, throughout_, throughout_ && !options_.windows},
                   [this](const CostEstimator::Amounts& rates) { return presence_of(rates); });
}

// How long into this period tier 0 has been open for an earlier one, as closing may take a while.
// Launches recorded in that time represent only themselves.
double OverheadController::still_open_ns(std::int64_t now_ns) const {
  if (!running_ || !open_final_ || open_since_ns_ < 0) return 0;
  return static_cast<double>(now_ns - std::max(open_since_ns_, period_begin_ns_));
}

bool OverheadController::overspent() const {
  if (!in_startup_) return tiers_[0].balance.ns() < 0;
  const double most = options_.budget * kStartupNs;
  const bool settled = known_cost_ns_ >= kStartupWithoutNews * most;
  return startup_cost_ns_ >= (settled ? most : kStartupWithNews * most);
}

// Called when tier 0 can no longer stay open. Closing it for a later window has no further overhead
// when the lasting overhead exists already. It saves time when the graphs of the start-up window
// cost more unchanged, with windows or without. If windows follow, launches are counted from now
// on.
bool OverheadController::windows_are_worth_it() {
  const CostModel& costs = options_.costs;
  const bool graphs = estimator_.rates().nodes * costs.instrumented_node_ns > lasting_share();
  const bool asked_for = requested_.in_cells();  // at any overhead
  const bool wanted = options_.windows || asked_for;
  launch_bound_ = !lasting_ && !graphs && !asked_for && lasting_share() > options_.budget / 2;
  ended_ = launch_bound_ || !wanted;
  const bool cycle = ended_ ? graphs && totals_.windows <= 1 : !lasting_;
  cycle_due_ = cycle_due_ || cycle;
  lasting_ = lasting_ || cycle;
  return !ended_;
}

// ---- decisions ----

void OverheadController::follow_requests(std::int64_t now_ns) {
  if (requested_.in_cells() && !stopped_)
    requested_.advance(now_ns, [this](double room) { return between(0, room); });
  const bool full = requested_.active(now_ns);
  if (!full) requested_.expire();
  if (full == full_) return;
  end_period(now_ns);
  full_ = full;
}

OverheadController::Decision OverheadController::decide(std::int64_t now_ns) {
  earn(now_ns);
  follow_requests(now_ns);
  Decision decision;
  if (stopped_ && !full_) {
    decision.ask_again_ns = kNever;
    return decision;
  }
  const bool cut = running_ && throughout_ && !full_ && !pinned_ && !options_.every_launch &&
                   !tiers_.empty() && overspent() && now_ns > period_begin_ns_;
  if (!running_ || now_ns >= period_end_ns_ || cut) {
    end_period(now_ns);
    begin_period(now_ns);
  }
  decision.full = full_ || options_.every_launch;
  decision.ask_again_ns = std::min(period_end_ns_, requested_.next_ns());
  for (const Planned& planned : planned_) {
    if (now_ns >= planned.window.close_ns) continue;
    if (now_ns < planned.window.open_ns) {
      decision.ask_again_ns = std::min(decision.ask_again_ns, planned.window.open_ns);
      break;
    }
    decision.tier = planned.tier;
    decision.window = planned.window;
    decision.ask_again_ns = std::min(decision.ask_again_ns, planned.window.close_ns);
    break;
  }
  if (decision.tier == kNone && throughout_ && !tiers_.empty() && !tiers_[0].never) {
    decision.tier = 0;
    decision.window = {now_ns, decision.ask_again_ns, planned_weight_};
  }
  if (decision.tier == 0) decision.new_period = std::exchange(period_is_new_, false);
  if (decision.new_period) {
    open_final_ = final_;
    outlasts_ = false;
    wanted_ns_ = open_since_ns_ < 0 ? now_ns : -1;
  }
  if (decision.tier == kNone) decision.cycle = std::exchange(cycle_due_, false);
  return decision;
}

void OverheadController::opened(int tier, std::int64_t now_ns, std::int64_t took_ns) {
  State& opened = state(tier);
  opened.opened = true;
  opened.last_open_ns = now_ns;
  opened.since_open_ns = 0;
  if (tier != 0) return;
  open_since_ns_ = now_ns;
  outlasts_ = false;
  // What was launched while it opened is recorded nowhere: a later window represents that time.
  const std::int64_t wanted_ns = std::exchange(wanted_ns_, -1);
  if (wanted_ns >= 0 && open_final_ && totals_.windows > 0 && !stopped_ && !options_.every_launch)
    standing_ns_ += static_cast<double>(now_ns - wanted_ns);
  if (!open_final_) unsure_ns_ += static_cast<double>(took_ns);
  cycle_due_ = false;
  requested_.opened(now_ns);
  totals_.windows += 1;
  if (totals_.windows > 1 || options_.idle) {  // also on request
    lasting_ = true;
    ended_ = false;
  }
}

void OverheadController::refused(int tier, bool forever, std::int64_t now_ns) {
  if (forever) state(tier).never = true;
  planned_.erase(std::remove_if(planned_.begin(), planned_.end(),
                                [&](const Planned& planned) { return planned.tier == tier; }),
                 planned_.end());
  if (tier != 0) return;
  wanted_ns_ = -1;
  // Nothing for a while, and then its own period.
  throughout_ = final_ = false;
  period_end_ns_ = std::max(now_ns + kRefusedForNs, period_end_ns_);
}

void OverheadController::closed(int tier, std::int64_t now_ns, std::int64_t took_ns) {
  if (tier != 0 || open_since_ns_ < 0) return;
  const auto open = static_cast<double>(now_ns - open_since_ns_);
  const bool outlasted = std::exchange(outlasts_, false);
  // Closing takes a while, and recording goes on during it. If no period represents that time, it
  // is added here. A window that outlasts its period represents that time too.
  if (!running_ || (ended_ && !full_)) {
    totals_.governed_ns += open;
    if (!open_final_) standing_ns_ += open;
    if (running_) outlasted_ns_ += open;
  } else if (open_final_) {
    if (!final_) standing_ns_ -= still_open_ns(now_ns);
  } else if (outlasted) {
    standing_ns_ += open;
    represented_ns_ += open;
  }
  open_since_ns_ = -1;
  if (!open_final_) unsure_ns_ += static_cast<double>(took_ns);
  (open_final_ ? alone_ns_ : open_ns_) += open;
  estimator_.open(open);
  totals_.recorded_ns += open;
}

void OverheadController::cycled(std::int64_t took_ns) {
  const auto took = static_cast<double>(took_ns);
  if (running_) represented_ns_ += took;
  alone_ns_ += took;
}

void OverheadController::spent(int tier, std::int64_t cost_ns) {
  State& payer = state(tier);
  const auto cost = static_cast<double>(cost_ns);
  payer.balance.pay(cost);
  totals_.spent_ns += cost;
  if (tier == 0) estimator_.call(cost), other_costs_ns_ += cost;
  if (tier == 0 && in_startup_) startup_cost_ns_ += cost;
  if (tier == 0 || !payer.opened) return;
  payer.since_open_ns += cost;
  payer.window_cost_ns = std::max(payer.since_open_ns, 0.9 * payer.window_cost_ns);
}

void OverheadController::spent_on_records(std::int64_t cost_ns) {
  if (tiers_.empty()) return;
  const auto cost = static_cast<double>(cost_ns);
  tiers_[0].balance.pay(cost);
  totals_.spent_ns += cost;
  estimator_.cost(cost);
  other_costs_ns_ += cost;
  if (in_startup_) startup_cost_ns_ += cost;
}

void OverheadController::recorded(double launches, double nodes, std::int64_t age_ns,
                                  const WorkRates::Amounts& at_work, std::size_t kernels) {
  if (tiers_.empty() || launches + nodes <= 0) return;
  const double cost = launches * launch_price_ns() + nodes * options_.costs.node_ns;
  tiers_[0].balance.return_forgone(income(tiers_[0]), cost, static_cast<double>(age_ns));
  launches_ += launches;
  nodes_ += nodes;
  tiers_[0].balance.pay(cost);
  totals_.spent_ns += cost;
  estimator_.cost(cost);
  estimator_.launched({launches, nodes}, static_cast<double>(age_ns), at_work);
  if (in_startup_) startup_cost_ns_ += cost;
  known_cost_ns_ = kernels > kernels_ ? 0 : known_cost_ns_ + cost;
  kernels_ = std::max(kernels_, kernels);
  if (first_launch_ns_ < 0) first_launch_ns_ = earned_until_ns_;
}

DeviceBusy::Prices OverheadController::prices(std::int64_t now_ns) const {
  const CostModel& costs = options_.costs;
  const double open =
      totals_.recorded_ns + (open_since_ns_ < 0 ? 0 : static_cast<double>(now_ns - open_since_ns_));
  return {launch_price_ns() + costs.initialised_launch_ns,
          costs.node_ns + costs.initialised_node_ns, other_costs_ns_ / std::max(open, kSecondNs)};
}

void OverheadController::hidden(const DeviceBusy::Hidden& hidden) {
  if (tiers_.empty()) return;
  const CostModel& costs = options_.costs;
  const double presence =
      launches_ * costs.initialised_launch_ns + nodes_ * costs.initialised_node_ns;
  const double part = hidden.estimate_ns > 0 ? std::min(1.0, presence / hidden.estimate_ns) : 0;
  // Of presence no more is given back than was charged: its rate is learnt after the fact.
  const double of_presence = std::min(part * hidden.hidden_ns, presence_ns_);
  const double of_records = (1 - part) * hidden.hidden_ns;
  // What is bounded, and no estimate, needs no margin.
  const double margin = (1 - kSafety) * (1 - part) * hidden.bounded_ns;
  const double given_back =
      of_records + margin - std::exchange(given_back_ns_, of_records + margin);
  tiers_[0].balance.give_back(given_back);
  estimator_.cost(-given_back);
  if (in_startup_) startup_cost_ns_ -= given_back;
  totals_.spent_ns -= of_records + of_presence - totals_.hidden_ns;
  totals_.hidden_ns = of_records + of_presence;
  hidden_share_ = hidden.share;
}

void OverheadController::interrupted(std::int64_t now_ns) {
  end_period(now_ns);
  planned_.clear();
}

OverheadController::Standing OverheadController::take_weight(bool last) {
  if (open_ns_ <= 0 || (open_ns_ < kMinOpenNs && !last))
    return {};  // later records represent this time too
  const double time = std::exchange(standing_ns_, 0), open = std::exchange(open_ns_, 0);
  const double unsure = std::exchange(unsure_ns_, 0);
  return {std::max(1.0, time / open), time, std::min(1.0, unsure / open)};
}

// ---- on demand ----

void OverheadController::start(std::int64_t now_ns) {
  if (!stopped_) return;
  stopped_ = false;
  requested_.start(now_ns);
}

void OverheadController::stop(std::int64_t now_ns) {
  interrupted(now_ns);
  stopped_ = true;
  requested_.stop();
  full_ = false;
}

void OverheadController::record(std::int64_t now_ns, std::int64_t length_ns) {
  requested_.request(now_ns, length_ns, open_since_ns_ >= 0);
  if (full_) period_end_ns_ = std::min(period_end_ns_, now_ns);  // planned again, to the new end
}

void OverheadController::back_off() { options_.budget /= 2; }

}  // namespace purlin::profile::capture
