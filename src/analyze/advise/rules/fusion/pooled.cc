// SPDX-License-Identifier: Apache-2.0
// Rows that are looked up in a table and then summed: the rows are written and read again, where
// one kernel adds them up as it reads them.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kPooled = {
    "Add up the rows while they are looked up", "hours",
    "PyTorch: F.embedding_bag or nn.EmbeddingBag (mode=\"sum\", \"mean\" or \"max\") for an "
    "embedding and its sum|"
    "for other gathers: torch.compile, or a kernel that reads by index and adds",
    "sums of 16 bits round elsewhere"};

constexpr Interval3 kReads = {0.8, 0.5, 0.5};  // of a gather's time
constexpr double kByIndexAtBest = 0.65;        // of the bandwidth

// The rows that a gather copies, in elements; 0 of other kernels.
double looked_up(const KernelStat& kernel) {
  if (kernel.name.op_class != "embedding") return 0;
  Problem problem;
  problem.dimensions = dimensions_from_text(kernel.shape);
  return static_cast<double>(problem["indices"]) * static_cast<double>(problem["cols"]);
}

class Pooled {
 public:
  Pooled(Walk& walk, Advice& advice) : walk_(walk), advice_(advice), chains_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i + 1 < run.size(); ++i) look_at({run.data() + i, 2});
    for (const Chain* chain : chains_.all()) estimate(*chain);
  }

 private:
  void look_at(std::span<const std::uint32_t> pair) {
    const Touch& sum = walk_.touch(pair[1]);
    const double rows = looked_up(walk_.stat(pair[0]));
    if (walk_.taken(pair[0]) || walk_.taken(pair[1])) return;
    if (rows <= 0 || sum.kind != TouchKind::kReduction || sum.n != rows || sum.out * 2 > rows)
      return;
    walk_.take(pair);
    chains_.add(pair);
  }
  void estimate(const Chain& chain) {
    const Facts& facts = walk_.facts();
    const KernelStat& gather = facts.rows.kernels[facts.row_of[chain.rows[0]]];
    const Touch& sum = walk_.row_touch(chain.rows[1]);
    const Peaks peaks = peaks_of(facts, gather, gather.dtype);
    const double each = chain.each_ns(), first = gather.duration.mean_ns();
    const double rows = sum.n * sum.in_size;
    if (peaks.bandwidth <= 0 || first <= 0) return;
    // The writes go. At the gather's own rate they are half of its time; reads by index are slower.
    const double moved = rows + sum.written;
    const auto at = [&](double memory) { return moved / (memory * peaks.bandwidth) * 1e9; };
    const Interval3 after = {std::min(each, std::max(at(facts.targets.memory), kReads.low * first)),
                             std::min(each, std::max(at(facts.targets.memory), kReads.mid * first)),
                             std::min({each, at(kByIndexAtBest), kReads.mid * first})};
    Intervention out = from_remedy(kFusionRule.remedies[0], kPooled);
    become(facts, chain, after, 1, out);
    name_kernels(facts, chain.rows, out);
    out.evidence.push_back({"rows that are looked up, written, and read again for their sums",
                            fmt::format("{}, {} each, {}", counted(sum.n, "element"),
                                        short_ns(each), counted(chain.count(), "time")),
                            "timeline and shapes"});
    out.evidence.push_back(
        {"bytes moved",
         fmt::format("{} now, {} in one kernel", format_bytes(3 * rows + sum.written),
                     format_bytes(rows + sum.written)),
         "shape model"});
    out.assumptions.emplace_back(
        "no other kernel reads the rows; without its writes, the gather takes 0.5 of its time at "
        "its "
        "own rate, 0.8 at worst");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Chains chains_;
};

}  // namespace

const Rule kPooledRule = {{}, [](Walk& walk, Advice& advice) { Pooled(walk, advice).run(); }};

}  // namespace purlin::analyze
