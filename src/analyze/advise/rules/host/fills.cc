// SPDX-License-Identifier: Apache-2.0
// Fills of memory that no computation hides: memsets, and kernels of PyTorch.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/walk.h"
#include "analyze/timeline/intervals.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace purlin::analyze {

namespace {

constexpr RemedyCase kNoAccumulator = {
    "Multiply without an accumulator of zeros", "hours",
    "PyTorch: torch.bmm(a, b) for torch.zeros(...).baddbmm_(a, b); torch.mm for addmm; else beta=0|"
    "cuBLAS: beta = 0, which does not read the result",
    "the accumulator must really be zero"};

// Where the host sets the pace, a fill less is an op less: of those that set an array to zero.
double host_part_of_fills(const HostView& view) {
  const Timeline& timeline = view.facts.profile->timeline;
  double ns = 0;
  for (const Op& op : timeline.ops)
    if (name_in(timeline, op.name) == "aten::zero_" && op.parent >= timeline.ops.size())
      ns += static_cast<double>(interval_of(op).length());
  return ns * view.share;
}

// Products that add to what a fill has just set to zero: without it they do not read it either.
constexpr std::string_view kAddingTo[] = {"aten::addmm_", "aten::baddbmm_",    "aten::addbmm_",
                                          "aten::addmm",  "aten::baddbmm",     "aten::addmv_",
                                          "aten::addr_",  "aten::sparse_addmm"};
constexpr Interval3 kOnlyWrites = {1, 1, 0.75};  // of the traffic's part: it writes at once
constexpr double kMostFills = 0.5;               // of the time of all fills; else those say more
struct Accumulators {
  Launches fills;
  double ns = 0;                           // of the fills
  std::map<std::uint32_t, double> factor;  // of the products, by row
};
Accumulators find_accumulators(const Facts& facts) {
  Accumulators out;
  const Walk walk(facts);
  for (const Launches& run : walk.runs())
    for (std::size_t i = 0; i + 1 < run.size(); ++i) {
      const Touch& product = walk.touch(run[i + 1]);
      if (walk.stat(run[i]).name.full.find("FillFunctor") == std::string::npos ||
          product.kind != TouchKind::kProduct || walk.touch(run[i]).n != product.n)
        continue;
      const std::string_view op = walk.stat(run[i + 1]).op;
      if (std::find(std::begin(kAddingTo), std::end(kAddingTo), op) == std::end(kAddingTo))
        continue;
      out.fills.push_back(run[i]);
      const double bytes =
          product.in_size * product.batch * product.depth * (product.m + product.columns);
      out.factor[walk.at(run[i + 1]).row] =
          (bytes + product.written) / (bytes + 2 * product.written);
    }
  out.ns = walk.duration(out.fills);
  return out;
}

void add_accumulators(HostView& view, const Accumulators& found) {
  const Facts& facts = view.facts;
  const Walk walk(facts);
  Intervention out = from_remedy("remove_fills", kNoAccumulator);
  remove_launches(walk, found.fills, {0.9, 1, 1}, out);
  double most = in_one_unit(facts, found.ns);
  Interval3 saved = out.saved_ns;
  for (const auto& [row, factor] : found.factor) {
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[row]];
    // Where arithmetic sets its pace, less traffic saves little.
    const bool memory = kernel.roof.bound == Bound::kMemory;
    const Interval3 left = {1, memory ? factor : 1, memory ? kOnlyWrites.high * factor : factor};
    const double ns = facts.in_unit(facts.profile->kernels[row].duration.total_ns());
    saved = saved + Interval3{0, 1 - left.mid, 1 - left.high} * ns;
    most += ns;
    out.change.edits.emplace_back(edit::Scale{Affected::of_row(row), left});
    out.evidence.push_back({"a product that adds to what was just filled", problem_text(kernel),
                            "timeline and shapes"});
  }
  out.evidence.push_back(
      {"fills before them", view.part(in_one_unit(facts, found.ns)), "timeline"});
  out.assumptions.emplace_back("the fill sets zeros, so the product alone gives the same result");
  view.add(std::move(out), saved, most, "B");
}

}  // namespace

void add_fills_rule(HostView& view) {
  const auto is_fill = [](const std::string& kind) { return kind == "memset" || kind == "fill"; };
  double exposed = view.over_devices(&DeviceTime::exposed_copy_ns) * view.part_of_copies(is_fill);
  Affected fills = Affected::of_copies(view.copy_rows(is_fill));
  const Facts& facts = view.facts;
  for (std::uint32_t row = 0; row < facts.profile->kernels.size(); ++row) {
    const KernelRow& kernel = facts.profile->kernels[row];
    if (kernel.name.find("FillFunctor") == std::string::npos) continue;
    fills.kernel_rows.push_back(row);
    exposed += facts.in_unit(kernel.duration.total_ns() * facts.exposure.share[row]);
  }
  if (view.unit.host_ns > kLaunchBound * view.length) exposed += host_part_of_fills(view);
  if (exposed < kExposedCopies * view.length) return;
  if (const Accumulators found = find_accumulators(facts);
      static_cast<double>(found.fills.size()) * view.share >= 1 &&
      in_one_unit(facts, found.ns) >= kMostFills * exposed)
    return add_accumulators(view, found);
  Intervention out = from_remedy("remove_fills");
  out.evidence.push_back({"fills of memory that nothing hides", view.part(exposed), "timeline"});
  out.assumptions.emplace_back(
      "zeros may be what the program needs, so the low estimate is 0, and the middle half");
  out.change.edits.emplace_back(edit::Remove{std::move(fills), kHalf});
  view.add(std::move(out), kHalf * exposed, exposed, "C");
}

}  // namespace purlin::analyze
