// SPDX-License-Identifier: Apache-2.0
// Sums by index: with a sort of the indices for each of them, or by atomics onto a few places.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kNoSort = {
    "Add by index without a sort", "hours",
    "PyTorch: x.index_add_(0, i, y) or scatter_add_ for x.index_put_((i,), y, accumulate=True)|"
    "the gradient of x[i] is such a sum: x.index_select(0, i) or F.embedding(i, x) for x[i]|"
    "an index that stays the same: sort it once, then torch.segment_reduce",
    "the atomics add in any order: the last bits change from run to run"};
constexpr RemedyCase kSegments = {
    "Sum by segments instead of atomics onto a few places", "hours",
    "rows of equal length: x.view(groups, -1).sum(1)|"
    "sorted indices: torch.segment_reduce, or torch.cumsum at the borders|"
    "a few dozen places: a one-hot matrix and a product, or a table in shared memory for each "
    "block",
    "the order of the additions changes the last bits of a floating-point sum"};

constexpr std::string_view kPutting[] = {
    "aten::index_put_",        "aten::index_put", "aten::_index_put_impl_",
    "aten::_unsafe_index_put", "aten::put_",      "aten::put"};
constexpr std::string_view kSorted = "indexing_backward_kernel";
constexpr std::string_view kAdding[] = {"aten::index_add_",      "aten::index_add",
                                        "aten::scatter_add_",    "aten::scatter_add",
                                        "aten::scatter_reduce_", "aten::index_reduce_",
                                        "aten::scatter_reduce",  "aten::bincount",
                                        "aten::histc",           "aten::_histogramdd_from_bin_cts"};
// Of the bandwidth: atomics onto many places; a sum by segments.
constexpr Interval3 kAtomics = {0.1, 0.4, 0.8}, kSums = {0.1, 0.4, 0.9};
constexpr Interval3 kHostOfPut = {1, 0.7, 0.4};
constexpr double kManyEach = 64;      // values for each place
constexpr double kTimesItsBytes = 6;  // than the roof of its bytes
constexpr double kLongSum = 20'000;   // ns
constexpr double kBytesOfIndex = 8;

class ByIndex {
 public:
  ByIndex(Walk& walk, Advice& advice)
      : walk_(walk),
        timeline_(walk.facts().profile->timeline),
        advice_(advice),
        sorted_(walk),
        few_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) {
        if (const std::size_t end = end_of_put(run, i); end > i) {
          i = end - 1;
        } else if (const Sum sum = sum_of(run[i]); sum.places > 0 && !walk_.taken(run[i])) {
          walk_.take({run.data() + i, 1});
          few_.add({run.data() + i, 1});
        }
      }
    for (const Chain* chain : sorted_.all()) estimate_sorted(*chain);
    estimate_few();
  }

 private:
  // All launches of an op that adds by index after it has sorted them.
  std::size_t end_of_put(const Launches& run, std::size_t at) {
    const Op* op = outermost_op(timeline_, walk_.at(run[at]), kPutting);
    if (op == nullptr) return at;
    std::size_t end = at;
    bool sorts = false, taken = false;
    for (; end < run.size() && outermost_op(timeline_, walk_.at(run[end]), kPutting) == op; ++end) {
      sorts = sorts || walk_.stat(run[end]).name.full.find(kSorted) != std::string::npos;
      taken = taken || walk_.taken(run[end]);
    }
    if (!sorts || taken) return at;
    const std::span<const std::uint32_t> group{run.data() + at, end - at};
    walk_.take(group);
    sorted_.add(group);
    return end;
  }

  struct Sum {
    double places = 0, values = 0, bytes = 0;
  };
  // Of a launch that adds many values to each of a few places, far slower than its bytes ask for.
  Sum sum_of(std::uint32_t index) const {
    const KernelStat& stat = walk_.stat(index);
    if (std::find(std::begin(kAdding), std::end(kAdding), stat.op) == std::end(kAdding)) return {};
    const double size = std::max(4.0, bytes_per_element(stat.dtype));
    Sum out;
    Problem problem;
    problem.dimensions = dimensions_from_text(stat.shape);
    if (problem["indices"] > 0) {
      out.places = static_cast<double>(problem["rows"]) * static_cast<double>(problem["cols"]);
      out.values = static_cast<double>(problem["indices"]);
    } else {
      for (const auto& extents : input_extents(timeline_, walk_.at(index))) {
        const double elements = elements_of(extents);
        if (out.places <= 0) out.places = elements;
        out.values = std::max(out.values, elements);
      }
      if (stat.op == "aten::bincount" || stat.op == "aten::histc") out.places = 1;
    }
    out.bytes = out.values * (size + kBytesOfIndex);
    const double bandwidth = walk_.facts().bandwidth_of(stat), ns = stat.duration.mean_ns();
    if (bandwidth <= 0 || ns < kLongSum || out.values < kManyEach * out.places ||
        ns < kTimesItsBytes * out.bytes / bandwidth * 1e9)
      return {};
    return out;
  }

  void estimate_sorted(const Chain& chain) {
    const Launches& group = chain.groups.front();
    double most = 0;
    for (const std::uint32_t one : group) {
      for (const auto& extents : input_extents(timeline_, walk_.at(one)))
        most = std::max(most, elements_of(extents));
      most = std::max(most, walk_.touch(one).n);
    }
    const KernelStat& kernel = walk_.stat(group.back());
    const double bandwidth = walk_.facts().bandwidth_of(kernel);
    if (most <= 0 || bandwidth <= 0) return;
    const double bytes = most * (3 * 4 + kBytesOfIndex / 8);
    Intervention out = from_remedy(kReduceRemedy, kNoSort);
    out.evidence.push_back(
        {"kernels of one sum by index, which sorts the indices first",
         fmt::format("{}, {} each, {}", counted(static_cast<double>(group.size()), "kernel"),
                     short_ns(chain.each_ns()), counted(chain.count(), "time")),
         "timeline and ops of the host"});
    put(chain, bytes / bandwidth * 1e9, kAtomics, "atomics may add in any order", "B",
        std::move(out));
    // The op that is left asks for less of the host than checks and a sort.
    edit::ScaleHost host{kHostOfPut, {}, kNone};
    for (const Launches& one : chain.groups)
      if (const Op* op = outermost_op(timeline_, walk_.at(one.front()), kPutting); op != nullptr)
        if (host.when.empty() || host.when.back().end <= begin_of(*op))
          host.when.push_back(interval_of(*op));
    advice_.interventions.back().change.edits.emplace_back(std::move(host));
  }
  // Sums over one index, of values and of their number, are changed together.
  void estimate_few() {
    Intervention out = from_remedy(kAtomicsRule.remedies[0], kSegments);
    for (const Chain* chain : few_.all()) {
      const std::uint32_t first = chain->groups.front().front();
      const Sum sum = sum_of(first);
      const double roof = sum.bytes / walk_.facts().bandwidth_of(walk_.stat(first)) * 1e9;
      replace_quietly(walk_.facts(), *chain, each_scenario([&](const auto& of) {
                        return std::min(chain->each_ns(), std::max(kLeastLaunch, roof / of(kSums)));
                      }),
                      1, out);
      name_kernels(walk_.facts(), chain->rows, out);
      out.evidence.push_back(
          {problem_text(walk_.stat(first)),
           fmt::format("{} values into {} places; {}, {} each, its bytes take {}",
                       si(sum.values, ""), si(sum.places, ""), counted(chain->count(), "time"),
                       short_ns(chain->each_ns()), short_ns(roof)),
           "timeline and ops of the host"});
    }
    if (out.evidence.empty()) return;
    out.assumptions.emplace_back("the values of a place can be summed before they are added");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }
  void put(const Chain& chain, double roof_ns, Interval3 share, const char* assumes,
           const char* confidence, Intervention out) {
    const Interval3 after =
        each_scenario([&](const auto& of) { return std::max(kLeastLaunch, roof_ns / of(share)); });
    put_chain(walk_.facts(), chain, after, 1, assumes, confidence, std::move(out), advice_);
  }

  Walk& walk_;
  const Timeline& timeline_;
  Advice& advice_;
  Chains sorted_, few_;
};

}  // namespace

const Rule kByIndexRule = {{}, [](Walk& walk, Advice& advice) { ByIndex(walk, advice).run(); }};

}  // namespace purlin::analyze
