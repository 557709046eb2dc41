// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/learn/margins.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

// By bench/advice_pairs/margins.py of the pairs that were seen, H100, 26 November 2026. Then the
// ends were moved by how the intervals of the sixth to the ninth set missed, scored as unseen
// (bench/results/advice_pairs_later.md, "Margins of the unseen sets").
// Points of the step; 2 are the least, what measured pairs differ by between rounds.
struct MarginOfKind {
  std::string_view rules;  // separated by '|'
  Margin margin;
};
constexpr Margin kOfOthers = {0.7, 0.03, 0.10};
constexpr MarginOfKind kMargins[] = {
    {"cuda_graphs|cut_host_work|compile_model|stop_allocating", {0.6, 0.02, 0.12}},
    {"remove_syncs", {0.5, 0.02, 0.09}},  // and more where its rule says so
    {"fuse_pointwise", {1, 0.04, 0.30}},
    // All of the distance: of two samples of PyTorch, one gained a third of its waits.
    {"feed_the_device|slow_op|remove_stalls", {1, 0.02, 0.09}},
    {"remove_copies|reduce_problem", {0.7, 0.03, 0.20}},
    {"batch_products|reuse_result|fused_optimizer|cast_weights_once|remove_fills",
     {0.7, 0.03, 0.13}},
    {"recompute_less", {0.55, 0.02, 0.10}},
    {"fuse_norm|fuse_epilogue|flash_attention", {1, 0.05, 0.14}},
    {"tensor_cores|align_dimensions|quantize|channels_last|leave_float64", {0.85, 0.02, 0.09}},
    {"shorten_tensors", {1, 0.02, 0}},  // half of the bytes is the most
    {"overlap_copies|pin_memory|keep_on_device", {0.5, 0.02, 0.16}},
    {"fill_the_device|local_gathers|coalesce|stream_wider|tune_kernel|reduce_in_blocks",
     {0.5, 0.02, 0.07}},
};

void raise_low(double kept, Interval3& interval) {
  interval.low = interval.mid - kept * (interval.mid - interval.low);
}

}  // namespace

Margin margin_of(std::string_view rule) {
  for (const MarginOfKind& kind : kMargins) {
    const auto rules = split(kind.rules, '|');
    if (std::find(rules.begin(), rules.end(), rule) != rules.end()) return kind.margin;
  }
  return kOfOthers;
}

void widen(const Margin& margin, double step_ns, Interval3& share, Interval3& ns) {
  if (share.low > 0) {  // else the change may not be possible, or lose: that stays
    raise_low(margin.kept, share);
    raise_low(margin.kept, ns);
  }
  const auto lower = [](double end, double by) { return std::max(std::min(end, 0.0), end - by); };
  share.low = lower(share.low, margin.below);
  ns.low = lower(ns.low, margin.below * step_ns);
  const double above = std::clamp(1 - share.high, 0.0, margin.above);
  share.high += above;
  ns.high += above * step_ns;
}

}  // namespace purlin::analyze
