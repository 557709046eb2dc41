// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/arbiter.h"

#include "profile/capture/session.h"

#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::int64_t kAskAgainNs = 100'000'000;  // where it is not Purlin's turn

std::vector<Wishes> wishes_of(const std::vector<std::unique_ptr<Tier>>& tiers) {
  std::vector<Wishes> wishes;
  for (const std::unique_ptr<Tier>& tier : tiers) wishes.push_back(tier->wishes());
  return wishes;
}

}  // namespace

Arbiter::Arbiter(const GovernorOptions& options, std::vector<std::unique_ptr<Tier>> tiers)
    : tiers_(std::move(tiers)), governor_(options, wishes_of(tiers_), monotonic_ns()) {}

void Arbiter::begin() {
  for (const std::unique_ptr<Tier>& tier : tiers_) tier->prepare();
}

std::int64_t Arbiter::tick(Ownership& ownership) {
  const Ownership::Turn turn = ownership.take_turn();
  if (!turn) return monotonic_ns() + kAskAgainNs;
  const Governor::Decision decision = governor_.decide(monotonic_ns());
  if (decision.tier == open_) return decision.ask_again_ns;
  // Where another client has replaced Purlin unseen, what is on is that client's, and stays on.
  if (!ownership.confirm()) return monotonic_ns() + kAskAgainNs;
  close_open_tier();
  if (decision.tier == Governor::kNone) return decision.ask_again_ns;
  Tier& tier = *tiers_[static_cast<std::size_t>(decision.tier)];
  const Tier::Opened opened = tier.open(decision.window);
  if (opened == Tier::Opened::kYes) {
    open_ = decision.tier;
    return decision.ask_again_ns;
  }
  governor_.refused(decision.tier, opened == Tier::Opened::kNever);
  return monotonic_ns();  // to whom the time belongs now
}

void Arbiter::account(int tier) {
  governor_.spent(tier, tiers_[static_cast<std::size_t>(tier)]->take_cost_ns());
}

void Arbiter::close_open_tier() {
  if (open_ == Governor::kNone) return;
  tiers_[static_cast<std::size_t>(open_)]->close();
  account(std::exchange(open_, Governor::kNone));
}

void Arbiter::collect(Ownership& ownership, bool final) {
  const Ownership::Turn turn = ownership.take_turn(final);
  if (!turn || (!final && !ownership.confirm())) return;
  if (final) close_open_tier();
  for (int tier = 0; tier < static_cast<int>(tiers_.size()); ++tier) {
    tiers_[static_cast<std::size_t>(tier)]->collect(final);
    account(tier);
  }
}

void Arbiter::yield() {
  for (const std::unique_ptr<Tier>& tier : tiers_) tier->yield();
}

void Arbiter::vacate() { close_open_tier(); }

}  // namespace purlin::profile::capture::cuda
