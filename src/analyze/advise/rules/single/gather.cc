// SPDX-License-Identifier: Apache-2.0
// Look-ups by index far below the bandwidth: neighbours in the result are not neighbours in the
// source, so each access moves a sector for a few of its bytes.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr Remedy kGather = {"local_gathers",
                            "Read whole rows: order the data as it is looked up",
                            Pillar::kMemoryEfficiency,
                            Level::kAlgorithm,
                            "memory",
                            "days",
                            "low",
                            "api-independent",
                            "application",
                            "gather along the first axis: store the transposed table once|"
                            "sort or bin the indices, or reorder the data, once|"
                            "PyTorch: torch.where instead of a mask as index",
                            "an order that is changed must be changed back where it matters"};

constexpr double kPoor = 0.5;  // of the bandwidth
constexpr double kIndexBytes = 8;
constexpr double kLeast = 0.4;  // of the bandwidth, that rows reach
constexpr std::string_view kByIndex[] = {"index", "gather", "scatter", "take", "embedding"};

// PyTorch's kernel that gives each row a separate block: as slow in any order.
constexpr std::string_view kByBlock = "vectorized_gather_kernel";

bool by_index(const KernelStat& kernel) {
  if (kernel.name.full.find(kByBlock) != std::string::npos) return false;
  if (kernel.name.op_class == "embedding") return true;
  for (const std::string_view word : kByIndex)
    if (kernel.op.find(word) != std::string::npos || kernel.name.brief.find(word) == 0) return true;
  return false;
}

// PyTorch's kernel for indices handles four elements a thread; each reads its index as well. Where
// the op's shape is not known, the launch tells the elements to within a block.
double share_by_launch(const Facts& facts, const KernelStat& kernel) {
  constexpr double kPerThread = 4;
  if (kernel.name.full.find("index_elementwise_kernel") == std::string::npos) return 0;
  const double size = std::max(1.0, bytes_per_element(kernel.dtype.empty() ? "f32" : kernel.dtype));
  const double elements = static_cast<double>(kernel.launch.blocks()) *
                          static_cast<double>(kernel.launch.block[0]) * kPerThread;
  const double bandwidth = facts.bandwidth_of(kernel);
  if (bandwidth <= 0) return 0;
  return elements * (2 * size + kIndexBytes) / bandwidth * 1e9 / kernel.duration.mean_ns();
}

bool one_column(const KernelStat& kernel) {
  Problem problem;
  problem.dimensions = dimensions_from_text(kernel.shape);
  return problem["indices"] > 0 && problem["cols"] == 1;
}

// A sparse product looks rows of the dense operand up, by the numbers of the matrix's columns.
constexpr std::string_view kSparseProducts[] = {"csrmm", "csrmv", "csr_spmm",
                                                "spmm_", "coomm", "bsrmm"};
constexpr double kLeastSparse = 0.1;                // of the unit
constexpr Interval3 kRenumbered = {1, 0.75, 0.45};  // of its time
constexpr RemedyCase kNumbers = {
    "Number the nodes so that neighbours are near", "hours",
    "scipy.sparse.csgraph.reverse_cuthill_mckee, or METIS: renumber nodes and rows once|"
    "geometry: order by a space-filling curve (Morton, Hilbert)",
    "results come in the new order: map them back where it matters"};

void add_sparse(const Facts& facts, Advice& advice) {
  Intervention out = from_remedy(kGather, kNumbers);
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    const bool sparse = std::any_of(
        std::begin(kSparseProducts), std::end(kSparseProducts),
        [&](std::string_view word) { return kernel.name.full.find(word) != std::string::npos; });
    const double ns = facts.in_unit(kernel.duration.total_ns());
    if (!sparse || ns < kLeastSparse * facts.unit.baseline_ns.mid) continue;
    scale_row(facts, i, kRenumbered, out);
    name_kernel(kernel, out);
    out.evidence.push_back({short_label(kernel),
                            fmt::format("a sparse product, {}{}", short_ns(ns), a_unit(facts)),
                            "kernel name"});
  }
  if (out.evidence.empty()) return;
  out.assumptions.emplace_back(
      "the order of the rows was not recorded: where it is a good one, the low estimate holds");
  out.confidence = "D";
  advice.interventions.push_back(std::move(out));
}

// Samples of a volume or picture at given points: each reads the corners around it, all channels.
constexpr double kTimesSampled = 5;  // over reading the picture and the points once
constexpr double kPointsInOrder = 8, kLikelyInOrder = 3;  // over the same, afterwards
constexpr double kLongSample = 50'000;                    // ns
constexpr RemedyCase kPoints = {
    "Sample the points in an order in which neighbours are near", "days",
    "sort the points by cell or along a space-filling curve (Morton) once, and undo it at the end|"
    "channels last: one point's channels lie side by side|"
    "a smaller or 16-bit volume that fits into the L2 cache",
    "an order that is changed must be changed back where it matters"};

void add_samples(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  std::vector<bool> seen(facts.rows.kernels.size(), false);
  for (const Launches& run : walk.runs())
    for (const std::uint32_t one : run) {
      const KernelStat& kernel = walk.stat(one);
      const std::size_t row = facts.row_of[walk.at(one).row];
      if (seen[row] || !starts_with(kernel.op, "aten::grid_sampler")) continue;
      seen[row] = true;
      const auto extents = input_extents(facts.profile->timeline, walk.at(one));
      const double bandwidth = facts.bandwidth_of(kernel), ns = kernel.duration.mean_ns();
      if (extents.size() < 2 || extents[0].size() < 4 || bandwidth <= 0 || ns < kLongSample)
        continue;
      const double size = std::max(2.0, bytes_per_element(kernel.dtype));
      const double grid = elements_of(extents[1]);
      const double points = grid / std::max(1.0, extents[1].back());
      const double bytes = size * (elements_of(extents[0]) + grid + points * extents[0][1]);
      const double left = bytes / bandwidth * 1e9 / ns;
      if (left * kTimesSampled > 1) continue;
      Intervention out = from_remedy(kGather, kPoints);
      const auto factor = [&](double times) { return std::min(1.0, times * left); };
      scale_row(facts, row, {factor(kPointsInOrder), factor(kLikelyInOrder), left}, out);
      name_kernel(kernel, out);
      out.evidence.push_back(
          {short_label(kernel),
           fmt::format("{} points of {}, {} each; reading all once takes {}", si(points, ""),
                       format_bytes(size * elements_of(extents[0])), short_ns(ns),
                       short_ns(left * ns)),
           "shapes"});
      out.assumptions.emplace_back("the points come in any order: that was not recorded");
      out.confidence = "C";
      advice.interventions.push_back(std::move(out));
    }
}

void add_gathers(Walk& walk, Advice& advice) {
  add_sparse(walk.facts(), advice);
  add_samples(walk, advice);
  const Facts& facts = walk.facts();
  Intervention out = from_remedy(kGather);
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    if (!by_index(kernel) || kernel.duration.mean_ns() < kShortLaunch ||
        few_threads_of_bags(facts, kernel) > 0)
      continue;
    const bool by_shape = kernel.roof.memory_share > 0;
    const double used = by_shape ? kernel.roof.memory_share : share_by_launch(facts, kernel);
    if (used <= 0 || used >= kPoor) continue;
    // An index for each element may be one for each row, repeated: then it is not read each time.
    const Touch& touch = walk.report_touch(i);
    const double size = std::max(1.0, bytes_per_element(kernel.dtype));
    const double least = touch.kind == TouchKind::kOther && by_shape && one_column(kernel)
                             ? used * 2 * size / (2 * size + kIndexBytes)
                             : used;
    const auto factor = [](double of, double share) { return std::min(1.0, of / share); };
    scale_row(facts, i, {factor(used, kLeast), factor(least, 0.65), factor(least, 0.92)}, out);
    name_kernel(kernel, out);
    out.evidence.push_back({problem_text(kernel),
                            fmt::format("{}{}, at {} of the bandwidth",
                                        short_ns(facts.in_unit(kernel.duration.total_ns())),
                                        a_unit(facts), percent(used)),
                            by_shape ? "shape model" : "launch"});
  }
  if (out.evidence.empty()) return;
  out.assumptions.emplace_back(
      "the order can be changed, and reaches 0.4 to 0.92 of the bandwidth, in the middle 0.65");
  out.confidence = "C";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kGatherRule = {{&kGather, 1}, add_gathers};

}  // namespace purlin::analyze
