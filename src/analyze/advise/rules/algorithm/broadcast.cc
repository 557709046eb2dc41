// SPDX-License-Identifier: Apache-2.0
// More work than the operands ask for, as shapes tell: all pairs of two operands, written out and
// summed; a product with a one-hot matrix; a wide filter in two dimensions.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kPairsOfVectors = {
    "Compute the sums over all pairs as one product", "hours",
    "PyTorch: x @ y.T for (x[:, None] * y).sum(-1)|"
    "distances: torch.cdist, or x.pow(2).sum(1, keepdim=True) + y.pow(2).sum(1) - 2 * x @ y.T",
    "squared distances by a product lose digits where points are close together"};
constexpr RemedyCase kCountByIndex = {
    "Count by index instead of comparing all pairs", "hours",
    "PyTorch: torch.bincount(x, minlength=n) for (x[:, None] == arange(n)).sum(0)|"
    "PyTorch: torch.isin, or torch.searchsorted of a sorted set, where membership is asked",
    "bincount wants integers from 0 and waits for the greatest one"};
constexpr RemedyCase kOneHot = {
    "Look rows up instead of multiplying by a one-hot matrix", "hours",
    "PyTorch: F.embedding(ids, weight) for F.one_hot(ids).float() @ weight|"
    "its transpose, a sum by category: index_add_ or scatter_add_",
    "with index_add_, sums are taken in any order"};
constexpr RemedyCase kSeparable = {
    "Filter along one axis and then along the other", "hours",
    "a blur is the product of a column and a row: two convolutions of k instead of one of k * k|"
    "PyTorch: F.conv2d(F.conv2d(x, column, groups=C), row, groups=C); box filters: F.avg_pool2d",
    "only filters of rank 1 are such products: torch.linalg.matrix_rank(filter) tells"};

constexpr double kManyPairs = 1 << 20;     // elements written out
constexpr double kFewestTimes = 8;         // as many as each operand has
constexpr std::size_t kMostBeforeSum = 4;  // pointwise kernels before the sum
constexpr std::string_view kBeforeProducts[] = {"aten::sub", "aten::mul"};
constexpr std::string_view kBeforeSums[] = {"aten::pow", "aten::mul", "aten::square", "aten::abs",
                                            "aten::copy_"};
constexpr Interval3 kProductCompute = {0.3, 0.5, 0.8}, kProductReaches = {0.4, 0.6, 0.9};
constexpr Interval3 kPassesOverSums = {12, 4, 1};  // reads and writes of all sums
// A histogram by atomics: of the bandwidth, and what its launches and their wait take.
constexpr Interval3 kCounting = {0.02, 0.1, 0.5}, kCountingStarts = {150'000, 40'000, 10'000};
constexpr double kWide = 9;  // extent of a filter
constexpr double kChannelsOfPictures = 4;
constexpr Interval3 kPasses = {8, 3, 1};  // of a filter along an axis, for each of two

bool one_of(std::string_view op, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// Elements of two operands, the greater first, whose sum and product are known; {0, 0} for none.
std::pair<double, double> operands_of(double sum, double product) {
  const double rest = sum * sum - 4 * product;
  if (rest < 0) return {0, 0};
  const double root = std::round(std::sqrt(rest));
  const double greater = (sum + root) / 2, lesser = sum - greater;
  return greater * lesser == product ? std::pair{greater, lesser} : std::pair{0.0, 0.0};
}

class PairsAndFilters {
 public:
  PairsAndFilters(Walk& walk, Advice& advice)
      : walk_(walk), advice_(advice), pairs_(walk), one_hot_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) {
        all_pairs(run, i);
        one_hot(run, i);
      }
    for (const Chain* chain : pairs_.all()) estimate_pairs(*chain);
    for (const Chain* chain : one_hot_.all()) estimate_one_hot(*chain);
    if (walk_.trains()) return;
    for (std::size_t i = 0; i < walk_.facts().rows.kernels.size(); ++i) separable(i);
  }

 private:
  struct Pairs {
    double greater = 0, lesser = 0, summed = 0;  // elements, and terms of each sum
  };
  // Of a kernel that combines each element or vector of one operand with each of the other.
  Pairs pairs_of(const Touch& first, const Touch& sum) const {
    const double summed = sum.out > 0 ? sum.n / sum.out : 0;
    const auto fits = [&](double terms, bool counts) {
      const auto [a, b] = operands_of(first.read / first.in_size, first.n * terms);
      const bool whole = std::fmod(a, terms) == 0 && std::fmod(b, terms) == 0;
      if (b < kFewestTimes * terms || !whole || (counts && sum.out != a && sum.out != b))
        return Pairs{};
      return Pairs{a, b, summed};
    };
    return first.compares ? fits(1, true) : fits(summed, false);
  }
  void all_pairs(const Launches& run, std::size_t at) {
    const Touch& first = walk_.touch(run[at]);
    if (first.kind != TouchKind::kPointwise || first.n < kManyPairs || first.inputs >= 1 ||
        first.read <= 0)
      return;
    const std::string_view op = walk_.stat(run[at]).op;
    if (first.compares ? op != "aten::eq" : !one_of(op, kBeforeProducts)) return;
    for (std::size_t i = at + 1; i < run.size() && i <= at + 1 + kMostBeforeSum; ++i) {
      const Touch& touch = walk_.touch(run[i]);
      if (touch.n != first.n) return;
      if (touch.kind == TouchKind::kReduction) {
        if (touch.out >= touch.n || pairs_of(first, touch).lesser <= 0) return;
        pairs_.add({run.data() + at, i + 1 - at});
        return;
      }
      if (touch.kind != TouchKind::kPointwise || !one_of(walk_.stat(run[i]).op, kBeforeSums))
        return;
    }
  }

  void estimate_pairs(const Chain& chain) {
    const Facts& facts = walk_.facts();
    const Touch &first = walk_.row_touch(chain.rows.front()),
                &sum = walk_.row_touch(chain.rows.back());
    const Pairs pairs = pairs_of(first, sum);
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.bandwidth <= 0 || (!first.compares && peaks.flops <= 0)) return;
    const auto product = [&](double compute, double memory, double passes) {
      const double bytes = first.in_size * (passes * 2 * sum.out + 3 * first.read / first.in_size);
      return std::min(chain.each_ns(), roof_ns(peaks, 2 * first.n, bytes, compute, memory));
    };
    const auto counts = [&](double share, double starts) {
      return std::min(chain.each_ns(), starts + first.read / peaks.bandwidth * 1e9 / share);
    };
    const Interval3 after =
        first.compares
            ? Interval3{counts(kCounting.low, kCountingStarts.low),
                        counts(kCounting.mid, kCountingStarts.mid),
                        counts(kCounting.high, kCountingStarts.high)}
            : Interval3{product(kProductCompute.low, kProductReaches.low, kPassesOverSums.low),
                        product(kProductCompute.mid, kProductReaches.mid, kPassesOverSums.mid),
                        product(kProductCompute.high, kProductReaches.high, kPassesOverSums.high)};
    Intervention out = from_remedy(kReduceRemedy, first.compares ? kCountByIndex : kPairsOfVectors);
    become(facts, chain, after, 1, out);
    name_kernels(facts, chain.rows, out);
    out.evidence.push_back(
        {"all pairs of two operands, written out and summed",
         fmt::format("{} elements of {} and {}, {} sums", si(first.n, ""), si(pairs.greater, ""),
                     si(pairs.lesser, ""), si(sum.out, "")),
         "shapes"});
    put(chain, after,
        first.compares ? "no other kernel reads the comparisons"
                       : "each sum is of products, or of squares of differences",
        "B", std::move(out));
  }

  // A matrix with one entry in each row, filled by a scatter of a constant, is an operand.
  void one_hot(const Launches& run, std::size_t at) {
    const Touch& product = walk_.touch(run[at]);
    if (product.kind != TouchKind::kProduct || product.batch != 1 || walk_.taken(run[at])) return;
    for (std::size_t back = 1; back <= at && back <= kMostBeforeSum; ++back) {
      const std::uint32_t before = run[at - back];
      if (const KernelStat& kernel = walk_.stat(before);
          kernel.name.full.find("scatter_fill") != std::string::npos) {
        if (!fills_one_hot(kernel, product)) return;
        std::size_t first = at - back;
        if (first > 0 && is_fill(run[first - 1], product)) --first;
        const std::span<const std::uint32_t> group{run.data() + first, at + 1 - first};
        walk_.take(group);
        one_hot_.add(group);
        return;
      }
      const Touch& touch = walk_.touch(before);
      if (touch.kind != TouchKind::kPointwise || !product.holds(touch.n)) return;
    }
  }
  bool is_fill(std::uint32_t activity, const Touch& product) const {
    return walk_.stat(activity).name.full.find("FillFunctor") != std::string::npos &&
           product.holds(walk_.touch(activity).n);
  }
  static bool fills_one_hot(const KernelStat& kernel, const Touch& product) {
    Problem problem;
    problem.dimensions = dimensions_from_text(kernel.shape);
    const auto entries = static_cast<double>(problem["indices"]),
               matrix = static_cast<double>(problem["rows"]);
    const auto is = [&](double outer) {
      return matrix == outer * product.depth && (entries == outer || entries == product.depth);
    };
    return problem["cols"] == 1 && entries > 0 && (is(product.m) || is(product.columns));
  }

  void estimate_one_hot(const Chain& chain) {
    const Facts& facts = walk_.facts();
    const Touch& product = walk_.row_touch(chain.rows.back());
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.back()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.bandwidth <= 0) return;
    const double bytes = 2 * product.written;
    const auto look_up = [&](double share) {
      return std::min(chain.each_ns(), roof_ns(peaks, 0, bytes, 1, share));
    };
    const Interval3 after = {look_up(0.2), look_up(0.5), look_up(0.9)};
    Intervention out = from_remedy(kReduceRemedy, kOneHot);
    become(facts, chain, after, 1, out);
    name_kernels(facts, chain.rows, out);
    out.evidence.push_back({"a product with a matrix that a scatter filled, one entry a row",
                            problem_text(kernel), "shapes and kernel name"});
    out.evidence.push_back({"work",
                            fmt::format("{} now; {} of rows that are looked up",
                                        si(product.flops(), "FLOP"), format_bytes(bytes)),
                            "shape model"});
    put(chain, after, "no other kernel reads the one-hot matrix", "B", std::move(out));
  }

  // A depthwise filter as wide as those of a blur.
  void separable(std::size_t row) {
    const Facts& facts = walk_.facts();
    const KernelStat& kernel = facts.rows.kernels[row];
    if (kernel.name.op_class != "conv") return;
    Problem problem;
    problem.dimensions = dimensions_from_text(kernel.shape);
    const auto of = [&](std::string_view name) { return static_cast<double>(problem[name]); };
    const double height = of("R"), width = of("S"), channels = of("C");
    if (std::min(height, width) < kWide || problem["T"] > 1 || problem["gradients"] > 0 ||
        channels <= 0 || std::max(1.0, of("groups")) != channels || channels > kChannelsOfPictures)
      return;
    const auto left = [&](double passes) {
      return std::min(1.0, passes * (height + width) / (height * width));
    };
    const Interval3 factor = {left(kPasses.low), left(kPasses.mid), left(kPasses.high)};
    Intervention out = from_remedy(kReduceRemedy, kSeparable);
    scale_row(facts, row, factor, out);
    name_kernel(kernel, out);
    out.evidence.push_back({problem_text(kernel),
                            fmt::format("{} x {} terms of each element, {} in two passes", height,
                                        width, height + width),
                            "shapes"});
    out.assumptions.emplace_back(
        "the filter is the product of a column and a row, as those of blurs are");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  void put(const Chain& chain, Interval3 after, const char* assumes, const char* confidence,
           Intervention out) {
    out.evidence.push_back({"its time, and of the other form",
                            fmt::format("{}, {}; {} ({} to {})", counted(chain.count(), "time"),
                                        short_ns(chain.each_ns()), short_ns(after.mid),
                                        short_ns(after.high), short_ns(after.low)),
                            "timeline and shape model"});
    out.assumptions.emplace_back(assumes);
    out.confidence = confidence;
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Chains pairs_, one_hot_;
};

}  // namespace

const Rule kBroadcastRule = {
    {}, [](Walk& walk, Advice& advice) { PairsAndFilters(walk, advice).run(); }};

}  // namespace purlin::analyze
