// SPDX-License-Identifier: Apache-2.0
// Products whose extents are no multiple of 16 bytes: the library falls back to kernels with
// narrow loads, often made for an older architecture.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr Remedy kAlign = {
    "align_dimensions",
    "Pad the product's extents to multiples of 16 bytes",
    Pillar::kArithmeticIntensity,
    Level::kCompute,
    "compute",
    "hours",
    "low",
    "cuda",
    "framework",
    "pad vocabulary, hidden and head extents once, in the weights, to a multiple of 16 bytes at "
    "least, of 64 elements at best: 50,257 becomes 50,304; zero the padding|"
    "images: pad the channels once, input and filters, instead of at each convolution|"
    "cuBLAS: leading dimensions and pointers on 16 bytes select the kernels of the present "
    "architecture",
    "mask the padded logits, and keep the padding out of sums"};

constexpr double kAlignedBytes = 16;
constexpr double kWellUsed = 0.6;  // of its roof: the kernel does well already
// Of the two roofs, what an aligned product of a library reaches.
constexpr Interval3 kAlignedCompute = {0.35, 0.6, 0.8}, kAlignedMemory = {0.5, 0.75, 0.92};

std::string architecture_of(const Facts& facts, const KernelStat& kernel) {
  for (const DeviceInfo& device : facts.profile->environment.devices)
    if (device.name == kernel.device) return device.arch;
  return "";
}

// What the kernel's name says about narrow loads: "align2", or an architecture before the device's.
std::string fallback(const Facts& facts, const KernelStat& kernel) {
  for (const char* narrow : {"align1", "align2", "align4"})
    if (kernel.name.full.find(narrow) != std::string::npos) return narrow;
  const int made_for = architecture_number(kernel.name.arch),
            device = architecture_number(architecture_of(facts, kernel));
  if (made_for > 0 && device > 0 && made_for / 10 < device / 10)
    return fmt::format("made for {}, the device is {}", kernel.name.arch,
                       architecture_of(facts, kernel));
  return "";
}

void align_row(Walk& walk, std::size_t row, Intervention& out) {
  const Facts& facts = walk.facts();
  const KernelStat& kernel = facts.rows.kernels[row];
  const Touch& touch = walk.report_touch(row);
  if (touch.kind != TouchKind::kProduct || kernel.name.tensor == TensorCores::kNo) return;
  const double step = kAlignedBytes / touch.in_size;
  const auto off = [step](double extent) { return std::fmod(extent, step) != 0; };
  const std::string why = fallback(facts, kernel);
  const bool inner = off(touch.columns) || off(touch.depth);
  if (!inner && !(off(touch.m) && !why.empty())) return;
  if (kernel.roof.utilization >= kWellUsed) return;
  const double m = why.empty() ? touch.m : padded_extent(touch.m, touch, kAlignedBytes);
  const double n = padded_extent(touch.columns, touch, kAlignedBytes),
               k = padded_extent(touch.depth, touch, kAlignedBytes);
  const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
  if (peaks.flops <= 0) return;
  const double flops = 2 * touch.batch * m * n * k;
  const double bytes = touch.in_size * touch.batch * (m * k + k * n + m * n);
  const double mean = kernel.duration.mean_ns();
  const auto factor = [&](double compute, double memory) {
    return std::min(1.0, roof_ns(peaks, flops, bytes, compute, memory) / mean);
  };
  const Interval3 after = {factor(kAlignedCompute.low, kAlignedMemory.low),
                           factor(kAlignedCompute.mid, kAlignedMemory.mid),
                           factor(kAlignedCompute.high, kAlignedMemory.high)};
  if (after.high >= 1) return;
  scale_row(facts, row, after, out);
  name_kernel(kernel, out);
  if (out.evidence.size() >= 6) return;
  out.evidence.push_back({problem_text(kernel),
                          fmt::format("{}; padded, at least: M={:.0f}, N={:.0f}, K={:.0f}",
                                      misaligned_extent(touch, kAlignedBytes), m, n, k),
                          "shapes"});
  out.evidence.push_back({"the kernel that was chosen",
                          fmt::format("{}; {} of its roof", why.empty() ? short_label(kernel) : why,
                                      percent(kernel.roof.utilization)),
                          "kernel name"});
}

// The library pads the channels of a convolution itself, at each call, and cuts its result.
constexpr std::string_view kPadding[] = {"AddPadding", "addPadding", "RemovePadding"};
constexpr Interval3 kPaddingGone = {0.6, 0.95, 1};

bool pads(const KernelStat& kernel) {
  return kernel.name.op_class == "conv" &&
         std::any_of(std::begin(kPadding), std::end(kPadding), [&](std::string_view word) {
           return kernel.name.full.find(word) != std::string::npos;
         });
}

void align_channels(const Walk& walk, Intervention& out) {
  const Facts& facts = walk.facts();
  Launches padding;
  for (const Launches& run : walk.runs())
    for (const std::uint32_t activity : run)
      if (pads(walk.stat(activity))) {
        // The library clears what it pads into.
        if (activity > 0 && walk.at(activity - 1).kind == ActivityKind::kSet &&
            walk.at(activity - 1).stream == walk.at(activity).stream)
          padding.push_back(activity - 1);
        padding.push_back(activity);
        name_kernel(walk.stat(activity), out);
      }
  if (padding.empty()) return;
  remove_launches(walk, padding, kPaddingGone, out);
  out.evidence.push_back(
      {"kernels and fills that pad channels at each call",
       fmt::format(
           "{}{}, {}", counted(in_one_unit(facts, static_cast<double>(padding.size())), "launch"),
           a_unit(facts),
           of_total(in_one_unit(facts, walk.duration(padding)), facts.unit.baseline_ns.mid)),
       "kernel name"});
  out.evidence.push_back({"one of them", problem_text(walk.stat(padding.back())), "shapes"});
}

void add_align(Walk& walk, Advice& advice) {
  Intervention out = from_remedy(kAlign);
  for (std::size_t i = 0; i < walk.facts().rows.kernels.size(); ++i) align_row(walk, i, out);
  align_channels(walk, out);
  if (out.evidence.empty()) return;
  out.assumptions.push_back(fmt::format(
      "an aligned product reaches {:.2f} to {:.2f} of the compute peak, or {:.2f} to "
      "{:.2f} of the bandwidth; which operand is transposed was not recorded",
      kAlignedCompute.low, kAlignedCompute.high, kAlignedMemory.low, kAlignedMemory.high));
  out.confidence = "B";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kAlignRule = {{&kAlign, 1}, add_align};

}  // namespace purlin::analyze
