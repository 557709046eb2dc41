// SPDX-License-Identifier: Apache-2.0
// Products of which only some rows are used: the last position of a vocabulary product. The rows
// can be selected before the product.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/read_whole.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {

const Remedy kReduceRemedy = {
    "reduce_problem",
    "Select before computing: only part of the result is used",
    Pillar::kArithmeticIntensity,
    Level::kAlgorithm,
    "compute",
    "hours",
    "low",
    "api-independent",
    "application",
    "index the input of the product instead of its result: head(x[:, -1]) for head(x)[:, -1]|"
    "PyTorch: with Hugging Face, logits_to_keep=1 (num_logits_to_keep) when generating",
    "make sure that no other code reads the rest of the result"};

namespace {

constexpr RemedyCase kTop = {
    "Find the greatest few instead of sorting all", "hours",
    "PyTorch: torch.topk(x, k) for torch.sort(x)[:k]; max, min or kthvalue for one value|"
    "CUDA: CUB's DeviceTopK, or a selection by radix, for DeviceRadixSort",
    "equal values may come in another order"};

constexpr std::string_view kSorting[] = {"aten::sort", "aten::argsort"};
constexpr Interval3 kTopLeft = {0.7, 0.3, 0.1};  // of a sort's time
constexpr double kFewKept = 65'536;              // elements that the next kernel reads
constexpr double kSmallKept = 0.05;              // of those that were sorted
constexpr std::string_view kSelecting[] = {"aten::select", "aten::slice",        "aten::index",
                                           "aten::narrow", "aten::index_select", "aten::gather"};
constexpr std::string_view kOfDiagonal[] = {"aten::trace", "aten::diagonal"};
// Passes over the operands of a diagonal: low, a product of all pairs is written and read, and the
// turned operand is read at half of the rate.
constexpr Interval3 kDiagonalPasses = {5, 3, 2};
constexpr double kMostKept = 0.5;       // of the rows
constexpr std::size_t kMostPassed = 4;  // kernels between a product and what selects of it
constexpr Interval3 kSelectedCompute = {0.25, 0.5, 0.8}, kSelectedMemory = {0.4, 0.7, 0.92};

constexpr RemedyCase kDiagonal = {
    "Compute the diagonal alone, not the product", "hours",
    "PyTorch: (a * b.mT).sum() for torch.trace(a @ b); (a * b.mT).sum(-1) for its diagonal", ""};

// The name of one of some ops, between two calls on the host; "" without one.
std::string op_between(const Timeline& timeline, const Activity& a, const Activity& b,
                       std::span<const std::string_view> ops) {
  if (a.call >= timeline.calls.size() || b.call >= timeline.calls.size()) return "";
  const Call &from = timeline.calls[a.call], &to = timeline.calls[b.call];
  if (from.thread != to.thread || from.process != to.process) return "";
  auto op = std::partition_point(timeline.ops.begin(), timeline.ops.end(),
                                 [&](const Op& one) { return one.start_ns < end_of(from); });
  for (; op != timeline.ops.end() && op->start_ns < to.start_ns; ++op) {
    if (op->thread != from.thread || op->process != from.process) continue;
    const std::string_view name = name_in(timeline, op->name);
    if (std::find(ops.begin(), ops.end(), name) != ops.end()) return std::string(name);
  }
  return "";
}
std::string selection_between(const Timeline& timeline, const Activity& a, const Activity& b) {
  return op_between(timeline, a, b, kSelecting);
}

// The same between a call and the next launch, copy or wait of its thread.
std::string op_behind(const Timeline& timeline, const Activity& a,
                      std::span<const std::string_view> ops) {
  if (a.call >= timeline.calls.size()) return "";
  const Call& from = timeline.calls[a.call];
  Activity next;
  for (std::uint32_t i = a.call + 1; i < timeline.calls.size(); ++i) {
    const Call& to = timeline.calls[i];
    if (to.thread != from.thread || to.process != from.process || to.start_ns < end_of(from))
      continue;
    next.call = i;
    return op_between(timeline, a, next, ops);
  }
  return "";
}

// Of a launch that selects rows of a product: "indices=8,cols=32000,rows=4096" of
// aten::index_select. 0 where it does not, or selects along the other extent.
double rows_selected(const Touch& product, const KernelStat& selection) {
  const std::string_view op = selection.op;
  if (std::find(std::begin(kSelecting), std::end(kSelecting), op) == std::end(kSelecting)) return 0;
  double indices = 0, cols = 0, rows = 0;
  for (const Dimension& dimension : dimensions_from_text(selection.shape)) {
    const auto value = static_cast<double>(dimension.value);
    if (dimension.name == "indices") indices = value;
    if (dimension.name == "cols") cols = value;
    if (dimension.name == "rows") rows = value;
  }
  if (rows != product.batch * product.m) return 0;
  // Of a gather, each element has an index.
  return cols == product.columns ? indices : 0;
}

class Reduce {
 public:
  Reduce(Walk& walk, Advice& advice)
      : walk_(walk), advice_(advice), trains_(walk.trains()), chains_(walk), diagonals_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) {
        if (!diagonal(run, i) && i + 1 < run.size()) look_at(run, i);
        sorts(run, i);
      }
    settle();
    for (const Chain* chain : chains_.all()) estimate(*chain);
    for (const Chain* chain : diagonals_.all()) estimate_diagonal(*chain);
    if (!sorts_.empty()) add_sorts();
  }

 private:
  struct Selected {
    std::array<std::uint32_t, 2> pair;  // a product and the reader of a part
    Launches around;
    std::string op;
  };
  std::pair<std::size_t, std::size_t> rows_of(const Selected& one) const {
    const auto row = [&](std::uint32_t activity) {
      return walk_.facts().row_of[walk_.at(activity).row];
    };
    return {row(one.pair[0]), row(one.pair[1])};
  }

  // A convolution's result may change its layout first, and pass an activation and the like.
  std::size_t reader_after(const Launches& run, std::size_t at) const {
    const Touch& product = walk_.touch(run[at]);
    const std::size_t most = at + 1 + (trains_ ? 0 : kMostPassed);
    const auto passes_on = [&](std::size_t i) {
      const Touch& touch = walk_.touch(run[i]);
      return i < most && touch.kind == TouchKind::kPointwise && touch.n == product.n &&
             touch.out == product.n && touch.inputs <= 1 && !touch.compares;
    };
    for (++at;
         at + 1 < run.size() && (walk_.stat(run[at]).name.op_class == "layout" || passes_on(at));)
      ++at;
    return at;
  }
  // Rows of the product that the next launch takes: the selection itself, or what follows one.
  double rows_read(const Touch& product, const KernelStat& next, const Touch& reader) const {
    if (const double rows = rows_selected(product, next); rows > 0) return rows;
    return reader.light() ? reader.n / (product.batch * product.columns) : 0;
  }
  void look_at(const Launches& run, std::size_t at) {
    const std::size_t end = reader_after(run, at);
    const std::uint32_t product = run[at], reader = run[end];
    const Touch &a = walk_.touch(product), &b = walk_.touch(reader);
    if (!a.multiplies() || walk_.taken(product)) return;
    const KernelStat& next = walk_.stat(reader);
    const double kept = rows_read(a, next, b);
    if (kept < 1 || kept != std::floor(kept) || kept > kMostKept * a.m) return;
    const std::string op = rows_selected(a, next) > 0
                               ? next.op
                               : selection_between(walk_.facts().profile->timeline,
                                                   walk_.at(run[end - 1]), walk_.at(reader));
    if (op.empty()) return;
    const auto changes_layout = [&](std::size_t i) {
      return walk_.stat(run[i]).name.op_class == "layout";
    };
    Selected one{{product, reader}, {}, op};
    for (std::size_t i = at; i > 0 && changes_layout(i - 1); --i) one.around.push_back(run[i - 1]);
    for (std::size_t i = at + 1; i < end; ++i) one.around.push_back(run[i]);
    if (read_whole_after(walk_, run, end, a.n)) read_whole_.insert(rows_of(one));
    selected_.push_back(std::move(one));
  }
  // Where the result is read whole in one place, it may be so in others: the program returns it.
  void settle() {
    for (const Selected& one : selected_) {
      if (read_whole_.contains(rows_of(one))) continue;
      op_ = one.op;
      walk_.take({one.pair.data(), 1});
      chains_.add(one.pair);
      Launches& around = around_[{walk_.at(one.pair[0]).row, walk_.at(one.pair[1]).row}];
      around.insert(around.end(), one.around.begin(), one.around.end());
    }
  }

  // A square product, of which the program takes the diagonal, and no kernel reads the rest.
  bool returns_diagonal(const Launches& run, std::size_t at) {
    const Touch& product = walk_.touch(run[at]);
    if (product.kind != TouchKind::kProduct || walk_.taken(run[at]) ||
        product.m != product.columns ||
        op_behind(walk_.facts().profile->timeline, walk_.at(run[at]), kOfDiagonal).empty() ||
        read_whole_after(walk_, run, at, product.n))
      return false;
    walk_.take({run.data() + at, 1});
    diagonals_.add({run.data() + at, 1});
    return true;
  }
  // As many elements are read of a product as its diagonal has.
  bool diagonal(const Launches& run, std::size_t at) {
    if (at + 1 == run.size()) return returns_diagonal(run, at);
    const std::span<const std::uint32_t> pair{run.data() + at, 2};
    const Touch &product = walk_.touch(pair[0]), &reader = walk_.touch(pair[1]);
    if (product.kind != TouchKind::kProduct || walk_.taken(pair[0]) || !reader.light() ||
        reader.n != product.batch * product.vectors())
      return false;
    if (op_between(walk_.facts().profile->timeline, walk_.at(pair[0]), walk_.at(pair[1]),
                   kOfDiagonal)
            .empty())
      return false;
    if (read_whole_after(walk_, run, at + 1, product.n)) return false;
    walk_.take(pair);
    diagonals_.add(pair);
    return true;
  }
  void estimate_diagonal(const Chain& chain) {
    const Facts& facts = walk_.facts();
    const Touch& touch = walk_.row_touch(chain.rows.front());
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.bandwidth <= 0) return;
    const double operand = touch.in_size * touch.batch * touch.vectors() * touch.depth;
    const auto after = [&](double passes, double memory) {
      return std::min(chain.each_ns(), roof_ns(peaks, 0, passes * operand, 1, memory));
    };
    Intervention out = from_remedy(kReduceRemedy, kDiagonal);
    become(facts, chain,
           {after(kDiagonalPasses.low, kSelectedMemory.low),
            after(kDiagonalPasses.mid, kSelectedMemory.mid),
            after(kDiagonalPasses.high, kSelectedMemory.high)},
           2, out);
    name_kernel(kernel, out);
    out.evidence.push_back(
        {problem_text(kernel),
         fmt::format("{}, {} each", counted(chain.count(), "time"), short_ns(chain.each_ns())),
         "timeline and shapes"});
    out.evidence.push_back(
        {"elements of the product that are read, of its diagonal",
         fmt::format("{} of {}", si(touch.batch * touch.vectors(), ""), si(touch.n, "")),
         "shapes"});
    out.assumptions.emplace_back("no other kernel reads the rest of the product");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  bool sorts(std::uint32_t activity) const {
    return std::find(std::begin(kSorting), std::end(kSorting), walk_.stat(activity).op) !=
           std::end(kSorting);
  }
  // Elements that the op of a launch sorts; 0 where its extents were not recorded.
  double sorted(std::uint32_t activity) const {
    const auto extents = input_extents(walk_.facts().profile->timeline, walk_.at(activity));
    return extents.empty() ? 0 : elements_of(extents.front());
  }
  // All kernels of a sort, of whose result a selection takes few elements.
  void sorts(const Launches& run, std::size_t last) {
    if (!sorts(run[last]) || walk_.taken(run[last])) return;
    const bool is_read = last + 1 < run.size();
    if (is_read && sorts(run[last + 1])) return;
    const Timeline& timeline = walk_.facts().profile->timeline;
    std::string op;
    double kept = 0;
    if (is_read) {
      const Touch& reader = walk_.touch(run[last + 1]);
      if (!reader.light() || reader.n > std::max(kFewKept, kSmallKept * sorted(run[last]))) return;
      kept = reader.n;
      op = selection_between(timeline, walk_.at(run[last]), walk_.at(run[last + 1]));
    } else {  // no kernel of the step reads it: what the program takes of it is sliced on the host
      op = op_behind(timeline, walk_.at(run[last]), kSelecting);
    }
    if (op.empty()) return;
    std::size_t first = last;
    while (first > 0 && sorts(run[first - 1])) --first;
    walk_.take({run.data() + first, last + 1 - first});
    sorts_.insert(sorts_.end(), run.begin() + static_cast<std::ptrdiff_t>(first),
                  run.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    op_ = op;
    kept_ = kept;
  }
  void add_sorts() {
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kReduceRemedy, kTop);
    remove_launches(walk_, sorts_, {1 - kTopLeft.low, 1 - kTopLeft.mid, 1 - kTopLeft.high}, out);
    for (const std::uint32_t activity : sorts_) name_kernel(walk_.stat(activity), out);
    out.evidence.push_back(
        {"kernels of sorts whose result is selected from",
         fmt::format(
             "{}{}, {}", counted(in_one_unit(facts, static_cast<double>(sorts_.size())), "launch"),
             a_unit(facts),
             of_total(in_one_unit(facts, walk_.duration(sorts_)), facts.unit.baseline_ns.mid)),
         "timeline"});
    if (kept_ > 0)
      out.evidence.push_back({fmt::format("elements that the next kernel reads, after {}", op_),
                              format_count(kept_), "shapes"});
    else
      out.evidence.push_back({"no kernel of the step reads the result whole", op_, "timeline"});
    out.assumptions.push_back(
        fmt::format("a selection takes {:.1f} to {:.1f} of the sort's time; no other kernel reads "
                    "the rest",
                    kTopLeft.high, kTopLeft.low));
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  void estimate(const Chain& both) {
    const Facts& facts = walk_.facts();
    Chain chain = both;  // of the product alone
    chain.rows.resize(1);
    chain.ns = chain.exposed_ns = 0;
    for (Launches& group : chain.groups) {
      group.resize(1);
      chain.ns += walk_.duration(group.front());
    }
    chain.exposed_ns = chain.ns * facts.exposure.share[chain.rows.front()];
    const Touch& touch = walk_.row_touch(chain.rows.front());
    const std::uint32_t last = both.rows.back();
    const double kept =
        rows_read(touch, facts.rows.kernels[facts.row_of[last]], walk_.row_touch(last));
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0) return;
    const double flops = touch.flops() * kept / touch.m;
    const double bytes = touch.in_size * touch.batch *
                         (kept * touch.depth + touch.depth * touch.columns + kept * touch.columns);
    const auto after = [&](double compute, double memory) {
      return std::min(chain.each_ns(), roof_ns(peaks, flops, bytes, compute, memory));
    };
    Intervention out = from_remedy(kReduceRemedy);
    become(facts, chain,
           {after(kSelectedCompute.low, kSelectedMemory.low),
            after(kSelectedCompute.mid, kSelectedMemory.mid),
            after(kSelectedCompute.high, kSelectedMemory.high)},
           1, out);
    name_kernel(kernel, out);
    // Changes of layout next to a convolution, and activations after it, are of whole images.
    if (const auto found = around_.find({chain.rows.front(), last});
        found != around_.end() && !found->second.empty()) {
      const double left = kept / touch.m;
      remove_launches(walk_, found->second,
                      {1 - std::min(1.0, 3 * left), 1 - std::min(1.0, 1.5 * left), 1 - left}, out);
      out.evidence.push_back({"changes of layout and pointwise kernels around it, of whole images",
                              short_ns(in_one_unit(facts, walk_.duration(found->second))),
                              "kernel name"});
    }
    out.evidence.push_back(
        {problem_text(kernel),
         fmt::format("{}, {} each", counted(chain.count(), "time"), short_ns(chain.each_ns())),
         "timeline and shapes"});
    out.evidence.push_back({fmt::format("rows that the next kernel reads, after {}", op_),
                            fmt::format("{:.0f} of {:.0f}", kept, touch.m), "shapes"});
    out.evidence.push_back({"work",
                            fmt::format("{} now, {} of the rows that are read",
                                        si(touch.flops(), "FLOP"), si(flops, "FLOP")),
                            "shape model"});
    out.assumptions.emplace_back("no other kernel reads the rest of the result");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  bool trains_;
  Chains chains_, diagonals_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Launches> around_;  // by product and reader
  std::vector<Selected> selected_;
  std::set<std::pair<std::size_t, std::size_t>> read_whole_;  // by report rows
  Launches sorts_;
  std::string op_;
  double kept_ = 0;
};

}  // namespace

const Rule kReduceRule = {{&kReduceRemedy, 1}, [](Walk& walk, Advice& advice) {
                            if (!walk.known().reads) Reduce(walk, advice).run();
                          }};

}  // namespace purlin::analyze
