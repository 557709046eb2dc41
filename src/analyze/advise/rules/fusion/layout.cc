// SPDX-License-Identifier: Apache-2.0
// Kernels that compute nothing: conversions between layouts next to convolutions, and copies.
#include "analyze/text/layout.h"

#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr Remedy kLayout[] = {
    {"channels_last", "Keep images in the layout of the tensor cores", Pillar::kMemoryEfficiency,
     Level::kMemory, "memory", "hours", "low", "cuda", "framework",
     "PyTorch: model.to(memory_format=torch.channels_last), and the input once|"
     "cuDNN: NHWC descriptors for images and filters",
     "ops without an NHWC variant convert back: look for new copies afterwards"},
    {"remove_copies", "Remove copies and conversions", Pillar::kMemoryEfficiency, Level::kAlgorithm,
     "memory", "days", "low", "api-independent", "framework",
     "keep one element type and one layout through the model|"
     "PyTorch: no .contiguous(), .clone() or .to(dtype) between ops that can read the present "
     "layout; "
     "torch.compile fuses the remaining casts",
     ""}};

constexpr std::string_view kBetweenLayouts[] = {"nchwToNhwc", "nhwcToNchw", "nchw2nhwc",
                                                "nhwc2nchw"};
// A prior: what convolutions and the pointwise kernels between them gain beyond the conversions.
constexpr Interval3 kConvolutionGain = {0, 0.15, 0.4};
// PyTorch's own kernels for images in planes read with poor locality; those for channels last reach
// these shares of the bandwidth. ResNet-50 in training on an H100: the step fell by 34 %.
constexpr Interval3 kNormReaches = {0.3, 0.5, 0.8}, kNormUnknown = {0, 0.3, 0.7};
// In training, gradients of weights and norms may convert again, and norms may be slower.
constexpr Interval3 kGone = {0.4, 1, 1}, kGoneTraining = {0, 0.5, 1};
constexpr Interval3 kUnfoldedGone = {0.7, 0.95, 1}, kReorderedGone = {0, 0.75, 1};
// Copies of keys and values before one query: the attention may read them slower in their place.
constexpr Interval3 kCachesGone = {0.2, 0.9, 1};
constexpr std::size_t kExamples = 3;
constexpr const char* kNotRecorded =
    "the profile does not record which of them the program needs: the low estimate keeps most";

bool between_layouts(const KernelStat& kernel) {
  if (kernel.name.op_class != "layout" && kernel.name.op_class != "copy") return false;
  if (kernel.op.find("conv") != std::string::npos) return true;
  return std::any_of(
      std::begin(kBetweenLayouts), std::end(kBetweenLayouts),
      [&](std::string_view word) { return kernel.name.full.find(word) != std::string::npos; });
}

// A batch norm over images in planes (NCHW): PyTorch's own, or cuDNN's that knows no other layout.
bool norm_over_planes(const KernelStat& kernel) {
  const std::string& name = kernel.name.full;
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("bn_fw_") || has("bn_bw_")) return !has("NHWC") && !has("nhwc");
  return has("batch_norm") && !between_layouts(kernel) && !has("channels_last") && !has("cudnn");
}

// A look-up of as many long rows as the array has: it is copied in another order.
constexpr std::int64_t kLongRow = 4096;  // elements
bool reorders(const KernelStat& kernel) {
  if (kernel.name.op_class != "embedding") return false;
  Problem problem;
  problem.dimensions = dimensions_from_text(kernel.shape);
  if (problem["indices"] <= 0 || problem["indices"] != problem["rows"]) return false;
  // An index for each element repeats that of its row: a row has a block, or some.
  const bool by_block = kernel.name.full.find("vectorized_gather_kernel") != std::string::npos;
  const std::int64_t rows = by_block && problem["cols"] == 1 ? kernel.launch.grid[0] : 0;
  return rows > 0 ? problem["rows"] / rows >= kLongRow : problem["cols"] >= kLongRow;
}

// Patches of images written out for a product: a convolution reads them from the images.
bool unfolds(const KernelStat& kernel) {
  return kernel.name.full.find("im2col") != std::string::npos;
}

// A depthwise convolution of cuDNN or PyTorch, channel by channel.
bool over_planes(const KernelStat& kernel) {
  const std::string& name = kernel.name.full;
  return name.find("c1_k1_nchw") != std::string::npos ||
         name.find("conv_depthwise2d_forward") != std::string::npos;
}
// PyTorch's kernel for operands that are broadcast or strided.
bool general(const KernelStat& kernel) {
  return kernel.name.family == "pytorch" && starts_with(kernel.name.brief, "elementwise ");
}

// What such a norm gains: shares of its time.
Interval3 norm_gain(const KernelStat& kernel) {
  const double reached = kernel.roof.utilization;
  if (!(reached > 0)) return kNormUnknown;
  const auto gain = [&](double reaches) { return std::max(0.0, 1 - reached / reaches); };
  return {gain(kNormReaches.low), gain(kNormReaches.mid), gain(kNormReaches.high)};
}

class Layouts {
 public:
  Layouts(Walk& walk, Advice& advice) : walk_(walk), advice_(advice) {}

  void run() {
    if (walk_.runs().empty()) return rows();
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size(); ++i) place(run, i);
    if (!conversions_.empty())
      channels();
    else if (!in_planes_.empty())
      planes();
    within_device();
    for (const Launches* work : {&unfolded_, &reordered_, &clones_, &of_caches_, &casts_, &within_})
      if (!work->empty()) return copies();
  }

 private:
  // Whether the kernel behind some copies is an attention of one query a head.
  bool before_one_query(const Launches& run, std::size_t at) const {
    while (at + 1 < run.size() && walk_.stat(run[at + 1]).name.op_class == "copy") ++at;
    if (at + 1 == run.size()) return false;
    Problem problem;
    problem.dimensions = dimensions_from_text(walk_.stat(run[at + 1]).shape);
    return problem["Sq"] == 1;
  }
  void place(const Launches& run, std::size_t at) {
    const std::uint32_t activity = run[at];
    const KernelStat& kernel = walk_.stat(activity);
    const std::string_view c = kernel.name.op_class;
    if (unfolds(kernel)) {
      if (!walk_.taken(activity)) unfolded_.push_back(activity);
      return;
    }
    if (c == "conv") convolutions_ += walk_.duration(activity);
    if (c == "conv" && over_planes(kernel)) in_planes_.push_back(activity);
    if (c != "conv" && !in_planes_.empty() && general(kernel)) slow_.push_back(activity);
    if (reorders(kernel)) {
      if (!walk_.taken(activity)) reordered_.push_back(activity);
      return;
    }
    const bool copy = c == "copy" || c == "layout";
    const Touch& touch = walk_.touch(activity);
    const bool clone =
        copy && c != "layout" && touch.kind == TouchKind::kPointwise && touch.read == touch.written;
    // A clone may go also where a fusion would take it along.
    if (walk_.taken(activity) && !(clone && !between_layouts(kernel))) return;
    if (walk_.taken(activity)) in_chains_ += walk_.duration(activity);
    if (between_layouts(kernel)) {
      conversions_.push_back(activity);
    } else if (copy) {
      (!clone ? casts_ : before_one_query(run, at) ? of_caches_ : clones_).push_back(activity);
    }
  }
  // Without a timeline: the rows' totals.
  void rows() {
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kLayout[1]);
    for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
      const KernelStat& kernel = facts.rows.kernels[i];
      if (kernel.name.op_class != "copy" && kernel.name.op_class != "layout") continue;
      scale_row(facts, i, {1, 0.5, 0}, out);
      name_kernel(kernel, out);
      out.evidence.push_back({problem_text(kernel),
                              fmt::format("{}, {}", short_ns(kernel.duration.total_ns()),
                                          counted(kernel.duration.count(), "launch")),
                              "kernel name"});
    }
    if (out.evidence.empty()) return;
    out.assumptions.emplace_back(kNotRecorded);
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }
  std::string time_of(const Launches& work) const { return launches_in_words(walk_, work); }

  // Copies by the copy engine from the device to itself.
  void within_device() {
    const Profile& profile = *walk_.facts().profile;
    for (std::uint32_t i = 0; i < profile.timeline.activities.size(); ++i) {
      const Activity& activity = profile.timeline.activities[i];
      if (walk_.taken(i) || !purlin::analyze::within_device(profile, activity)) continue;
      within_.push_back(i);
      within_bytes_ += static_cast<double>(activity.bytes);
    }
  }
  std::string rate_of_copies() const {
    const double ns = walk_.duration(within_);
    double peak = 0;
    for (const Ceilings& ceilings : walk_.facts().rows.ceilings)
      if (const Ceiling* dram = ceilings.memory_for("dram")) peak = std::max(peak, dram->peak);
    const double rate = ns > 0 ? 2 * within_bytes_ / ns * 1e9 : 0;  // each byte is read and written
    return rate > 0 && peak > 0
               ? fmt::format(", {} of the memory's {}", percent(rate / peak), si(peak, "B/s"))
               : std::string();
  }

  void channels() {
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kLayout[0]);
    remove_launches(walk_, conversions_, walk_.trains() ? kGoneTraining : kGone, out);
    for (const std::uint32_t activity : conversions_) name_kernel(walk_.stat(activity), out);
    out.saved_ns =
        facts.capped(out.saved_ns + kConvolutionGain * in_one_unit(facts, convolutions_));
    for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i)
      if (facts.rows.kernels[i].name.op_class == "conv")
        out.change.edits.emplace_back(scale_of(
            facts, i,
            {1 - kConvolutionGain.low, 1 - kConvolutionGain.mid, 1 - kConvolutionGain.high}));
    norms(out);
    walk_.take(conversions_);
    out.evidence.push_back(
        {"conversions between layouts next to convolutions", time_of(conversions_), "kernel name"});
    out.evidence.push_back({"time of the convolutions",
                            of_total(in_one_unit(facts, convolutions_), facts.unit.baseline_ns.mid),
                            "timeline"});
    out.assumptions.push_back(fmt::format(
        "the conversions go; the convolutions and the kernels between them gain {:.0f}% "
        "to {:.0f}% of their time, a prior",
        100 * kConvolutionGain.low, 100 * kConvolutionGain.high));
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  // Convolutions that compute in planes need no conversion, but their biases are strided.
  void planes() {
    Intervention out = from_remedy(kLayout[0]);
    for (const Launches* work : {&in_planes_, &slow_})
      remove_launches(walk_, *work, kConvolutionGain, out);
    for (const std::uint32_t activity : in_planes_) name_kernel(walk_.stat(activity), out);
    out.evidence.push_back(
        {"convolutions that compute in planes", time_of(in_planes_), "kernel name"});
    if (!slow_.empty())
      out.evidence.push_back(
          {"pointwise kernels of the general variant after them", time_of(slow_), "kernel name"});
    out.assumptions.push_back(fmt::format(
        "both gain {:.0f}% to {:.0f}% of their time, a prior: some such convolutions are slower "
        "with channels last",
        100 * kConvolutionGain.low, 100 * kConvolutionGain.high));
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  void norms(Intervention& out) {
    const Facts& facts = walk_.facts();
    double total = 0;
    Interval3 saved;
    for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
      const KernelStat& kernel = facts.rows.kernels[i];
      if (!norm_over_planes(kernel)) continue;
      const Interval3 gain = norm_gain(kernel);
      const double ns = kernel.duration.total_ns();
      total += ns;
      saved = saved + facts.end_to_end(i, gain * ns);
      name_kernel(kernel, out);
      out.change.edits.emplace_back(
          scale_of(facts, i, {1 - gain.low, 1 - gain.mid, 1 - gain.high}));
    }
    if (total <= 0) return;
    out.saved_ns = facts.capped(out.saved_ns + saved);
    out.evidence.push_back({"batch norms over images in planes",
                            of_total(facts.in_unit(total), facts.unit.baseline_ns.mid),
                            "kernel name"});
    out.assumptions.push_back(fmt::format(
        "batch norms for channels last reach {:.0f}% to {:.0f}% of the bandwidth, a prior",
        100 * kNormReaches.low, 100 * kNormReaches.high));
  }

  void copies() {
    Intervention out = from_remedy(kLayout[1]);
    if (!unfolded_.empty()) {
      remove_launches(walk_, unfolded_, kUnfoldedGone, out);
      out.how.emplace_back("PyTorch: F.conv2d for F.unfold and a product of the patches");
      out.evidence.push_back(
          {"patches of images written out for a product", time_of(unfolded_), "kernel name"});
    }
    if (!reordered_.empty()) {
      remove_launches(walk_, reordered_, kReorderedGone, out);
      out.how.emplace_back("caches: keep the order as indices, and leave it where it is the same");
      out.evidence.push_back(
          {"whole arrays copied in another order", time_of(reordered_), "shapes"});
    }
    if (!clones_.empty()) {
      remove_launches(walk_, clones_, {0.5, 0.95, 1}, out);
      out.evidence.push_back({"copies within one type", time_of(clones_), "kernel name"});
    }
    if (!of_caches_.empty()) {
      remove_launches(walk_, of_caches_, kCachesGone, out);
      out.evidence.push_back(
          {"copies before an attention of one query", time_of(of_caches_), "kernel name"});
      out.assumptions.emplace_back("the attention may read a cache that is stored turned slower");
    }
    if (!casts_.empty()) {
      remove_launches(walk_, casts_, {0, 0.5, 1}, out);
      out.evidence.push_back({"conversions and changes of layout", time_of(casts_), "kernel name"});
    }
    if (!within_.empty()) {
      remove_launches(walk_, within_, {0.5, 0.95, 1}, out);
      out.evidence.push_back(
          {"memcpys from the device to itself", time_of(within_) + rate_of_copies(), "timeline"});
    }
    std::size_t shown = 0;
    for (const Launches* work : {&unfolded_, &reordered_, &clones_, &of_caches_, &casts_})
      for (const std::uint32_t activity : *work) {
        const std::size_t known = out.kernels.size();
        name_kernel(walk_.stat(activity), out);
        if (out.kernels.size() > known && shown++ < kExamples)
          out.evidence.push_back({"one of them", problem_text(walk_.stat(activity)), "shapes"});
      }
    out.assumptions.emplace_back(kNotRecorded);
    double all = 0;
    for (const Launches* work : {&unfolded_, &reordered_, &clones_, &of_caches_, &casts_, &within_})
      all += walk_.duration(*work);
    if (2 * in_chains_ > all) {
      out.alternative = true;
      out.assumptions.emplace_back("a fusion of the kernels around them saves the same time");
    }
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Launches conversions_, clones_, casts_, within_, unfolded_, reordered_;
  Launches in_planes_, slow_, of_caches_;
  double convolutions_ = 0, within_bytes_ = 0;
  double in_chains_ = 0;  // ns of the clones that another rule has taken
};

}  // namespace

const Rule kLayoutRule = {kLayout, [](Walk& walk, Advice& advice) { Layouts(walk, advice).run(); }};

}  // namespace purlin::analyze
