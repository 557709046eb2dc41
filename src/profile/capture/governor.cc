// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/governor.h"

#include <algorithm>
#include <utility>

namespace purlin::profile::capture {

Governor::Governor(const GovernorOptions& options, std::vector<Wishes> tiers, std::int64_t now_ns)
    : options_(options), random_(options.seed) {
  for (const Wishes& wishes : tiers) {
    State state;
    state.wishes = wishes;
    state.window_cost_ns = static_cast<double>(wishes.first_cost_ns);
    tiers_.push_back(state);
  }
  period_end_ns_ = now_ns;
  begin_period(now_ns);
}

void Governor::begin_period(std::int64_t now_ns) {
  const auto elapsed = static_cast<double>(now_ns - period_begin_ns_);
  if (period_begin_ns_ != 0)
    for (State& state : tiers_) {
      const double income = options_.budget * state.wishes.share * elapsed;
      // Idle hours are not saved up for a burst.
      state.tokens_ns = std::min(state.tokens_ns + income, 5 * state.window_cost_ns + 10 * income);
    }
  period_begin_ns_ = now_ns;
  period_end_ns_ = now_ns + kPeriodNs;
  planned_.clear();
  for (int tier = 1; tier < static_cast<int>(tiers_.size()); ++tier) place(tier, now_ns);
}

// Somewhere in the period where nothing else is planned; not at all where the draw is unlucky.
void Governor::place(int tier, std::int64_t now_ns) {
  State& state = tiers_[static_cast<std::size_t>(tier)];
  const std::int64_t length = std::min(state.wishes.window_ns, kPeriodNs / 4);
  if (state.never || state.tokens_ns < state.window_cost_ns) return;
  if (state.opened && now_ns - state.last_open_ns < state.wishes.least_period_ns) return;
  std::uniform_int_distribution<std::int64_t> offset(0, kPeriodNs - length - 1);
  for (int attempt = 0; attempt < 4; ++attempt) {
    const std::int64_t open = period_begin_ns_ + offset(random_);
    const Window window = {open, open + length,
                           static_cast<double>(kPeriodNs) / static_cast<double>(length)};
    const bool free = std::none_of(planned_.begin(), planned_.end(), [&](const Planned& other) {
      return window.open_ns < other.window.close_ns && other.window.open_ns < window.close_ns;
    });
    if (!free) continue;
    const auto later = std::find_if(planned_.begin(), planned_.end(), [&](const Planned& other) {
      return other.window.open_ns > window.open_ns;
    });
    planned_.insert(later, {tier, window});
    return;
  }
}

Governor::Decision Governor::decide(std::int64_t now_ns) {
  if (now_ns >= period_end_ns_) begin_period(now_ns);
  Decision decision;
  decision.ask_again_ns = period_end_ns_;
  for (const Planned& planned : planned_) {
    if (now_ns >= planned.window.close_ns) continue;
    if (now_ns < planned.window.open_ns) {
      decision.ask_again_ns = planned.window.open_ns;
      break;
    }
    State& state = tiers_[static_cast<std::size_t>(planned.tier)];
    if (!state.opened || state.last_open_ns < planned.window.open_ns) {
      state.opened = true;
      state.last_open_ns = now_ns;
      state.spent_ns = 0;
    }
    return {planned.tier, planned.window, planned.window.close_ns};
  }
  if (tiers_.empty() || tiers_[0].never) return decision;
  decision.tier = 0;
  decision.window = {now_ns, decision.ask_again_ns, 1};
  return decision;
}

void Governor::spent(int tier, std::int64_t cost_ns) {
  State& state = tiers_[static_cast<std::size_t>(tier)];
  state.tokens_ns -= static_cast<double>(cost_ns);
  state.spent_ns += static_cast<double>(cost_ns);
  if (state.opened) state.window_cost_ns = std::max(state.spent_ns, state.window_cost_ns / 2);
}

void Governor::refused(int tier, bool forever) {
  if (forever) tiers_[static_cast<std::size_t>(tier)].never = true;
  planned_.erase(std::remove_if(planned_.begin(), planned_.end(),
                                [&](const Planned& planned) { return planned.tier == tier; }),
                 planned_.end());
}

}  // namespace purlin::profile::capture
