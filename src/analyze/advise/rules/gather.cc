// SPDX-License-Identifier: Apache-2.0
// Look-ups by index far below the bandwidth: neighbours in the result are not neighbours in the
// source, so each access moves a sector for a few of its bytes.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr Remedy kGather = {
    "local_gathers",
    "Read whole rows: order the data as it is looked up",
    Pillar::kMemoryEfficiency,
    Level::kAlgorithm,
    "memory",
    "days",
    "low",
    "api-independent",
    "application",
    "gather along the first axis of a contiguous tensor: store the transposed table once|"
    "sort or bin the indices, so that neighbours read neighbours; reorder the data once|"
    "avoid masks as indices: they are turned into index lists first (torch.where instead)",
    "an order that is changed must be changed back where it matters"};

constexpr double kPoor = 0.35;  // of the bandwidth
constexpr std::string_view kByIndex[] = {"index", "gather", "scatter", "take", "embedding"};

bool by_index(const KernelStat& kernel) {
  if (kernel.name.op_class == "embedding") return true;
  for (const std::string_view word : kByIndex)
    if (kernel.op.find(word) != std::string::npos || kernel.name.brief.find(word) == 0) return true;
  return false;
}

void add_gathers(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Intervention out = from_remedy(kGather);
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    const Roof& roof = kernel.roof;
    if (!by_index(kernel) || roof.memory_share <= 0 || roof.memory_share >= kPoor ||
        kernel.duration.mean_ns() < kShortLaunch)
      continue;
    const auto factor = [&](double share) { return std::min(1.0, roof.memory_share / share); };
    scale_row(facts, i, {1, factor(0.5), factor(0.92)}, out);
    name_kernel(kernel, out);
    out.evidence.push_back(
        {problem_text(kernel),
         fmt::format("{} for {}: {} of the bandwidth",
                     short_ns(facts.in_unit(kernel.duration.total_ns())) + a_unit(facts),
                     format_bytes(roof.bytes), percent(roof.memory_share)),
         "shape model"});
  }
  if (out.evidence.empty()) return;
  out.assumptions.emplace_back(
      "the order can be changed: the low estimate is 0, the middle reaches half of the bandwidth");
  out.confidence = "C";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kGatherRule = {{&kGather, 1}, add_gathers};

}  // namespace purlin::analyze
