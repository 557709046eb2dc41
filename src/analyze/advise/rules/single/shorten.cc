// SPDX-License-Identifier: Apache-2.0
// 32-bit tensors whose kernels only wait for the memory: 16 bits move half of the bytes. That
// trades precision, so it is a trade.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

namespace purlin::analyze {
namespace {

constexpr Remedy kShorten = {
    "shorten_tensors",
    "Store large tensors in 16 bits",
    Pillar::kArithmeticIntensity,
    Level::kAlgorithm,
    "memory",
    "days",
    "high",
    "api-independent",
    "framework",
    "PyTorch: torch.autocast with bfloat16, or the module in bfloat16|"
    "PyTorch: torch.autocast with float16, and loss scaling in training|"
    "CUDA: load and store __half2 or __nv_bfloat162, compute in float|"
    "keep sums, losses and the optimizer's state in 32 bits",
    "numerics: compare loss curves or a tolerance; float16 holds 6e-8 to 65504, bfloat16 has 8 "
    "bits of precision"};

constexpr double kMemoryBoundUse = 0.35;  // of the bandwidth: below, bytes do not explain the time
constexpr double kLeastShortened = 0.05;  // of the unit
// Of the time: narrower accesses lose a part, as many bytes a second, half of the bytes.
constexpr Interval3 kHalved = {0.8, 0.55, 0.5};

bool waits_for_memory(const KernelStat& kernel) {
  const std::string_view c = kernel.name.op_class;
  return kernel.dtype == "f32" && kernel.roof.memory_share >= kMemoryBoundUse &&
         kernel.roof.bound == Bound::kMemory && c != "optimizer" && c != "communication" &&
         !is_short_launch(kernel);
}

void add_shorten(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Intervention out = from_remedy(kShorten);
  double ns = 0, bytes = 0;
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    if (!waits_for_memory(kernel)) continue;
    scale_row(facts, i, kHalved, out, kHalved.high);
    name_kernel(kernel, out);
    ns += facts.in_unit(kernel.duration.total_ns());
    bytes += facts.in_unit(kernel.roof.bytes * kernel.duration.count());
  }
  if (ns <= 0 || ns < kLeastShortened * facts.unit.baseline_ns.mid) return;
  out.evidence.push_back({"time of memory-bound kernels over float32",
                          of_total(ns, facts.unit.baseline_ns.mid), "shape model"});
  out.evidence.push_back({fmt::format("bytes moved{} in 32, 16 and 8 bits", a_unit(facts)),
                          fmt::format("{}, {}, {}", format_bytes(bytes), format_bytes(bytes / 2),
                                      format_bytes(bytes / 4)),
                          "shape model"});
  out.assumptions.push_back(
      fmt::format("16 bits take {:.2f} to {:.2f} of the time", kHalved.high, kHalved.low));
  out.confidence = "C";
  advice.trades.push_back(std::move(out));
}

}  // namespace

const Rule kShortenRule = {{&kShorten, 1}, add_shorten};

}  // namespace purlin::analyze
