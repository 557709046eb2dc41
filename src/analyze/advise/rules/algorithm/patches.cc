// SPDX-License-Identifier: Apache-2.0
// Convolutions whose windows lie side by side: the stride is the filter, as where an image or a
// video is cut into patches. Each output reads inputs that no other reads, so it is a product.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kPatches = {
    "Multiply where a convolution's windows lie side by side", "hours",
    "PyTorch: x.unflatten into patches, then F.linear(patches.flatten(1), weight.flatten(1)); one "
    "patch for each sample needs no copy|"
    "PyTorch: a mean over the windows first, where the filter is constant",
    "the order of the sums changes"};

constexpr double kLeastSpeedUp = 2;       // by the middle estimate; else the library does well
constexpr double kLeastPatches = 20'000;  // ns
// Of the product's roofs, and of the bandwidth, what the copy into patches reaches.
constexpr Interval3 kOfCompute = {0.25, 0.5, 0.8}, kOfMemory = {0.4, 0.6, 0.85};
constexpr Interval3 kOfCopy = {0.3, 0.5, 0.8};

struct PatchAxis {
  std::string_view image, filter, result, stride, padding, dilation;
};
constexpr PatchAxis kPatchAxes[] = {{"D", "T", "Z", "stride_D", "padding_D", "dilation_D"},
                                    {"H", "R", "P", "stride_H", "padding_H", "dilation_H"},
                                    {"W", "S", "Q", "stride_W", "padding_W", "dilation_W"}};

// The product that such a convolution is; rows 0: it is none.
struct PatchProduct {
  double rows = 0, columns = 0, depth = 0, patches = 1;  // patches: of a sample
};

PatchProduct product_of(const KernelStat& kernel) {
  Problem problem;
  problem.dimensions = dimensions_from_text(kernel.shape);
  const auto of = [&](std::string_view name) { return static_cast<double>(problem[name]); };
  PatchProduct out;
  if (of("groups") > 1 || of("transposed") > 0 || of("N") <= 0 || of("C") <= 0 || of("K") <= 0)
    return out;
  double filter = 1;
  for (const PatchAxis& axis : kPatchAxes) {
    const double width = of(axis.filter);
    if (width <= 0) continue;  // an axis that the convolution does not have
    const double all = of("stride"), stride = of(axis.stride) > 0 ? of(axis.stride) : all;
    const bool moved =
        of("padding") > 0 || of(axis.padding) > 0 || of("dilation") > 1 || of(axis.dilation) > 1;
    const bool whole = width == 1 && of(axis.image) == 1;  // the height of a 1-D one
    if (moved || of(axis.result) <= 0 || (!whole && std::max(stride, 1.0) != width)) return out;
    filter *= width;
    out.patches *= of(axis.result);
  }
  if (filter <= 1) return out;  // one by one: a product already
  out.rows = of("N") * out.patches;
  out.columns = of("K");
  out.depth = of("C") * filter;
  return out;
}

class Patches {
 public:
  Patches(Walk& walk, Advice& advice)
      : walk_(walk), facts_(walk.facts()), advice_(advice), chains_(walk) {}

  void run() {
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t launch : run) {
        if (walk_.taken(launch) || !is_slow_row(facts_.row_of[walk_.at(launch).row])) continue;
        walk_.take({&launch, 1});
        chains_.add({&launch, 1});
      }
    for (const Chain* chain : chains_.all()) estimate(*chain);
  }

 private:
  Interval3 after(const KernelStat& kernel, const PatchProduct& product) const {
    const Peaks peaks = peaks_of(facts_, kernel, kernel.dtype);
    const double size = bytes_per_element(kernel.dtype);
    const double flops = 2 * product.rows * product.columns * product.depth;
    const double in = product.rows * product.depth * size;
    const double bytes =
        in + (product.columns * product.depth + product.rows * product.columns) * size;
    return each_scenario([&](const auto& at) {
      const double copy = product.patches > 1 ? roof_ns(peaks, 0, 2 * in, 1, at(kOfCopy)) : 0;
      return copy + roof_ns(peaks, flops, bytes, at(kOfCompute), at(kOfMemory));
    });
  }
  bool is_slow_row(std::size_t row) {
    const auto [found, added] = slow_.try_emplace(row, false);
    if (added) found->second = slow(facts_.rows.kernels[row]);
    return found->second;
  }
  bool slow(const KernelStat& kernel) const {
    if (kernel.duration.mean_ns() < kLeastPatches) return false;
    if (kernel.name.op_class != "conv" || kernel.op.find("backward") != std::string::npos)
      return false;
    const PatchProduct product = product_of(kernel);
    const Peaks peaks = peaks_of(facts_, kernel, kernel.dtype);
    return product.rows > 0 && peaks.flops > 0 && peaks.bandwidth > 0 &&
           kernel.duration.mean_ns() > kLeastSpeedUp * after(kernel, product).mid;
  }

  void estimate(const Chain& chain) {
    const KernelStat& kernel = facts_.rows.kernels[facts_.row_of[chain.rows.front()]];
    const PatchProduct product = product_of(kernel);
    Intervention out = from_remedy(kReduceRemedy, kPatches);
    out.evidence.push_back(
        {problem_text(kernel),
         fmt::format("the stride is the filter: a product of M={:.0f},N={:.0f},K={:.0f}",
                     product.rows, product.columns, product.depth),
         "shapes"});
    put_chain(
        facts_, chain, after(kernel, product), product.patches > 1 ? 2 : 1,
        "the convolution's input is not padded, and its result may be laid out as a product's", "B",
        std::move(out), advice_);
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  Chains chains_;
  std::map<std::size_t, bool> slow_;  // by report row
};

}  // namespace

const Rule kPatchesRule = {{}, [](Walk& walk, Advice& advice) { Patches(walk, advice).run(); }};

}  // namespace purlin::analyze
