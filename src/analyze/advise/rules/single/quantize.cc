// SPDX-License-Identifier: Apache-2.0
// Shorter types: a product that only waits for its weights gets faster with them; a product at
// its roof takes half as long with 8 bits. Both trade precision, so the second is a trade only.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr Remedy kQuantize = {
    "quantize",
    "Store the weights in 8 or 4 bits",
    Pillar::kArithmeticIntensity,
    Level::kAlgorithm,
    "memory",
    "days",
    "high",
    "arch-specific",
    "framework",
    "PyTorch: FP8 by torch._scaled_mm, Transformer Engine, torchao, with a scale for each row|"
    "CUDA: INT8 and INT4, custom kernel required (torchao, Marlin, CUTLASS mixed-input GEMM)|"
    "quantise ahead of time, accumulate in 32 bits",
    "numerics: compare accuracy on the task, layer by layer; keep sensitive layers in 16 bits"};

constexpr RemedyCase kEightBits = {
    "Trade precision for time: multiply in 8 bits", "days",
    "PyTorch: FP8 by torch._scaled_mm, Transformer Engine, torchao, with a scale for each row|"
    "accumulate in 32 bits; keep the first and the last layer in 16",
    "numerics: the results change; compare accuracy on the task before it counts as a saving"};

constexpr double kMostRows = 64, kMemoryUsed = 0.35, kComputeUsed = 0.5, kWeightsShare = 0.8;
// Of the time: 8-bit weights with a poor kernel, with a good one, at the ratio of the bytes.
constexpr Interval3 kShorter = {0.85, 0.60, 0.5}, kFaster = {0.85, 0.62, 0.5};

// The input becomes 8 bits in a separate kernel, or in the kernel that writes it.
constexpr double kCastBytes = 3, kOwnCast = 0.5;

// Of a product's time: reading its input in 16 bits and writing it in 8.
double casting(const Facts& facts, const KernelStat& kernel, const Touch& touch) {
  const double input = touch.batch * touch.m * touch.depth;
  const double bandwidth = facts.bandwidth_of(kernel), ns = kernel.duration.mean_ns();
  return bandwidth > 0 && ns > 0 ? kCastBytes * input / bandwidth * 1e9 / ns : 0;
}

void add_quantize(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Intervention vectors = from_remedy(kQuantize), products = from_remedy(kQuantize, kEightBits);
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    const Touch& touch = walk.report_touch(i);
    if (touch.kind != TouchKind::kProduct || touch.in_size != 2) continue;
    const double weights = touch.matrix() * touch.in_size;
    const bool waits = touch.vectors() <= kMostRows && weights >= kWeightsShare * touch.bytes() &&
                       kernel.roof.memory_share >= kMemoryUsed &&
                       weights * kernel.duration.count() > 0 && touch.batch == 1;
    const Ceilings* ceilings = facts.ceilings_of(kernel);
    const Ceiling *eight = ceilings ? ceilings->compute_for("f8", true) : nullptr,
                  *sixteen = ceilings ? ceilings->compute_for("bf16", true) : nullptr;
    const bool faster = eight != nullptr && sixteen != nullptr &&
                        eight->peak > 1.5 * sixteen->peak &&
                        kernel.roof.compute_share >= kComputeUsed;
    if (!waits && !faster) continue;
    Intervention& out = waits ? vectors : products;
    Interval3 factor = waits ? kShorter : kFaster;
    if (!waits) {
      const double cast = casting(facts, kernel, touch);
      factor = {factor.low + cast, factor.mid + kOwnCast * cast, factor.high};
      if (factor.mid >= 1) continue;
    }
    scale_row(facts, i, factor, out, factor.high);
    name_kernel(kernel, out);
    out.evidence.push_back(
        {problem_text(kernel),
         waits ? fmt::format("{} of weights for {}, at {} of the bandwidth", format_bytes(weights),
                             counted(touch.vectors(), "row"), percent(kernel.roof.memory_share))
               : fmt::format("at {} of its roof; 8 bits have twice the peak",
                             percent(kernel.roof.utilization)),
         "shape model"});
  }
  for (Intervention* out : {&vectors, &products}) {
    if (out->evidence.empty()) continue;
    out->assumptions.emplace_back(
        out == &vectors
            ? "8 bits for the weights; the high estimate is the ratio of bytes"
            : "the input is converted by a separate kernel at worst, and by the kernel that writes "
              "it at best; the high estimate is the ratio of the peaks");
    out->confidence = "C";
    (out == &vectors ? advice.interventions : advice.trades).push_back(std::move(*out));
  }
}

}  // namespace

const Rule kQuantizeRule = {{&kQuantize, 1}, add_quantize};

}  // namespace purlin::analyze
