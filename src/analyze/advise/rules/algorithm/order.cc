// SPDX-License-Identifier: Apache-2.0
// Linear steps in the more expensive order: a product of matrices that meets only a few vectors,
// maps that are enlarged before a 1x1 convolution, and rows that are repeated before a product.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kProducts = {
    "Multiply in the cheaper order", "hours",
    "PyTorch: a @ (b @ x) for (a @ b) @ x; torch.linalg.multi_dot finds the order of a chain|"
    "attention without a softmax: q @ (k.mT @ v) for (q @ k.mT) @ v",
    "the sums round in another order"};
constexpr RemedyCase kEnlarged = {
    "Score first, enlarge after", "hours",
    "a 1x1 convolution, or a linear layer for each position, and a resize may change places|"
    "PyTorch: F.interpolate(conv(x), ...) for conv(F.interpolate(x, ...)), with the bias in both",
    "at most the rounding changes; a larger filter, or an activation in between, does not commute"};
constexpr RemedyCase kRepeated = {
    "Multiply each distinct row once, repeat after", "hours",
    "PyTorch: F.linear(x, w) before .expand, .repeat or repeat_interleave, not after|"
    "joined operands: w splits by columns: F.linear(a, w[:, :k])[:, None] + F.linear(b, w[:, k:])",
    "the sums round in another order"};

constexpr double kMostOfOrder = 0.25;  // of the FLOP, where an order counts as the cheaper one
constexpr Interval3 kOrderCompute = {0.1, 0.3, 0.6}, kOrderMemory = {0.25, 0.6, 0.9};
constexpr Interval3 kScored = {1.5, 1, 0.7};  // a resize of fewer maps, of its part of the time
constexpr double kFewDistinct = 0.25;         // of the rows
constexpr Interval3 kSpreads = {3, 2, 1};     // over the result, to spread and add it
constexpr std::string_view kSpreading[] = {"aten::expand", "aten::repeat", "aten::broadcast_to",
                                           "aten::expand_as", "aten::tile"};
constexpr std::string_view kScaling[] = {"aten::mul", "aten::div", "aten::copy_", "aten::clone"};
constexpr std::string_view kSumming[] = {"aten::sum", "aten::mean"};
constexpr std::string_view kLayers[] = {"aten::linear", "aten::addmm", "aten::_scaled_mm"};

// Ops whose products end in an activation, which no kernel shows.
constexpr std::string_view kActivating[] = {"aten::_addmm_activation",
                                            "aten::_transformer_encoder_layer_fwd"};

bool resizes(const KernelStat& kernel) { return starts_with(kernel.op, "aten::upsample_"); }

class Order {
 public:
  Order(Walk& walk, Advice& advice)
      : walk_(walk),
        timeline_(walk.facts().profile->timeline),
        advice_(advice),
        products_(walk),
        enlarged_(walk),
        repeated_(walk) {}

  void run() {
    const bool trains = walk_.trains();
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i + 1 < run.size(); ++i) {
        if (!trains) products(run, i);
        enlarged(run, i);
        repeated(run, i);
      }
    for (const Chain* chain : products_.all()) estimate_products(*chain);
    for (const Chain* chain : enlarged_.all()) estimate_enlarged(*chain);
    for (const Chain* chain : repeated_.all()) estimate_repeated(*chain);
  }

 private:
  bool same_op(std::uint32_t a, std::uint32_t b) const {
    return analyze::same_op(timeline_, walk_.at(a), walk_.at(b));
  }

  // FLOP of the other order; infinite where the second product cannot read the result of the first.
  static double other_order(const Touch& first, const Touch& second, bool unambiguous) {
    if (first.batch != second.batch) return HUGE_VAL;
    const bool square = first.depth == first.columns || first.m == first.depth ||
                        (first.depth == first.columns && first.depth == first.m);
    if (unambiguous && square) return HUGE_VAL;
    double out = HUGE_VAL;
    if (second.m == first.m && second.depth == first.columns)
      out = first.depth * first.columns * second.columns + first.m * first.depth * second.columns;
    if (second.columns == first.columns && second.depth == first.m)
      out =
          std::min(out, second.m * first.m * first.depth + second.m * first.depth * first.columns);
    return 2 * first.batch * out;
  }

  void products(const Launches& run, std::size_t at) {
    const Touch& first = walk_.touch(run[at]);
    if (first.kind != TouchKind::kProduct || walk_.taken(run[at])) return;
    if (at > 0 && same_op(run[at - 1], run[at])) return;
    std::size_t i = at + 1;
    while (i < run.size() && (same_op(run[at], run[i]) || scales(run[i], first))) ++i;
    if (i == run.size() || walk_.taken(run[i])) return;
    const Touch& second = walk_.touch(run[i]);
    if (second.kind != TouchKind::kProduct ||
        outermost_op(timeline_, walk_.at(run[at]), kActivating) != nullptr)
      return;
    const bool layers = outermost_op(timeline_, walk_.at(run[at]), kLayers) != nullptr ||
                        outermost_op(timeline_, walk_.at(run[i]), kLayers) != nullptr;
    if (other_order(first, second, layers) > kMostOfOrder * (first.flops() + second.flops()))
      return;
    while (i + 1 < run.size() && (same_op(run[i], run[i + 1]) || adds_up(run[i + 1], first))) ++i;
    const std::span<const std::uint32_t> group{run.data() + at, i + 1 - at};
    walk_.take(group);
    products_.add(group);
  }
  // Sums over the first product, as a linear attention divides by: they are products of sums.
  bool adds_up(std::uint32_t one, const Touch& product) const {
    const Touch& touch = walk_.touch(one);
    return touch.kind == TouchKind::kReduction && touch.n == product.n &&
           named_in(kSumming, walk_.stat(one).op) && !walk_.taken(one);
  }
  bool scales(std::uint32_t one, const Touch& product) const {
    const Touch& touch = walk_.touch(one);
    return touch.kind == TouchKind::kPointwise && touch.n == product.n && touch.inputs <= 1 &&
           named_in(kScaling, walk_.stat(one).op);
  }

  const Touch& second_of(const Chain& chain) const {
    const Touch& first = walk_.row_touch(chain.rows.front());
    for (const std::uint32_t row : chain.rows) {
      const Touch& touch = walk_.row_touch(row);
      if (touch.kind == TouchKind::kProduct &&
          (touch.m != first.m || touch.columns != first.columns || touch.depth != first.depth))
        return touch;
    }
    return first;
  }
  void estimate_products(const Chain& chain) {
    const Touch &first = walk_.row_touch(chain.rows.front()), &second = second_of(chain);
    const KernelStat& kernel = stat_of(chain.rows.front());
    const Peaks peaks = peaks_of(walk_.facts(), kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0) return;
    const double flops = other_order(first, second, false);
    const bool sums = std::any_of(chain.rows.begin(), chain.rows.end(), [&](std::uint32_t row) {
      return walk_.row_touch(row).kind == TouchKind::kReduction &&
             named_in(kSumming, stat_of(row).op);
    });
    // Sums read the operands again.
    const double bytes =
        (sums ? 2 : 1) * first.read + second.read - first.in_size * first.n + 2 * second.written;
    const Interval3 after = each_scenario([&](const auto& of) {
      return std::max(2 * kLeastLaunch,
                      roof_ns(peaks, flops, bytes, of(kOrderCompute), of(kOrderMemory)));
    });
    Intervention out = from_remedy(kReduceRemedy, kProducts);
    out.evidence.push_back({"a product whose result only another product reads",
                            fmt::format("{}; then {}", problem_text(kernel),
                                        fmt::format("M={:.0f},N={:.0f},K={:.0f}", second.m,
                                                    second.columns, second.depth)),
                            "shapes"});
    out.evidence.push_back(
        {"work",
         fmt::format("{} now, {} in the other order", si(first.flops() + second.flops(), "FLOP"),
                     si(flops, "FLOP")),
         "shape model"});
    put(chain, after, 2, "no other kernel reads the first product; sizes alone tell who reads it",
        "B", std::move(out));
  }

  // A resize, perhaps copies, a 1x1 convolution of as many elements as it wrote, and its bias.
  void enlarged(const Launches& run, std::size_t at) {
    if (!resizes(walk_.stat(run[at])) || walk_.taken(run[at])) return;
    std::size_t i = at + 1;
    while (i < run.size() && (walk_.stat(run[i]).name.op_class == "layout" ||
                              walk_.stat(run[i]).name.op_class == "copy"))
      ++i;
    if (i == run.size() || walk_.taken(run[i]) || scored(run[at], run[i]).part <= 0) return;
    const Touch& product = walk_.touch(run[i]);
    while (i + 1 < run.size() && walk_.touch(run[i + 1]).kind == TouchKind::kPointwise &&
           walk_.touch(run[i + 1]).n == product.n && walk_.stat(run[i + 1]).op == "aten::add_")
      ++i;
    const std::span<const std::uint32_t> group{run.data() + at, i + 1 - at};
    walk_.take(group);
    enlarged_.add(group);
  }
  struct Scored {
    double part = 0, maps = 0;  // of the positions that a resize reads; of the maps that come out
  };
  Scored scored(std::uint32_t resize, std::uint32_t product) const {
    const Touch& touch = walk_.touch(product);
    const auto extents = input_extents(timeline_, walk_.at(resize));
    if (extents.empty() || extents[0].size() < 3 || !touch.multiplies() || touch.m <= 0) return {};
    const double channels = extents[0][1], before = elements_of(extents[0]);
    // A filter of one point: as many terms as channels.
    if (touch.depth != channels || touch.batch != 1 || touch.weights != channels * touch.columns)
      return {};
    const double part = before / (channels * touch.m), maps = touch.columns / channels;
    if (part <= 0 || part > kMostOfOrder + 0.01 || maps > 1) return {};
    return {part, maps};
  }
  void estimate_enlarged(const Chain& chain) {
    const Launches& group = chain.groups.front();
    Scored of;
    double resize = 0, product = 0, pointwise = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const KernelStat& stat = walk_.stat(group[i]);
      const double ns = stat.duration.mean_ns();
      if (i == 0) {
        resize = ns;
      } else if (walk_.touch(group[i]).multiplies()) {
        product += ns;
        if (of.part <= 0) of = scored(group[0], group[i]);
      } else {
        pointwise += ns;
      }
    }
    const Interval3 after = each_scenario([&](const auto& share) {
      return share(kScored) * (resize * of.maps + (product + pointwise) * of.part) +
             static_cast<double>(group.size()) * kLeastLaunch;
    });
    Intervention out = from_remedy(kReduceRemedy, kEnlarged);
    out.evidence.push_back({"maps that are enlarged before a filter of one point",
                            fmt::format("{} times the positions; {} of the maps come out",
                                        format_count(std::round(1 / of.part)), percent(of.maps)),
                            "shapes"});
    put(chain, after, static_cast<double>(group.size()),
        "the resize is linear, and nothing else reads the enlarged maps", "B", std::move(out));
  }

  // A kernel that writes many rows of few distinct ones, and a product of them.
  void repeated(const Launches& run, std::size_t at) {
    if (walk_.taken(run[at]) || walk_.taken(run[at + 1])) return;
    const Touch& product = walk_.touch(run[at + 1]);
    if (product.kind != TouchKind::kProduct || product.batch != 1) return;
    const double all = product.m * product.depth;
    const double some = distinct(run[at], all);
    if (some <= 0 || some > kFewDistinct * all) return;
    std::size_t end = at + 2;
    while (end < run.size() && same_op(run[at + 1], run[end])) ++end;
    const std::span<const std::uint32_t> group{run.data() + at, end - at};
    walk_.take(group);
    repeated_.add(group);
  }
  // Elements that such a kernel reads of an array of `all`; 0 where it is another kernel.
  double distinct(std::uint32_t copy, double all) const {
    const KernelStat& stat = walk_.stat(copy);
    Problem problem;
    problem.dimensions = dimensions_from_text(stat.shape);
    if (stat.op == "aten::index_select") {  // repeat_interleave
      const auto indices = static_cast<double>(problem["indices"]),
                 cols = static_cast<double>(problem["cols"]),
                 rows = static_cast<double>(problem["rows"]);
      return indices * cols == all ? rows * cols : 0;
    }
    if (stat.op != "aten::cat" && stat.op != "aten::copy_" && stat.op != "aten::clone") return 0;
    if (static_cast<double>(problem["n"]) != all) return 0;
    double out = 0;
    std::int64_t until = 0;
    for (const Op* op : ops_before(timeline_, walk_.at(copy), kSpreading)) {
      if (op->start_ns < until) continue;  // an op of another one
      until = end_of(*op);
      const auto extents = input_extents(timeline_, *op);
      if (!extents.empty()) out += elements_of(extents[0]);
    }
    return out;
  }
  void estimate_repeated(const Chain& chain) {
    const Touch& product = walk_.row_touch(chain.rows[1]);
    const KernelStat& kernel = stat_of(chain.rows[1]);
    const Peaks peaks = peaks_of(walk_.facts(), kernel, kernel.dtype);
    if (peaks.bandwidth <= 0) return;
    const double all = product.m * product.depth;
    const double some = distinct(chain.groups.front().front(), all), left = some / all;
    const double rest = kernel.duration.mean_ns() * left;
    const Interval3 after = each_scenario([&](const auto& of) {
      return rest + of(kSpreads) * product.written / (of(kOrderMemory) * peaks.bandwidth) * 1e9 +
             kLeastLaunch;
    });
    Intervention out = from_remedy(kReduceRemedy, kRepeated);
    out.evidence.push_back({"rows that are repeated, written and then multiplied",
                            fmt::format("{} elements, {} distinct ones; {}", si(all, ""),
                                        si(some, ""), problem_text(kernel)),
                            "shapes and ops of the host"});
    put(chain, after, 2, "the product of repeated rows is the repeated product", "C",
        std::move(out));
  }

  const KernelStat& stat_of(std::uint32_t row) const {
    return walk_.facts().rows.kernels[walk_.facts().row_of[row]];
  }
  void put(const Chain& chain, Interval3 after, double launches, const char* assumes,
           const char* confidence, Intervention out) {
    put_chain(walk_.facts(), chain, after, launches, assumes, confidence, std::move(out), advice_);
  }

  Walk& walk_;
  const Timeline& timeline_;
  Advice& advice_;
  Chains products_, enlarged_, repeated_;
};

}  // namespace

const Rule kOrderRule = {{}, [](Walk& walk, Advice& advice) { Order(walk, advice).run(); }};

}  // namespace purlin::analyze
