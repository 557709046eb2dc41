// SPDX-License-Identifier: Apache-2.0
// Work in 64-bit floats: twice the bytes of 32 bits, and arithmetic at half of the rate or far
// less. NumPy's arrays are float64 by default.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr Remedy kSingle = {"leave_float64",
                            "Compute in float32 where float64 is not needed",
                            Pillar::kArithmeticIntensity,
                            Level::kAlgorithm,
                            "memory",
                            "hours",
                            "high",
                            "api-independent",
                            "application",
                            "convert the input once; NumPy's arrays are float64, so "
                            ".astype(np.float32)|"
                            "PyTorch: torch.from_numpy(a).float()|"
                            "PyTorch: dtype=torch.float32 where tensors are made; Python's floats "
                            "do not widen them|"
                            "keep float64 for sums that need it alone",
                            "numerics: float32 holds 7 digits; compare results within a tolerance"};

constexpr double kLeastDouble = 0.05;  // of the unit
// Of the time: half of the bytes; products also leave the 64-bit units.
constexpr Interval3 kHalfTheBytes = {0.85, 0.53, 0.45}, kOtherUnits = {0.7, 0.4, 0.1};

// A product at the rate of the 64-bit units, on 32-bit units: a GPU may have as many of both.
// Shares of the peaks: a poor product without tensor cores, a good one, and one in TF32.
constexpr double kPoorSingle = 0.6, kGoodSingle = 0.85, kInTf32 = 0.7;
Interval3 on_other_units(const Facts& facts, const KernelStat& kernel, const Touch& touch) {
  const Ceilings* ceilings = facts.ceilings_of(kernel);
  if (ceilings == nullptr || touch.kind != TouchKind::kProduct) return kOtherUnits;
  const Ceiling* then = ceilings->compute_for("f32", false);
  const Ceiling* tensor = tensor_ceiling_for_f32(*ceilings);
  if (then == nullptr) return kOtherUnits;
  const double rate = touch.flops() / kernel.duration.mean_ns() * 1e9;
  const auto at = [&](double peak) { return std::clamp(rate / peak, 0.02, 1.0); };
  const double good = at(kGoodSingle * then->peak);
  return {at(kPoorSingle * then->peak), good,
          tensor != nullptr ? std::min(good, at(kInTf32 * tensor->peak)) : good};
}

// Complex numbers hold two of them.
bool in_double(const KernelStat& kernel) {
  const auto is_double = [](std::string_view type) { return type == "f64" || type == "c128"; };
  return is_double(kernel.dtype) || is_double(kernel.name.dtype);
}

void add_double(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Intervention out = from_remedy(kSingle);
  double ns = 0;
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    if (!in_double(kernel) || kernel.duration.mean_ns() < kShortLaunch) continue;
    const bool product = kernel.name.op_class == "gemm" || kernel.name.op_class == "conv";
    scale_row(facts, i,
              product ? on_other_units(facts, kernel, walk.report_touch(i)) : kHalfTheBytes, out);
    name_kernel(kernel, out);
    ns += kernel.duration.total_ns();
    if (out.evidence.size() < kShown)
      out.evidence.push_back(
          {problem_text(kernel),
           of_total(facts.in_unit(kernel.duration.total_ns()), facts.unit.baseline_ns.mid),
           kernel.dtype == "f64" ? "shapes" : "kernel name"});
  }
  if (facts.in_unit(ns) < kLeastDouble * facts.unit.baseline_ns.mid) return;
  out.evidence.push_back({"time of kernels over float64",
                          of_total(facts.in_unit(ns), facts.unit.baseline_ns.mid), "timeline"});
  out.assumptions.push_back(fmt::format(
      "float32 moves half of the bytes: {:.2f} to {:.2f} of the time; products reach {:.2f} to "
      "{:.2f} of the 32-bit peak, at best {:.2f} of TF32's",
      kHalfTheBytes.high, kHalfTheBytes.low, kPoorSingle, kGoodSingle, kInTf32));
  out.confidence = "C";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kDoubleRule = {{&kSingle, 1}, add_double};

}  // namespace purlin::analyze
