// SPDX-License-Identifier: Apache-2.0
// Fused attention with a mask that has neither samples nor heads: a fixed pattern, such as a causal
// one, windows or blocks. A dense mask hides it, so the kernel computes what the mask removes. A
// mask for each sample hides padding, which the whole model computes.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kMaskPattern = {
    "Leave out what the mask of the attention removes", "hours",
    "PyTorch: is_causal=True for a causal mask; torch.nn.attention.flex_attention with a block "
    "mask for windows, blocks and documents|"
    "PyTorch: FlashAttention's window_size; or windows as a batch of short sequences|"
    "a dense mask also keeps PyTorch off FlashAttention's kernels",
    "compare the outputs; the pattern must be the same for all samples"};

constexpr RemedyCase kPaddingCase = {
    "Leave out the padding that the mask of the attention hides", "days",
    "sort or bucket the samples by length, so that a batch is as long as its longest sample|"
    "PyTorch: nested tensors (torch.nested, layout=torch.jagged), or sequences packed into one row "
    "with varlen attention|"
    "first count the share of padding: 1 - mask.float().mean()",
    "the order of the samples changes: put the results back"};

constexpr std::string_view kMaskable[] = {"aten::scaled_dot_product_attention"};
constexpr std::string_view kMaskedGradients[] = {
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::_scaled_dot_product_efficient_attention_backward"};
constexpr double kLeastMasked = 512;  // positions: a kernel leaves whole tiles out, 128 long
constexpr double kMaskTile = 128;
// Of the scores, what the pattern leaves: a causal mask half. And of the compute peak, what a
// kernel that skips the rest reaches.
constexpr Interval3 kMaskVisible = {0.5, 0.3, 0.1}, kMaskCompute = {0.25, 0.4, 0.6};
// Of the device's work for all positions, what is padding: how much is in the data only.
constexpr Interval3 kPadded = {0, 0.25, 0.6};
constexpr std::int64_t kLeastSamples = 4, kLeastPadded = 64;
constexpr double kMaskedBackward = 2.5;  // backward: five products for two

class Masked {
 public:
  Masked(Walk& walk, Advice& advice)
      : walk_(walk), facts_(walk.facts()), advice_(advice), chains_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs()) ops(run, kMaskable);
    if (padded_ != nullptr) add_padding();
    if (chains_.all().empty()) return;
    for (const Launches& run : walk_.runs()) ops(run, kMaskedGradients);
    Intervention out = from_remedy(kReduceRemedy, kMaskPattern);
    for (const Chain* chain : chains_.all()) estimate(*chain, out);
    if (!out.change.edits.empty()) finish(std::move(out));
  }

 private:
  const Timeline& timeline() const { return facts_.profile->timeline; }
  Problem problem_of_op(const Op& op) const {
    Problem out;
    out.dimensions = dimensions_from_text(name_in(timeline(), op.shape));
    return out;
  }
  // One mask for all samples and heads.
  static bool is_pattern(const Problem& problem) {
    const std::int64_t mask = std::max(problem["mask"], problem["bias"]);
    return mask > 0 && mask == problem["Sq"] * problem["Sk"] && long_enough(problem);
  }
  // One mask for each sample, of its keys alone or of all its scores.
  static bool is_padding(const Problem& problem) {
    const std::int64_t keys = problem["B"] * problem["Sk"];
    return problem["mask"] > 0 && problem["B"] >= kLeastSamples && problem["Sq"] == problem["Sk"] &&
           problem["Sk"] >= kLeastPadded &&
           (problem["mask"] == keys || problem["mask"] == keys * problem["Sq"]);
  }
  static bool long_enough(const Problem& problem) {
    return std::min(problem["Sq"], problem["Sk"]) >= static_cast<std::int64_t>(kLeastMasked);
  }
  // Without what differs between a pass and its gradients.
  static std::vector<std::int64_t> extents(const Problem& problem) {
    return {problem["B"], problem["H"], problem["Sq"], problem["Sk"], problem["D"]};
  }

  // The launches of each of these ops.
  void ops(const Launches& run, std::span<const std::string_view> names) {
    for (std::size_t begin = 0; begin < run.size();) {
      const Op* op = outermost_op(timeline(), walk_.at(run[begin]), names);
      std::size_t end = begin + 1;
      while (end < run.size() && op != nullptr &&
             outermost_op(timeline(), walk_.at(run[end]), names) == op)
        ++end;
      if (op != nullptr)
        keep(*op, names.data() == kMaskedGradients, {run.data() + begin, end - begin});
      begin = end;
    }
  }
  void keep(const Op& op, bool backward, std::span<const std::uint32_t> launches) {
    const Problem problem = problem_of_op(op);
    if (!backward && is_padding(problem)) padded_ = &op;
    if (backward ? !patterns_.contains(extents(problem)) : !is_pattern(problem)) return;
    if (std::any_of(launches.begin(), launches.end(),
                    [&](std::uint32_t one) { return walk_.taken(one); }))
      return;
    patterns_[extents(problem)] = problem["mask"] > 0 || (backward && sure(problem));
    walk_.take(launches);
    chains_.add(launches);
    problems_[facts_.row_of[walk_.at(launches.front()).row]] = problem;
  }
  // A mask of truth values; one that is added may be a bias, which removes nothing.
  bool sure(const Problem& problem) const {
    const auto found = patterns_.find(extents(problem));
    return found != patterns_.end() && found->second;
  }

  void estimate(const Chain& chain, Intervention& out) {
    const Problem& problem = problems_[facts_.row_of[chain.rows.front()]];
    const auto of = [&](std::string_view name) { return static_cast<double>(problem[name]); };
    std::uint32_t main = chain.rows.front();
    for (const std::uint32_t row : chain.rows)
      if (facts_.profile->kernels[row].duration.mean_ns() >
          facts_.profile->kernels[main].duration.mean_ns())
        main = row;
    const KernelStat& kernel = facts_.rows.kernels[facts_.row_of[main]];
    const Peaks peaks = peaks_of(facts_, kernel, kernel.dtype);
    if (peaks.flops <= 0 || peaks.bandwidth <= 0) return;
    const double depth = of("D") + (problem["Dv"] > 0 ? of("Dv") : of("D"));
    const bool backward = problem["backward"] > 0;
    const double flops =
        2 * of("B") * of("H") * of("Sq") * of("Sk") * depth * (backward ? kMaskedBackward : 1);
    const double bytes = bytes_per_element(kernel.dtype) * of("B") * of("H") *
                         (of("Sq") + of("Sk")) * depth * (backward ? 2 : 1);
    const double each = chain.each_ns(), least = kMaskTile / of("Sk");
    const auto after = [&](double visible, double compute) {
      return std::min(each, roof_ns(peaks, flops * std::max(least, visible), bytes, compute,
                                    facts_.targets.memory));
    };
    const Interval3 left = {sure(problem) ? after(kMaskVisible.low, kMaskCompute.low) : each,
                            after(kMaskVisible.mid, kMaskCompute.mid),
                            after(kMaskVisible.high, kMaskCompute.high)};
    become(facts_, chain, left, 1, out);
    name_kernel(kernel, out);
    sure_ = sure_ && sure(problem);
    total_ += in_one_unit(facts_, chain.ns);
    if (out.evidence.size() > 4) return;
    out.evidence.push_back(
        {fmt::format("attention{} with one mask for {:.0f} samples of {:.0f} heads",
                     backward ? ", backward," : "", of("B"), of("H")),
         fmt::format("{:.0f} by {:.0f} positions, {}, {} each", of("Sq"), of("Sk"),
                     counted(chain.count(), "time"), short_ns(each)),
         "timeline and shapes"});
    out.evidence.push_back({"share of the compute peak, with what the mask removes",
                            percent(flops / peaks.flops * 1e9 / each), "shape model"});
  }

  // Every kernel except those of the optimizer works on the padding as well.
  void add_padding() {
    const Problem problem = problem_of_op(*padded_);
    Intervention out = from_remedy(kReduceRemedy, kPaddingCase);
    for (std::size_t row = 0; row < facts_.rows.kernels.size(); ++row) {
      const KernelStat& kernel = facts_.rows.kernels[row];
      if (kernel.name.op_class == "optimizer" || is_short_launch(kernel)) continue;
      scale_row(facts_, row, {1 - kPadded.low, 1 - kPadded.mid, 1 - kPadded.high}, out);
      if (kernel.name.op_class == "attention") name_kernel(kernel, out);
    }
    if (out.change.edits.empty()) return;
    out.evidence.push_back({"attention with a separate mask for each sample",
                            fmt::format("{} samples of {} positions", problem["B"], problem["Sk"]),
                            "shapes"});
    out.assumptions.emplace_back(
        "the masks hide padding, and the rest of the model computes it too; how much it is was not "
        "recorded: the low estimate is 0");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  void finish(Intervention out) {
    out.evidence.push_back(
        {"time of these kernels", of_total(total_, facts_.unit.baseline_ns.mid), "timeline"});
    out.assumptions.push_back(fmt::format(
        "the mask leaves {:.1f} to {:.1f} of the scores, as a causal one or windows do, and a "
        "kernel that skips the rest reaches {:.2f} to {:.2f} of the peak",
        kMaskVisible.high, kMaskVisible.low, kMaskCompute.low, kMaskCompute.high));
    if (!sure_)
      out.assumptions.emplace_back(
          "the mask is added: if it is a bias, it removes nothing, and the low estimate holds");
    out.confidence = sure_ ? "C" : "D";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  Chains chains_;
  std::map<std::vector<std::int64_t>, bool> patterns_;  // whether it is a mask for sure
  std::map<std::size_t, Problem> problems_;             // by report row
  const Op* padded_ = nullptr;
  double total_ = 0;
  bool sure_ = true;
};

}  // namespace

const Rule kMaskedRule = {{}, [](Walk& walk, Advice& advice) { Masked(walk, advice).run(); }};

}  // namespace purlin::analyze
