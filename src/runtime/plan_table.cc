// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_table.h"

#include <algorithm>

namespace purlin::runtime {

// Open addressing with linear probing, at most half full; a slot is filled once.
struct PlanTable::Table {
  explicit Table(std::size_t count) : mask(count - 1), slots(count) {}
  const std::size_t mask;
  std::vector<std::atomic<Plan*>> slots;
};

bool Choice::same_as(const Choice& other) const {
  const auto same_rival = [](const Rival& a, const Rival& b) {
    return a.variant == b.variant && a.shape == b.shape && a.duel == b.duel;
  };
  return variant == other.variant && problem.message() == other.problem.message() &&
         shape == other.shape && outcome == other.outcome && entry == other.entry &&
         demoted == other.demoted && reason == other.reason && scalars == other.scalars &&
         std::equal(rivals.begin(), rivals.end(), other.rivals.begin(), other.rivals.end(),
                    same_rival);
}

PlanTable::PlanTable(std::size_t dimensions) : dimensions_(dimensions) {
  tables_.push_back(std::make_unique<Table>(64));
  table_.store(tables_.back().get(), std::memory_order_release);
}

PlanTable::~PlanTable() = default;

std::uint64_t PlanTable::hash(const std::int64_t* extents) const noexcept {
  std::uint64_t h = 0x9E3779B97F4A7C15u;
  for (std::size_t i = 0; i < dimensions_; ++i) {
    h = (h ^ static_cast<std::uint64_t>(extents[i])) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

Plan* PlanTable::find(const std::int64_t* extents) const noexcept {
  const Table& table = *table_.load(std::memory_order_acquire);
  for (std::size_t at = hash(extents) & table.mask;; at = (at + 1) & table.mask) {
    Plan* plan = table.slots[at].load(std::memory_order_acquire);
    if (plan == nullptr || std::equal(extents, extents + dimensions_, plan->extents.begin()))
      return plan;
  }
}

Plan* PlanTable::add(const std::int64_t* extents) {
  if (plans_.size() == kMaxPlans) return nullptr;
  const auto insert = [&](Table& table, Plan* plan) {
    std::size_t at = hash(plan->extents.data()) & table.mask;
    while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
    table.slots[at].store(plan, std::memory_order_release);
  };
  plans_.push_back(std::make_unique<Plan>());
  Plan* plan = plans_.back().get();
  std::copy_n(extents, dimensions_, plan->extents.begin());
  if (plans_.size() * 2 <= tables_.back()->slots.size()) {
    insert(*tables_.back(), plan);
    return plan;
  }
  // Readers stay on the outgrown table until the new one, which holds everything, is published.
  tables_.push_back(std::make_unique<Table>(tables_.back()->slots.size() * 2));
  for (const auto& held : plans_) insert(*tables_.back(), held.get());
  table_.store(tables_.back().get(), std::memory_order_release);
  return plan;
}

void PlanTable::choose(Plan& plan, std::unique_ptr<const Choice> choice) {
  const Choice* held = plan.choice.load(std::memory_order_relaxed);
  if (held != nullptr && held->same_as(*choice)) return;
  choices_.push_back(std::move(choice));
  plan.choice.store(choices_.back().get(), std::memory_order_release);
}

}  // namespace purlin::runtime
