// SPDX-License-Identifier: Apache-2.0
// What other hardware, or less data, would give. On another GPU of the table, kernels keep their
// share of the roof. Of several GPUs, each takes its part of the kernels and copies. What they
// communicate is not known, so that is the most they can give. The host stays.
#include "analyze/advise/what_if/what_if.h"
#include "analyze/timeline/device_sweep.h"
#include "model/device/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace purlin::analyze {
namespace {

constexpr double kWorthShowing = 0.02, kAlike = 0.01;  // of the unit
constexpr std::size_t kShownGpus = 3;
constexpr int kCounts[] = {2, 4, 8};

// Of the time now; nothing where the other device cannot do it.
std::optional<double> ratio(const Ceiling* now, const Ceiling* then) {
  if (now == nullptr) return 1;
  if (then == nullptr || then->peak <= 0) return std::nullopt;
  return now->peak / then->peak;
}

// A program for one maker's devices does not run on another's. No architecture: CUDA's.
bool same_maker(std::string_view gpu, std::string_view own) {
  const auto amd = [](std::string_view arch) { return arch.substr(0, 3) == "gfx"; };
  return amd(gpu) == amd(own);
}

class HardwareWhatIf {
 public:
  HardwareWhatIf(const Facts& facts, Advice& advice) : facts_(facts), advice_(advice) {}

  void run(double data_cut) {
    if (facts_.unit.baseline_ns.mid <= 0) return;
    if (data_cut > 0) less_data(data_cut);
    other_gpus();
    more_gpus();
  }

 private:
  // Of its time on the other device: by the resource that would bind it there.
  static std::optional<double> factor_on(const KernelStat& kernel, const Ceilings& now,
                                         const Ceilings& then) {
    const Roof& roof = kernel.roof;
    const double most = std::max(roof.compute_share, roof.memory_share);
    if (roof.utilization <= 0 || roof.bound == Bound::kLatency || most <= 0) return 1;
    const bool tensor = roof.ceiling.find("tensor") != std::string::npos;
    const auto compute =
        ratio(now.compute_for(kernel.dtype, tensor), then.compute_for(kernel.dtype, tensor));
    const auto memory = ratio(now.memory_for("dram"), then.memory_for("dram"));
    if (!compute || !memory) return std::nullopt;
    return std::max(roof.compute_share * *compute, roof.memory_share * *memory) / most;
  }

  double saved_by(const Change& change, const std::vector<double>& factors) const {
    if (facts_.replayer != nullptr) {
      const double before = facts_.replayer->before().step_ns;
      return before > 0 ? 1 - facts_.replayer->after(change).step_ns / before : 0;
    }
    double saved = 0;
    for (std::size_t i = 0; i < factors.size(); ++i)
      saved += facts_.in_unit(facts_.rows.kernels[i].duration.total_ns()) * facts_.exposed[i].mid *
               (1 - factors[i]);
    return std::min(saved, facts_.max_by_kernels.mid) / facts_.unit.baseline_ns.mid;
  }

  std::optional<WhatIf> on(const GpuModel& gpu, const Ceilings& now) const {
    DeviceInfo device;
    device.name = gpu.name;
    device.arch = gpu.arch;
    device.compute_units = gpu.units;
    device.memory_bytes = static_cast<std::uint64_t>(gpu.memory_gb * 1e9);
    const Ceilings then = build_ceilings(device);
    Change change;
    std::vector<double> factors;
    for (std::size_t i = 0; i < facts_.rows.kernels.size(); ++i) {
      const auto factor = factor_on(facts_.rows.kernels[i], now, then);
      if (!factor) return std::nullopt;
      factors.push_back(*factor);
      if (factors[i] != 1)
        change.edits.emplace_back(edit::Scale{Affected::of_rows(facts_.profile_rows[i]),
                                              {factors[i], factors[i], factors[i]}});
    }
    WhatIf out;
    out.resource = "gpu";
    out.device = gpu.name;
    out.saved_share = saved_by(change, factors);
    out.saved_ns = out.saved_share * facts_.unit.baseline_ns.mid;
    out.text =
        fmt::format("{} would save {:.1f}%, if its kernels reach the same share of its roofs",
                    gpu.name, 100 * out.saved_share);
    return out;
  }

  void other_gpus() {
    const auto& devices = facts_.profile->environment.devices;
    const Ceilings* now = facts_.rows.ceilings.empty() ? nullptr : &facts_.rows.ceilings.front();
    if (devices.empty() || now == nullptr || now->empty() || advice_.judged_share <= 0) return;
    const GpuModel* own = find_gpu(devices.front().name, devices.front().memory_bytes);
    std::vector<WhatIf> all;
    for (const GpuModel& gpu : gpu_table())
      if (&gpu != own && same_maker(gpu.arch, devices.front().arch))
        if (auto one = on(gpu, *now)) all.push_back(std::move(*one));
    std::erase_if(all, [](const WhatIf& one) { return one.saved_share < kWorthShowing; });
    std::stable_sort(all.begin(), all.end(), [](const WhatIf& a, const WhatIf& b) {
      return a.saved_share > b.saved_share;
    });
    std::size_t shown = 0;
    double before = 0;
    for (WhatIf& one : all) {
      if (shown > 0 && before - one.saved_share < kAlike) continue;
      before = one.saved_share;
      advice_.what_if.push_back(std::move(one));
      if (++shown == kShownGpus) break;
    }
  }

  // All kernels and copies, each to a part of its time.
  double saved_by_part(double part, bool communicates_too) const {
    Affected all;
    const std::vector<bool> communicates = communication_rows(*facts_.profile);
    for (std::uint32_t i = 0; i < facts_.profile->kernels.size(); ++i)
      if (communicates_too || !communicates[i]) all.kernel_rows.push_back(i);
    for (std::uint32_t i = 0; i < facts_.profile->copies.size(); ++i) all.copy_rows.push_back(i);
    Change change;
    change.edits.emplace_back(edit::Scale{std::move(all), {part, part, part}});
    return saved_by(change, std::vector<double>(facts_.rows.kernels.size(), part));
  }

  // What tuning gives at its best: every kernel at its target.
  double saved_at_targets() const {
    Change change;
    std::vector<double> factors;
    for (std::size_t i = 0; i < facts_.rows.kernels.size(); ++i) {
      const Target target = target_of(facts_.rows.kernels[i].roof, facts_.targets);
      const double factor = target.fraction > 0 ? 1 / target.speedup : 1;
      factors.push_back(factor);
      if (factor < 1)
        change.edits.emplace_back(
            edit::Scale{Affected::of_rows(facts_.profile_rows[i]), {factor, factor, factor}});
    }
    return saved_by(change, factors);
  }

  // A cut that the user states, next to the tuning of the kernels.
  void less_data(double cut) {
    WhatIf out;
    out.resource = "data";
    out.factor = 1 - cut;
    out.saved_share = saved_by_part(1 - cut, true);
    out.saved_ns = out.saved_share * facts_.unit.baseline_ns.mid;
    const double tuned = saved_at_targets();
    out.text = fmt::format(
        "{:.3g}% less data would save {:.1f}%, if kernels and copies take as much less time; every "
        "kernel at its target would save {:.1f}%: {} first",
        100 * cut, 100 * out.saved_share, 100 * tuned,
        out.saved_share >= tuned ? "restructure" : "tune");
    advice_.what_if.insert(advice_.what_if.begin(), std::move(out));
  }

  void more_gpus() {
    if (facts_.replayer == nullptr) return;
    for (const int count : kCounts) {
      WhatIf out;
      out.resource = "gpus";
      out.factor = count;
      out.saved_share = saved_by_part(1.0 / count, false);
      if (out.saved_share < kWorthShowing) continue;
      out.saved_ns = out.saved_share * facts_.unit.baseline_ns.mid;
      out.text = fmt::format(
          "{} times as many GPUs would save at most {:.1f}%, without what they would communicate",
          count, 100 * out.saved_share);
      advice_.what_if.push_back(std::move(out));
    }
  }

  const Facts& facts_;
  Advice& advice_;
};

}  // namespace

void add_hardware(const Facts& facts, const AdviceOptions& options, Advice& advice) {
  HardwareWhatIf(facts, advice).run(options.data_cut);
}

}  // namespace purlin::analyze
