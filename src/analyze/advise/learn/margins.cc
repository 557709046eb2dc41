// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/learn/margins.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

// Printed by bench/advice_pairs/margins.py of the pairs that were seen, H100, 26 November 2026.
// Points of the step; 2 are the least, what measured pairs differ by between rounds.
struct MarginOfKind {
  std::string_view rules;  // separated by '|'
  Margin margin;
};
constexpr Margin kOfOthers = {0.02, 0.02};
constexpr MarginOfKind kMargins[] = {
    {"cuda_graphs|cut_host_work|compile_model|remove_syncs|stop_allocating", {0.02, 0.16}},
    {"feed_the_device|slow_op|remove_stalls", {0.02, 0.03}},
    {"batch_products|reuse_result|recompute_less|fused_optimizer|cast_weights_once|remove_copies|"
     "reduce_problem",
     {0.02, 0.04}},
    {"fuse_pointwise|fuse_norm|fuse_epilogue|flash_attention", {0.02, 0.04}},
    {"tensor_cores|align_dimensions|quantize|channels_last|leave_float64", {0.02, 0.02}},
    {"shorten_tensors", {0.02, 0}},  // half of the bytes is the most
    {"overlap_copies|pin_memory|keep_on_device", {0.02, 0.13}},
};

}  // namespace

Margin margin_of(std::string_view rule) {
  for (const MarginOfKind& kind : kMargins) {
    const auto rules = split(kind.rules, '|');
    if (std::find(rules.begin(), rules.end(), rule) != rules.end()) return kind.margin;
  }
  return kOfOthers;
}

void widen(const Margin& margin, double step_ns, Interval3& share, Interval3& ns) {
  const auto lower = [](double end, double by) { return std::max(std::min(end, 0.0), end - by); };
  share.low = lower(share.low, margin.below);
  ns.low = lower(ns.low, margin.below * step_ns);
  const double above = std::clamp(1 - share.high, 0.0, margin.above);
  share.high += above;
  ns.high += above * step_ns;
}

}  // namespace purlin::analyze
