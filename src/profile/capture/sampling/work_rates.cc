// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/work_rates.h"

namespace purlin::profile::capture {

void WorkRates::add(std::int64_t slot, const Amounts& begun) {
  const auto [found, is_new] = slots_.try_emplace(slot);
  found->second.launches += begun.launches;
  found->second.nodes += begun.nodes;
  if (!is_new) return;
  order_.push_back(slot);
  if (order_.size() <= kMax) return;
  slots_.erase(order_.front());
  order_.pop_front();
}

WorkRates::Amounts WorkRates::per_ns() const {
  Amounts sum;
  double weights = 0;
  for (const auto& [slot, begun] : slots_) {
    const double weight = begun.launches + begun.nodes;
    sum.launches += weight * begun.launches;
    sum.nodes += weight * begun.nodes;
    weights += weight;
  }
  if (weights <= 0) return {};
  constexpr auto kNs = static_cast<double>(kSlotNs);
  return {sum.launches / weights / kNs, sum.nodes / weights / kNs};
}

}  // namespace purlin::profile::capture
