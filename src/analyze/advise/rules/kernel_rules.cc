// SPDX-License-Identifier: Apache-2.0
// What the roofline and the counters show of each kernel. Only what is far enough from its target,
// and sets the pace, is worth work.
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/rules.h"
#include "analyze/roofline/counters.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

// A depthwise convolution has no product of matrices for the tensor cores.
bool by_channel(const KernelStat& kernel) {
  Problem problem;
  problem.dimensions = dimensions_from_text(kernel.shape);
  return kernel.name.op_class == "conv" && problem["groups"] > 1 &&
         problem["groups"] == problem["C"];
}

constexpr double kDiminishing = 0.60;                    // of its roof: above it tuning pays little
constexpr double kExcessTraffic = 1.5;                   // moved against what must be moved
constexpr double kWideRequest = 16, kNarrowRequest = 4;  // sectors: 16 and 4 bytes a thread
constexpr double kWideLoads = 12;                        // sectors of a load request
constexpr double kDiverged = 24;                         // threads per instruction, of 32
constexpr std::size_t kKernelsNamed = 8;
constexpr std::size_t kOneProblem = 2;  // lines of evidence of the first problem of a kernel

class KernelRules {
 public:
  KernelRules(const Facts& facts, Advice& advice) : facts_(facts), advice_(advice) {}

  void run() {
    const auto& kernels = facts_.rows.kernels;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const KernelStat& kernel = kernels[i];
      if (kernel.name.op_class == "communication") continue;
      if (facts_.in_unit(kernel.duration.total_ns()) < kSmallestRow * facts_.unit.baseline_ns.mid)
        continue;
      look_at(i);
    }
    for (auto& [key, found] : found_) {
      if (key.first == "tensor_cores") halve_traffic(found);
      finish(std::move(found));
    }
  }

 private:
  struct Found {
    Intervention out;
    Interval3 saved;
    double most = 0, ns = 0, exposed_ns = 0;
  };

  const KernelStat& at(std::size_t row) const { return facts_.rows.kernels[row]; }
  static double total(const KernelStat& kernel) { return kernel.duration.total_ns(); }
  static std::optional<double> counter(const KernelStat& kernel, std::string_view name) {
    for (const Counter& one : kernel.counters)
      if (one.name == name) return one.value;
    return std::nullopt;
  }

  // One intervention for each remedy and kernel, or for each remedy where kernels share it.
  Found& found(std::string_view remedy, std::string_view kernel, std::size_t row) {
    Found& out = found_[{std::string(remedy), std::string(kernel)}];
    if (out.out.id.empty()) out.out = from_remedy(remedy);
    auto& names = out.out.kernels;
    if (std::find(names.begin(), names.end(), at(row).label) == names.end()) {
      if (names.size() < kKernelsNamed) {
        names.push_back(at(row).label);
      } else {
        out.out.kernels_left_out += 1;
      }
    }
    out.ns += facts_.in_unit(total(at(row)));
    out.exposed_ns += facts_.in_unit(total(at(row))) * facts_.exposed[row].mid;
    out.most += facts_.in_unit(total(at(row))) * facts_.exposed[row].high;
    return out;
  }
  // `roof` where the high saving is at most what the kernel's roofs leave.
  void add(Found& to, std::size_t row, Interval3 saved_total, std::string_view confidence,
           bool roof = false) {
    to.saved = to.saved + facts_.end_to_end(row, saved_total);
    edit::Scale scale = scale_of(facts_, row, left_of(at(row), saved_total));
    if (roof) scale.least = std::max(0.0, std::min(at(row).roof.utilization, scale.factor.high));
    to.out.change.edits.emplace_back(std::move(scale));
    // The weakest of what is added up.
    if (to.out.confidence.empty() || to.out.confidence < confidence) to.out.confidence = confidence;
  }
  // A product reads each operand once for each tile: what it does for a byte grows with the tile.
  void tiling(Found& to, const KernelStat& kernel) const {
    const double size = bytes_per_element(kernel.dtype);
    const double bandwidth = facts_.bandwidth_of(kernel);
    if (kernel.name.op_class != "gemm" || from_library(kernel) || size <= 0 || bandwidth <= 0 ||
        kernel.roof.utilization >= kDiminishing || to.out.evidence.size() > kOneProblem)
      return;
    const Peaks peaks = peaks_of(facts_, kernel, kernel.dtype);
    evidence(to, "FLOP/B without tiles, in tiles of 32 x 32, of 128 x 128",
             fmt::format("{:.2f}, {:.0f}, {:.0f}; the ridge is at {:.0f}",
                         tile_intensity(1, 1, size), tile_intensity(32, 32, size),
                         tile_intensity(128, 128, size), peaks.flops / bandwidth),
             "shape model");
  }
  // What a saving leaves of a row's time.
  static Interval3 left_of(const KernelStat& kernel, Interval3 saved) {
    const double t = total(kernel);
    return {1 - saved.low / t, 1 - saved.mid / t, 1 - saved.high / t};
  }
  static void evidence(Found& to, std::string what, std::string value, std::string from) {
    constexpr std::size_t kMax = 4;
    if (to.out.evidence.size() < kMax)
      to.out.evidence.push_back({std::move(what), std::move(value), std::move(from)});
  }
  void roof_evidence(Found& to, const KernelStat& kernel) const {
    evidence(
        to, problem_text(kernel),
        fmt::format("{} bound, at {} of the {} roof, target {:.0f}%", to_text(kernel.roof.bound),
                    percent(kernel.roof.utilization), clean(kernel.roof.ceiling),
                    100 * target_of(kernel.roof, facts_.targets).fraction),
        kernel.roof.bound_from == "counter" ? "counters" : "shape model");
  }

  void look_at(std::size_t row) {
    const KernelStat& kernel = at(row);
    if (coalescing(row) || divergence(row)) {
      tensor_cores_by_name(row);
      return;
    }
    if (kernel.roof.utilization <= 0) {
      tensor_cores_by_name(row);
      return;
    }
    if (kernel.roof.tensor_cores_idle && !by_channel(kernel)) return tensor_cores(row);
    switch (kernel.roof.bound) {
      case Bound::kMemory:
        return memory(row);
      case Bound::kCompute:
        return compute(row);
      case Bound::kLatency:
        tensor_cores_by_name(row);
        return;
      case Bound::kUnknown:
        return;
    }
  }

  // t (1 - u / target), of which stall and layout rules keep 0.3 to 1.4; never below the roof.
  Interval3 to_target(const KernelStat& kernel, Interval3 kept) const {
    const double t = total(kernel);
    const double model = t * target_of(kernel.roof, facts_.targets).saved_share;
    return bounded(kept * model, t * (1 - kernel.roof.utilization));
  }

  void memory(std::size_t row) {
    const KernelStat& kernel = at(row);
    const Roof& roof = kernel.roof;
    if (roof.bytes_from == Provenance::kCounter && roof.model_bytes > 0 &&
        roof.bytes > kExcessTraffic * roof.model_bytes)
      return excess(row);
    // Look-ups by index have a rule of their order.
    if (roof.utilization >= kDiminishing || kernel.name.op_class == "embedding") return;
    const double width = sectors_per_load(kernel);
    if (width >= kWideLoads) return;  // 16 bytes a thread already
    const bool heavy = from_library(kernel);
    Found& to = found(heavy ? "tune_kernel" : "stream_wider", kernel.label, row);
    roof_evidence(to, kernel);
    if (kernel.name.family == "pytorch" && starts_with(kernel.name.brief, "elementwise "))
      evidence(to, "the general variant was chosen",
               "elementwise_kernel, not vectorized_elementwise_kernel: an input is broadcast, "
               "strided or of another type",
               "kernel name");
    if (width > 0)
      evidence(to, "sectors of a load request, 16 with 16 bytes a thread",
               fmt::format("{:.1f}", width), "counters");
    const Ceilings* ceilings = facts_.ceilings_of(kernel);
    const bool cached = roof.bytes_from == Provenance::kShapeModel && ceilings != nullptr &&
                        roof.bytes < ceilings->l2_bytes;
    if (cached && to.out.assumptions.empty())
      to.out.assumptions.emplace_back(
          "its data fit the L2 cache, so the distance to the DRAM roof is less reliable: the low "
          "estimate is 0");
    Interval3 kept = kStallModel;
    if (cached || heavy) kept = {0, 0.4, kStallModel.high};
    add(to, row, to_target(kernel, kept),
        roof.bytes_from == Provenance::kCounter ? "B"
        : cached || heavy                       ? "D"
                                                : "C",
        !cached);
  }

  void excess(std::size_t row) {
    const KernelStat& kernel = at(row);
    const Roof& roof = kernel.roof;
    Found& to = found("reuse_data", kernel.label, row);
    evidence(to, "bytes moved, and bytes that the problem needs",
             fmt::format("{} and {}: {:.1f} x", format_bytes(roof.bytes),
                         format_bytes(roof.model_bytes), roof.bytes / roof.model_bytes),
             "counters and shape model");
    roof_evidence(to, kernel);
    const double left = roof.model_bytes / roof.bytes;  // of the traffic
    const double t = total(kernel);
    const auto after = [&](double traffic, double efficiency) {
      return t *
             std::max(roof.compute_share, std::min(1.0, roof.utilization * traffic / efficiency));
    };
    const double most = t - after(left, 1),
                 mid = t - after(0.5 * (left + 1), facts_.targets.memory);
    add(to, row, bounded({kStallModel.low * mid, mid, most}, most), "A", true);
  }

  bool coalescing(std::size_t row) {
    const KernelStat& kernel = at(row);
    double sectors = 0, requests = 0;
    for (const char* op : {"ld", "st"}) {
      const std::string tail = fmt::format("_pipe_lsu_mem_global_op_{}.sum", op);
      const auto moved = counter(kernel, "l1tex__t_sectors" + tail);
      const auto asked = counter(kernel, "l1tex__t_requests" + tail);
      if (!moved || !asked) continue;  // counters of some launches may lack one of them
      sectors += *moved;
      requests += *asked;
    }
    const double per_request = requests > 0 ? sectors / requests : 0;
    const auto excessive =
        counter(kernel, "derived__memory_l2_theoretical_sectors_global_excessive");
    const auto theory = counter(kernel, "memory_l2_theoretical_sectors_global");
    double excess = 0;
    if (excessive && theory && *theory > 0) {
      excess = *excessive / *theory;
    } else if (per_request > kWideRequest) {
      excess = 1 - kNarrowRequest / per_request;
    }
    if (excess < 0.1) return false;
    const CounterFigures figures = read_counters(kernel.counters, kernel.duration.mean_ns());
    const double busy = figures.memory_busy.value_or(kernel.roof.utilization);
    const double t = total(kernel);
    Found& to = found("coalesce", kernel.label, row);
    evidence(to, "sectors that a coalesced access would not touch",
             fmt::format("{:.0f}%", 100 * std::min(1.0, excess)), "counters");
    if (per_request > 0)
      evidence(to, "sectors per request, 4 to 16 are ideal", fmt::format("{:.1f}", per_request),
               "counters");
    evidence(to, "memory busy", percent(busy), "counters");
    add(to, row, bounded(kStallModel * (t * std::min(1.0, excess) * busy), 0.95 * t), "B");
    return true;
  }

  bool divergence(std::size_t row) {
    const KernelStat& kernel = at(row);
    const auto threads = counter(kernel, "smsp__thread_inst_executed_per_inst_executed.ratio");
    if (!threads || *threads >= kDiverged || *threads <= 0) return false;
    const CounterFigures figures = read_counters(kernel.counters, kernel.duration.mean_ns());
    if (!figures.compute_busy) return false;
    Found& to = found("unify_branches", kernel.label, row);
    evidence(to, "threads that execute an instruction, of 32", fmt::format("{:.1f}", *threads),
             "counters");
    evidence(to, "SMs busy", percent(*figures.compute_busy), "counters");
    const double model = total(kernel) * (1 - *threads / 32) * *figures.compute_busy;
    add(to, row, kStallModel * model, "B");
    return true;
  }

  void tensor_cores(std::size_t row) {
    const KernelStat& kernel = at(row);
    const Roof& roof = kernel.roof;
    const Ceilings* ceilings = facts_.ceilings_of(kernel);
    const Ceiling* tensor = ceilings != nullptr ? tensor_ceiling_for_f32(*ceilings) : nullptr;
    const double bandwidth = facts_.bandwidth_of(kernel);
    const double flops = roof.flops;
    if (tensor == nullptr || tensor->peak <= 0 || flops <= 0) return;
    const Ceiling* half = ceilings->compute_for("bf16", true);
    const double mean = kernel.duration.mean_ns(), count = kernel.duration.count();
    const auto after = [&](double peak, double compute, double memory) {
      const double bytes = bandwidth > 0 ? roof.bytes / (bandwidth * memory) : 0;
      return std::max({flops / (peak * compute), bytes, 2e-6}) * 1e9;
    };
    const double mid = mean - after(tensor->peak, facts_.targets.compute, facts_.targets.memory);
    const double high =
        mean - after(half != nullptr ? std::max(half->peak, tensor->peak) : tensor->peak, 1, 1);
    if (mid <= 0) return;
    Found& to = found("tensor_cores", "", row);
    evidence(
        to, problem_text(kernel),
        fmt::format("{} on the vector units: {} of f32, {} of {}", si(roof.flops_per_s, "FLOP/s"),
                    percent(roof.utilization), percent(roof.tensor_share), roof.tensor_ceiling),
        roof.flops_from == Provenance::kCounter ? "counters" : "shape model");
    if (roof.bytes > 0 && to.out.evidence.size() == 1)
      evidence(to, "bytes of a launch in 32, 16 and 8 bits",
               fmt::format("{}, {}, {}", format_bytes(roof.bytes), format_bytes(roof.bytes / 2),
                           format_bytes(roof.bytes / 4)),
               "shape model");
    tiling(to, kernel);
    const Touch product =
        touch_of(facts_.profile->kernels[facts_.profile_rows[row].front()], kernel);
    if (const std::string odd = misaligned_extent(product, 16); !odd.empty())
      evidence(to, "tensor cores want multiples of 16 bytes",
               fmt::format("{}: pad it to {:.0f}, {:.0f}, {:.0f} (M, N, K)", odd,
                           padded_extent(product.m, product, 16),
                           padded_extent(product.columns, product, 16),
                           padded_extent(product.depth, product, 16)),
               "shapes");
    if (to.out.assumptions.empty())
      to.out.assumptions.push_back(
          fmt::format("mid: {} at {:.2f} of its peak; high: 16 bits at their roof; low: 0.3 of mid",
                      tensor->name, facts_.targets.compute));
    add(to, row, Interval3{0.3 * mid, mid, high} * count, "B", true);
  }

  // The name says vector units, but not how much work it is: at least as much is left as the
  // ratio of the peaks would leave of a kernel at its roof.
  bool tensor_cores_by_name(std::size_t row) {
    const KernelStat& kernel = at(row);
    const std::string_view c = kernel.name.op_class;
    if (kernel.name.tensor != TensorCores::kNo || kernel.name.dtype != "f32" ||
        (c != "gemm" && c != "conv") || kernel.duration.mean_ns() < kShortLaunch)
      return false;
    const Ceilings* ceilings = facts_.ceilings_of(kernel);
    const Ceiling* tensor = ceilings != nullptr ? tensor_ceiling_for_f32(*ceilings) : nullptr;
    const Ceiling* vector = ceilings != nullptr ? ceilings->compute_for("f32", false) : nullptr;
    if (tensor == nullptr || vector == nullptr || tensor->peak <= vector->peak) return false;
    Found& to = found("tensor_cores", "", row);
    evidence(to, short_label(kernel),
             fmt::format("a product of f32 on the vector units; the device has {}, {:.1f} times as "
                         "fast",
                         tensor->name, tensor->peak / vector->peak),
             "kernel name");
    // Daydream's rule for compute-bound kernels in mixed precision: a third of the time.
    const double t = total(kernel), mid = t * 2 / 3;
    const std::string assumed =
        "where only the name is known: mid leaves a third of the time, Daydream's result for mixed "
        "precision; high leaves the ratio of the peaks";
    auto& assumptions = to.out.assumptions;
    if (std::find(assumptions.begin(), assumptions.end(), assumed) == assumptions.end())
      assumptions.push_back(assumed);
    add(to, row, {0.3 * mid, mid, t * (1 - vector->peak / tensor->peak)}, "D");
    return true;
  }

  void compute(std::size_t row) {
    const KernelStat& kernel = at(row);
    if (kernel.roof.utilization >= kDiminishing) return;
    Found& to = found("tune_kernel", kernel.label, row);
    roof_evidence(to, kernel);
    if (kernel.roof.occupancy_theoretical > 0 && kernel.roof.occupancy_theoretical < 0.25)
      evidence(
          to, "occupancy",
          fmt::format("{} theoretical, limited by {}", percent(kernel.roof.occupancy_theoretical),
                      clean(kernel.roof.occupancy_limiter)),
          "launch");
    tiling(to, kernel);
    if (to.out.assumptions.empty())
      to.out.assumptions.emplace_back(
          "a better variant at this shape may not exist, so the low estimate is 0");
    add(to, row, to_target(kernel, {0, 0.3, 1}), "C", true);
  }

  // With 16 bits, what lies between the products moves half of its bytes: at the high end only.
  void halve_traffic(Found& to) const {
    constexpr std::string_view kBetween[] = {"elementwise", "softmax", "norm", "copy"};
    const auto& rows = facts_.rows.kernels;
    Interval3 saved;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool between = std::find(std::begin(kBetween), std::end(kBetween),
                                     rows[i].name.op_class) != std::end(kBetween);
      if (!between || rows[i].dtype != "f32" || rows[i].duration.mean_ns() < kShortLaunch) continue;
      saved.high += 0.45 * total(rows[i]);
      to.most += facts_.in_unit(0.45 * total(rows[i]));
      to.saved = to.saved + facts_.end_to_end(i, {0, 0, 0.45 * total(rows[i])});
      edit::Scale halved = scale_of(facts_, i, {1, 1, 0.55});
      halved.least = 0.5;
      to.out.change.edits.emplace_back(std::move(halved));
    }
    if (saved.high > 0)
      to.out.assumptions.push_back(fmt::format(
          "high: 16 bits also halve the traffic of f32 kernels between the products, {} of {}",
          short_ns(facts_.in_unit(saved.high)), short_ns(facts_.unit.baseline_ns.mid)));
  }

  void finish(Found found) {
    found.out.saved_ns = bounded(facts_.capped(found.saved), found.most);
    const double exposed = found.ns > 0 ? found.exposed_ns / found.ns : 1;
    if (facts_.exposure.known && exposed < 0.9)
      found.out.evidence.push_back(
          {"share of its time that sets the pace",
           fmt::format("{}: for the rest the host launches later than the kernel ends",
                       percent(exposed)),
           "timeline"});
    if (!facts_.exposure.known && !facts_.timeline->devices.empty())
      found.out.assumptions.emplace_back(
          "the device, not the host, sets the pace: not all calls of the host were recorded");
    advice_.interventions.push_back(std::move(found.out));
  }

  const Facts& facts_;
  Advice& advice_;
  std::map<std::pair<std::string, std::string>, Found> found_;
};

}  // namespace

void add_kernel_rules(const Facts& facts, Advice& advice) { KernelRules(facts, advice).run(); }

}  // namespace purlin::analyze
