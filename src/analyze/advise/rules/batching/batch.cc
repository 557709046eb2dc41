// SPDX-License-Identifier: Apache-2.0
// Small products launched one by one: vectors times a matrix, one after the other, read the matrix
// each time; products too small for the device leave most of it idle. One batched product does
// both at once.
#include "analyze/advise/rules/loop.h"
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr Remedy kBatch = {
    "batch_products",
    "Compute the small products in one launch",
    Pillar::kOccupancy,
    Level::kAlgorithm,
    "latency",
    "hours",
    "low",
    "api-independent",
    "application",
    "the same matrix for many vectors: stack the vectors and multiply once|"
    "different matrices: concatenate them into one|"
    "PyTorch: torch.bmm or torch.func.vmap; for different sizes torch._grouped_mm|"
    "CUDA: batched or grouped GEMM (cuBLASLt, CUTLASS)",
    ""};

constexpr RemedyCase kBatchSystems = {
    "Factorise or solve the small systems in one launch", "hours",
    "PyTorch: stack the matrices; torch.linalg works on the last two dimensions of a batch|"
    "CUDA: cusolverDn…Batched, cublas…Batched|HIP: rocSOLVER's batched forms",
    "the systems must be independent of one another"};

constexpr RemedyCase kParallelForm = {
    "Compute the recurrence over all points of time with products", "days",
    "a state that only decays and gains outer products has a parallel form: (q k^T * decay) v, in "
    "chunks where there are many points of time|"
    "libraries: flash-linear-attention, mamba-ssm",
    "rounding differs; compare results within a tolerance"};

constexpr std::string_view kSlicing[] = {"aten::unbind", "aten::split", "aten::chunk"};
// Factorisations and solutions of small systems: their libraries have forms for many at once.
constexpr std::string_view kSolving[] = {
    "cholesky",  "linalg_qr",  "linalg_eig",       "linalg_svd", "linalg_inv",
    "linalg_lu", "linalg_ldl", "linalg_solve",     "linalg_det", "linalg_slogdet",
    "lu_solve",  "lstsq",      "triangular_solve", "geqrf",      "ormqr"};
constexpr double kManySystems = 8;
constexpr Interval3 kSystemsGone = {0.6, 0.9, 1};  // of all rounds but the first
// A recurrence: points of time from which the parallel form pays, its chunk, and its launches.
constexpr double kManyPoints = 16, kChunk = 64, kParallelLaunches = 12;
constexpr std::string_view kLinear[] = {"aten::mul", "aten::mul_", "aten::add",  "aten::add_",
                                        "aten::sub", "aten::sub_", "aten::copy_"};
constexpr std::size_t kFewest = 4;
constexpr double kSmallProduct = 30'000;  // ns
constexpr double kUnsizedRound = 0.3;     // of a round's time, where the sizes are not known
constexpr double kVectors = 16;           // rows that still count as vectors
constexpr double kManyAlike = 8;          // vectors in a row: rarely of different matrices

class Batch {
 public:
  Batch(Walk& walk, Advice& advice)
      : walk_(walk), advice_(advice), chains_(walk), rounds_(walk), carried_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs()) {
      std::size_t begin = 0;
      while (begin < run.size()) {
        std::size_t end = begin, count = 0;
        for (; end < run.size() && same(run[end], run[begin]); ++count) end = end_of_op(run, end);
        if (count >= kFewest && small(run[begin])) keep({run.data() + begin, end - begin});
        begin = std::max(end, begin + 1);
      }
    }
    for (const Chain* chain : chains_.all()) estimate(*chain);
    for (const Loop& loop : find_loops(walk_.facts()))
      if (carries_state(loop)) {
        carried_.add(loop.launches);
        periods_[loop.launches.size()] = loop.period;
      } else if (loop.period > 1 && has_small_products(loop) &&
                 rounds_are_independent(walk_, loop)) {
        rounds_.add(loop.launches);
        periods_[loop.launches.size()] = loop.period;
      }
    for (const Chain* chain : rounds_.all()) estimate_rounds(*chain);
    for (const Chain* chain : carried_.all()) estimate_carried(*chain);
    systems();
  }

 private:
  // A product may end with a kernel that adds its parts up.
  std::size_t end_of_op(const Launches& run, std::size_t at) const {
    const Timeline& timeline = walk_.facts().profile->timeline;
    std::size_t end = at + 1;
    while (end < run.size() && !same(run[end], run[at]) && !walk_.taken(run[end]) &&
           same_op(timeline, walk_.at(run[at]), walk_.at(run[end])))
      ++end;
    return end;
  }
  bool same(std::uint32_t a, std::uint32_t b) const {
    const Facts& facts = walk_.facts();
    return facts.row_of[walk_.at(a).row] == facts.row_of[walk_.at(b).row] && !walk_.taken(a);
  }
  bool small(std::uint32_t activity) const {
    return walk_.touch(activity).kind == TouchKind::kProduct && !walk_.taken(activity) &&
           walk_.stat(activity).duration.mean_ns() < kSmallProduct;
  }
  bool has_small_products(const Loop& loop) const {
    return std::any_of(loop.launches.begin(),
                       loop.launches.begin() + static_cast<std::ptrdiff_t>(loop.period),
                       [&](std::uint32_t one) { return small(one); });
  }
  bool solves(const Loop& loop) const {
    return std::any_of(
        loop.launches.begin(), loop.launches.begin() + static_cast<std::ptrdiff_t>(loop.period),
        [&](std::uint32_t one) {
          const std::string_view op = walk_.stat(one).op;
          return std::any_of(std::begin(kSolving), std::end(kSolving), [&](std::string_view word) {
            return op.find(word) != std::string_view::npos;
          });
        });
  }
  // Whether a round multiplies a vector by a state, and changes the state by outer products and
  // factors alone: then each result is a sum over the points of time before it.
  bool carries_state(const Loop& loop) const {
    if (loop.rounds() < kManyPoints || loop.period > 8) return false;
    const std::span<const std::uint32_t> round{loop.launches.data(), loop.period};
    const Touch* product = nullptr;
    for (const std::uint32_t one : round) {
      if (walk_.taken(one)) return false;
      if (walk_.touch(one).kind == TouchKind::kProduct) {
        if (product != nullptr) return false;
        product = &walk_.touch(one);
      }
    }
    if (product == nullptr || product->vectors() != 1) return false;
    const double state = product->matrix();
    bool gains = false, adds = false;
    for (const std::uint32_t one : round) {
      const Touch& touch = walk_.touch(one);
      if (&touch == product) continue;
      if (touch.kind != TouchKind::kPointwise || touch.n != state || !is_linear(one)) return false;
      // An outer product is made from two vectors for each state.
      gains = gains || (touch.inputs < 1 && touch.read > 0);
      adds = adds || touch.inputs >= 2;
    }
    return gains && adds;
  }
  bool is_linear(std::uint32_t one) const {
    return std::find(std::begin(kLinear), std::end(kLinear), walk_.stat(one).op) !=
           std::end(kLinear);
  }
  void estimate_carried(const Chain& chain) {
    const Facts& facts = walk_.facts();
    const std::size_t period = periods_.at(chain.rows.size());
    const double points = static_cast<double>(chain.rows.size()) / static_cast<double>(period);
    const Touch* product = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i < period; ++i)
      if (walk_.row_touch(chain.rows[i]).kind == TouchKind::kProduct) {
        product = &walk_.row_touch(chain.rows[i]);
        at = i;
      }
    if (product == nullptr) return;
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows[at]]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0) return;
    // Scores within a chunk, their product with the values, and a state for each chunk.
    const double width = product->columns * product->m + product->depth;
    const double chunk = std::min(points, kChunk);
    const double flops =
        points * product->batch * (2 * chunk * width) + 2 * points * product->flops();
    const double bytes = product->in_size * points * product->batch * (3 * width + chunk) +
                         3 * product->in_size * product->matrix() * std::max(1.0, points / kChunk);
    const auto after = [&](double compute, double memory) {
      return std::min(chain.each_ns(),
                      kParallelLaunches * roof_ns(peaks, flops / kParallelLaunches,
                                                  bytes / kParallelLaunches, compute, memory));
    };
    Intervention out = from_remedy(kBatch, kParallelForm);
    become(facts, chain, {after(0.02, 0.2), after(0.1, 0.4), after(0.4, 0.8)}, kParallelLaunches,
           out);
    drop_slicing(chain, out);
    name_kernels(
        facts, {chain.rows.begin(), chain.rows.begin() + static_cast<std::ptrdiff_t>(period)}, out);
    out.evidence.push_back(
        {"points of time, each a vector times a state that factors and outer products change",
         fmt::format("{:.0f} of {}, {} together, {}", points,
                     counted(static_cast<double>(period), "launch"), short_ns(chain.each_ns()),
                     counted(chain.count(), "time")),
         "timeline and shapes"});
    out.assumptions.emplace_back(
        "the factors and outer products do not depend on the results, as their ops and sizes "
        "suggest");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }
  // Copies and fills between two launches of one stream.
  void add_copies(std::pair<std::uint32_t, std::uint32_t> ends, Launches& out) const {
    const auto& activities = walk_.facts().profile->timeline.activities;
    const Activity &first = activities[ends.first], &last = activities[ends.second];
    for (std::uint32_t i = ends.first; i <= ends.second; ++i)
      if (activities[i].kind != ActivityKind::kKernel && activities[i].stream == first.stream &&
          activities[i].device == first.device && activities[i].start_ns <= last.start_ns)
        out.push_back(i);
  }
  // Rounds within one op are the library's own, of a batch that it was given.
  bool is_of_one_op(const Loop& loop) const {
    const Timeline& timeline = walk_.facts().profile->timeline;
    const auto outermost = [&](std::uint32_t one) {
      const std::uint32_t call = walk_.at(one).call;
      std::uint32_t op = call < timeline.calls.size() ? timeline.calls[call].op : kNone;
      while (op < timeline.ops.size() && timeline.ops[op].parent < timeline.ops.size())
        op = timeline.ops[op].parent;
      return op;
    };
    const std::uint32_t first = outermost(loop.launches.front());
    return first != kNone && first == outermost(loop.launches.back());
  }
  // One small system after the other: a batch needs one round for all of them.
  void systems() {
    const Facts& facts = walk_.facts();
    Launches again;
    double rounds = 0, loops = 0;
    Intervention out = from_remedy(kBatch, kBatchSystems);
    for (const Loop& loop : find_loops(facts)) {
      if (loop.rounds() < kManySystems || !solves(loop) || is_of_one_op(loop)) continue;
      const auto second = loop.launches.begin() + static_cast<std::ptrdiff_t>(loop.period);
      again.insert(again.end(), second, loop.launches.end());
      add_copies({*second, loop.launches.back()}, again);
      for (auto one = loop.launches.begin(); one != second; ++one)
        name_kernel(walk_.stat(*one), out);
      rounds += loop.rounds();
      loops += 1;
    }
    if (again.empty()) return;
    remove_launches(walk_, again, kSystemsGone, out);
    out.evidence.push_back({"rounds that factorise or solve one small system each",
                            fmt::format("{:.0f}{}", rounds / loops, a_unit(facts)), "timeline"});
    out.assumptions.emplace_back(
        "the systems do not depend on one another; a batch takes as long as one to some of them");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }
  void keep(std::span<const std::uint32_t> group) {
    walk_.take(group);
    chains_.add(group);
  }

  // The host's ops that take the operands apart, in the steps of the chain: they go as well.
  std::vector<Interval> slicing_before(const Chain& chain) const {
    const Timeline& timeline = walk_.facts().profile->timeline;
    std::set<int> steps;
    for (const Launches& group : chain.groups) steps.insert(walk_.step_of(walk_.at(group.front())));
    std::vector<Interval> out;
    for (const Op& op : timeline.ops) {
      const std::string_view name = name_in(timeline, op.name);
      if (std::find(std::begin(kSlicing), std::end(kSlicing), name) == std::end(kSlicing)) continue;
      Activity at;
      at.start_ns = op.start_ns;
      if (steps.contains(walk_.step_of(at)) && (out.empty() || out.back().end <= begin_of(op)))
        out.push_back({begin_of(op), end_of(op)});
    }
    return out;
  }

  // Memsets between the launches, such as those of a library's workspace: one round's stay.
  void drop_sets(const Chain& chain, double rounds, Intervention& out) const {
    const auto& activities = walk_.facts().profile->timeline.activities;
    Launches sets;
    for (const Launches& group : chain.groups)
      for (std::uint32_t i = group.front() + 1; i < group.back(); ++i)
        if (activities[i].kind == ActivityKind::kSet && !walk_.taken(i) &&
            activities[i].stream == walk_.at(group.front()).stream &&
            activities[i].process == walk_.at(group.front()).process)
          sets.push_back(i);
    const double gone = 1 - 1 / rounds;
    if (!sets.empty()) remove_launches(walk_, sets, {0.5 * gone, gone, gone}, out);
  }
  void drop_slicing(const Chain& chain, Intervention& out) const {
    edit::ScaleHost slicing{{0.5, 0.1, 0}, slicing_before(chain), kNone};
    if (!slicing.when.empty()) out.change.edits.emplace_back(std::move(slicing));
  }
  void estimate(const Chain& chain) {
    const Facts& facts = walk_.facts();
    const Touch& touch = walk_.row_touch(chain.rows.front());
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0) return;
    const auto k = static_cast<double>(std::count_if(
        chain.rows.begin(), chain.rows.end(),
        [&](std::uint32_t row) { return facts.row_of[row] == facts.row_of[chain.rows.front()]; }));
    const double matrix = touch.matrix() * touch.in_size;
    const double apart = k * touch.bytes(), shared = apart - (k - 1) * matrix;
    const bool vectors = touch.vectors() <= kVectors;
    const double mean = kernel.duration.mean_ns();
    // Faster than the memory could deliver it: the matrix is the same one, in the cache.
    const bool cached = touch.bytes() / mean * 1e9 > peaks.bandwidth;
    const bool alike = vectors && (cached || k >= kManyAlike);
    const double each = chain.each_ns();
    const auto after = [&](double bytes, double compute, double memory) {
      return std::min(each, roof_ns(peaks, k * touch.flops(), bytes, compute, memory));
    };
    const bool dependent = may_chain(touch) && !alike;
    Interval3 batched = {after(cached ? shared : apart, 0.2, 0.4),
                         after(alike ? shared : apart, 0.4, 0.6),
                         after(vectors ? shared : apart, 0.7, 0.9)};
    if (dependent) batched = {each, 0.5 * (each + batched.mid), batched.high};
    Intervention out = from_remedy(kBatch);
    become(facts, chain, batched, 1, out);
    drop_slicing(chain, out);
    name_kernel(kernel, out);
    out.evidence.push_back({"equal products in a row, no other kernel between them",
                            fmt::format("{:.0f} x {}, {} together, {}", k, problem_text(kernel),
                                        short_ns(each), counted(chain.count(), "time")),
                            "timeline and shapes"});
    out.evidence.push_back({"bytes moved",
                            fmt::format("{} now; {} if all share one matrix", format_bytes(apart),
                                        format_bytes(shared)),
                            "shape model"});
    if (cached)
      out.evidence.push_back(
          {"the matrix comes from the cache, so it is one",
           fmt::format("{}, above the memory's {}", si(touch.bytes() / mean * 1e9, "B/s"),
                       si(peaks.bandwidth, "B/s")),
           "shape model"});
    out.assumptions.emplace_back(
        dependent ? "the result has an operand's shape, so each product may read the one before: "
                    "the low estimate is 0"
                  : "the products do not depend on one another");
    if (vectors && !cached)
      out.assumptions.emplace_back(
          "whether the matrix is the same one was not recorded: the low "
          "estimate reads one for each");
    out.confidence = dependent ? "D" : cached ? "B" : "C";
    advice_.interventions.push_back(std::move(out));
  }

  // `rounds` launches of one kernel as one: at least as long as one of them.
  double batched(const Chain& chain, std::size_t at, double rounds, double compute,
                 double memory) const {
    const Facts& facts = walk_.facts();
    const Touch& touch = walk_.row_touch(chain.rows[at]);
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows[at]]];
    const double ns = kernel.duration.mean_ns();
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (touch.bytes() <= 0 || peaks.bandwidth <= 0) return ns * (1 + kUnsizedRound * (rounds - 1));
    const double flops = touch.kind == TouchKind::kProduct ? touch.flops() : 0;
    return std::clamp(roof_ns(peaks, rounds * flops, rounds * touch.bytes(), compute, memory), ns,
                      rounds * ns);
  }
  // Rounds of several kernels, each on its own data: an ensemble, experts, heads with layers.
  void estimate_rounds(const Chain& chain) {
    const std::size_t period = periods_.at(chain.rows.size());
    const double rounds = static_cast<double>(chain.rows.size()) / static_cast<double>(period);
    Interval3 after;
    for (std::size_t i = 0; i < period; ++i)
      after = after + Interval3{batched(chain, i, rounds, 0.2, 0.4),
                                batched(chain, i, rounds, 0.4, 0.6),
                                batched(chain, i, rounds, 0.7, 0.9)};
    Intervention out = from_remedy(kBatch);
    become(walk_.facts(), chain, after, static_cast<double>(period), out);
    drop_slicing(chain, out);
    drop_sets(chain, rounds, out);
    name_kernels(walk_.facts(),
                 {chain.rows.begin(), chain.rows.begin() + static_cast<std::ptrdiff_t>(period)},
                 out);
    out.evidence.push_back(
        {"rounds of equal kernels with small products, none of which reads what an earlier one "
         "made",
         fmt::format("{:.0f} rounds of {}, {} together, {}", rounds,
                     counted(static_cast<double>(period), "launch"), short_ns(chain.each_ns()),
                     counted(chain.count(), "time")),
         "timeline and shapes"});
    out.assumptions.emplace_back("the rounds do not depend on one another, as their sizes suggest");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Chains chains_, rounds_, carried_;
  std::map<std::size_t, std::size_t> periods_;  // by the launches of a loop
};

}  // namespace

const Rule kBatchRule = {{&kBatch, 1},
                         [](Walk& walk, Advice& advice) { Batch(walk, advice).run(); }};

}  // namespace purlin::analyze
