// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/roofline.h"

#include "analyze/roofline/counters.h"
#include "analyze/roofline/work.h"
#include "base/text.h"
#include "model/device/gpu_table.h"
#include "model/device/occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

// Below this share of every ceiling a kernel waits for something else, where counters say so.
constexpr double kIdle = 0.30;
// Nsight Compute's mark: a unit that is busier than this is what the kernel waits for.
constexpr double kBusyUtilization = 0.60;
// A launch this short is mostly starting and draining.
constexpr double kShortNs = 5'000;
constexpr double kEmptyLaunchNs = 2'000;  // that even an empty kernel takes
// A model above the ceiling by more than clocks and rounding explain is not what was executed.
constexpr double kBelievable = 1.02;

std::string whole_percent(double share) {
  const double value = 100 * share;
  return fmt::format("{:.{}f} %", value, value > 0 && value < 1 ? 1 : 0);
}

bool is_heavy(std::string_view op_class) {
  return op_class == "gemm" || op_class == "conv" || op_class == "attention";
}

std::string_view ceiling_dtype(std::string_view dtype) {
  if (dtype.substr(0, 2) == "f8") return "f8";
  if (dtype.substr(0, 2) == "f6") return "f6";
  if (dtype.substr(0, 2) == "f4") return "f4";
  if (dtype == "u8") return "i8";
  return dtype;
}

// The ceiling that a row's FLOPs stand against.
const Ceiling* compute_ceiling(const Ceilings& ceilings, const CounterFigures& counters,
                               const KernelRow& row, const KernelName& name,
                               std::string_view op_class) {
  if (!counters.unit.empty() && counters.unit_flops > 0) {
    std::string_view unit = counters.unit;
    const bool tensor = ends_with(unit, " tensor");
    if (tensor) unit.remove_suffix(7);
    return ceilings.compute_for(unit, tensor);
  }
  // What the kernel multiplies decides where its name tells; what the op was given else.
  const std::string_view dtype = ceiling_dtype(name.dtype.empty() ? row.dtype : name.dtype);
  if (dtype.empty()) return nullptr;
  if (!is_heavy(op_class))  // arithmetic of half types is done in f32 by most kernels
    return ceilings.compute_for(dtype == "f64" || dtype == "c128" ? "f64" : "f32", false);
  const bool tensor = name.tensor == TensorCores::kYes;
  if (dtype == "f64" || dtype == "c128") return ceilings.compute_for("f64", tensor);
  if (dtype == "tf32" || dtype == "f32" || dtype == "c64") {
    const Ceiling* tf32 = tensor || dtype == "tf32" ? ceilings.compute_for("tf32", true) : nullptr;
    return tf32 != nullptr ? tf32 : ceilings.compute_for("f32", tensor);
  }
  return ceilings.compute_for(dtype, name.tensor != TensorCores::kNo);
}

template <class Map>
std::string longest(const Map& by_time) {
  std::string best;
  double most = -1;
  for (const auto& [key, ns] : by_time)
    if (ns > most) best = key, most = ns;
  return best;
}

}  // namespace

std::string_view to_text(Bound bound) {
  switch (bound) {
    case Bound::kMemory:
      return "memory";
    case Bound::kCompute:
      return "compute";
    case Bound::kLatency:
      return "latency";
    case Bound::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view to_text(Provenance provenance) {
  switch (provenance) {
    case Provenance::kNone:
      return "none";
    case Provenance::kCounter:
      return "counter";
    case Provenance::kShapeModel:
      return "shape_model";
  }
  return "";
}

std::string_view grade_of(Bound binding, double utilization) {
  if (utilization <= 0) return "";
  const double good = binding == Bound::kCompute ? 0.8 : 0.6;
  const double poor = binding == Bound::kCompute ? 0.5 : 0.3;
  return utilization > good ? "good" : utilization < poor ? "optimise" : "ok";
}

const Ceiling* tensor_ceiling_for_f32(const Ceilings& ceilings) {
  for (const char* name : {"tf32 tensor", "bf16 tensor", "f16 tensor"})
    for (const Ceiling& ceiling : ceilings.compute)
      if (ceiling.name == name) return &ceiling;
  return nullptr;
}

void RoofSum::Amount::add(double each, double count, double time) {
  total += each * count;
  launches += count;
  ns += time;
}

void RoofSum::add(const KernelRow& row, const KernelName& name, double part) {
  const double ns = row.duration.total_ns();
  double launches = row.duration.count();
  if (launches <= 0)  // counters of launches that were not timed
    for (const Counter& counter : row.counters) launches = std::max(launches, counter.launches);
  if (launches <= 0) return;
  launches_ += launches;
  ns_ += ns;
  if (op_class_.empty() && !is_helper_kernel(name))
    op_class_ = std::string(op_class_of_row(row, name));
  add_work(row, name, part, launches, ns);
  add_occupancy(row, ns);
}

void RoofSum::add_work(const KernelRow& row, const KernelName& name, double part, double launches,
                       double ns) {
  const double mean_ns = launches > 0 ? ns / launches : 0;
  const CounterFigures counters = read_counters(row.counters, mean_ns);
  Work model = work_of_kernel(row, name);
  for (std::optional<double>* figure : {&model.flops, &model.bytes})
    if (*figure) **figure *= part;
  if (counters.flops) counted_flops_.add(*counters.flops, launches, ns);
  if (counters.dram_bytes) counted_bytes_.add(*counters.dram_bytes, launches, ns);
  if (counters.l2_bytes) l2_bytes_.add(*counters.l2_bytes, launches, ns);
  if (model.flops) model_flops_.add(*model.flops, launches, ns);
  if (model.bytes) model_bytes_.add(*model.bytes, launches, ns);
  if (model.bus_bytes) bus_bytes_.add(*model.bus_bytes, launches, ns);
  if (counters.clock_mhz > 0) {
    clock_sum_ += counters.clock_mhz * ns;
    clock_ns_ += ns;
  }
  if (counters.compute_busy && counters.memory_busy) {
    busy_ns_ += ns;
    compute_busy_ += ns * *counters.compute_busy;
    memory_busy_ += ns * *counters.memory_busy;
  }
  if (counters.occupancy) {
    measured_ns_ += ns;
    measured_ += ns * *counters.occupancy;
  }
  if (mean_ns <= 0) return;

  const double s = mean_ns * 1e-9;
  const Ceiling* compute =
      compute_ceiling(*ceilings_, counters, row, name, op_class_of_row(row, name));
  const Ceiling* dram = ceilings_->memory_for("dram");
  const double clocked = compute != nullptr && compute->clock_mhz > 0 && counters.clock_mhz > 0
                             ? counters.clock_mhz / compute->clock_mhz
                             : 1;
  const double peak = compute != nullptr ? clocked * compute->peak : 0;
  const double peak_flops = compute != nullptr ? clocked * compute->limit() : 0;
  double bandwidth = dram != nullptr ? dram->peak : 0;
  if (dram == nullptr) bandwidth = counters.dram_peak.value_or(0);
  const double peak_bytes = dram != nullptr ? dram->limit() : bandwidth;
  std::string level = "dram";

  auto flops = counters.flops ? counters.flops : model.flops;
  auto bytes = counters.dram_bytes ? counters.dram_bytes : model.bytes;
  // A model may say more than the kernel did. What is above the ceiling is not shown as if true.
  if (flops && !counters.flops && peak > 0 && *flops / s > kBelievable * peak_flops) {
    notes_[fmt::format(
        "the shape model's FLOPs would be {} of {}: the kernel executes fewer (FFT, "
        "Winograd, sparsity) or uses another unit",
        whole_percent(*flops / s / peak_flops), compute->name)] += ns;
    flops.reset();
  }
  if (bytes && !counters.dram_bytes && bandwidth > 0 && *bytes / s > kBelievable * peak_bytes) {
    const Ceiling* l2 = ceilings_->memory_for("l2");
    const bool cached = l2 != nullptr && *bytes / s <= kBelievable * l2->limit();
    notes_[fmt::format(
        "the shape model's bytes would be {} of DRAM bandwidth: they come from a "
        "cache{}",
        whole_percent(*bytes / s / peak_bytes), cached ? "" : ", or not all of them are moved")] +=
        ns;
    if (cached) {
      bandwidth = l2->peak;
      level = "l2";
    } else {
      bytes.reset();
    }
  }
  const double compute_s = flops && peak > 0 ? *flops / peak : 0;
  double memory_s = bytes && bandwidth > 0 ? *bytes / bandwidth : 0;
  if (const Ceiling* l2 = ceilings_->memory_for("l2"); l2 != nullptr && counters.l2_bytes) {
    // The level that would take longest is the one that binds.
    const double l2_s = *counters.l2_bytes / l2->peak;
    if (l2_s > memory_s && counters.dram_bytes) memory_s = l2_s, level = "l2";
  }
  const bool compute_known = flops && (peak > 0 || *flops == 0);
  const bool memory_known = bytes && bandwidth > 0;
  // With one side unknown the other decides only where there is no room for a worse one.
  const double floor_s = std::max(compute_s, memory_s);
  // …and products are far from memory-bound at any size worth a row.
  const bool decided = (compute_known && memory_known) || floor_s >= kBusyUtilization * s ||
                       (compute_known && compute_s >= kIdle * s && is_heavy(op_class_));
  if (!decided) {
    if (notes_.empty() && (compute_known || memory_known))
      notes_[compute_known ? "bytes are not known" : "FLOPs are not known"] += ns;
    return;
  }
  judged_ns_ += ns;
  compute_ns_ += launches * compute_s * 1e9;
  memory_ns_ += launches * memory_s * 1e9;
  floor_ns_ += launches * floor_s * 1e9;
  if (compute_s > memory_s) compute_bound_ns_ += launches * compute_s * 1e9;
  judged_flops_ += launches * flops.value_or(0);
  judged_bytes_ += launches * bytes.value_or(0);
  const bool flops_matter = flops && *flops > 0;
  judged_by_counter_ |= (flops_matter && counters.flops) || counters.dram_bytes;
  judged_by_model_ |= (flops_matter && !counters.flops) || (bytes && !counters.dram_bytes);
  if (compute != nullptr && flops_matter) units_[compute->name] += ns;
  levels_[level] += ns;
}

void RoofSum::add_occupancy(const KernelRow& row, double ns) {
  const auto limits = sm_limits(device_->arch);
  // One block of one thread without registers is a launch that was not recorded.
  if (!limits || (row.registers == 0 && row.launch.threads_per_block() == 1)) return;
  const auto occupancy =
      occupancy_of(row.launch, static_cast<int>(std::min(row.registers, 10'000u)),
                   row.static_shared_bytes, *limits, units_of(*device_));
  if (!occupancy) {
    if (cannot_launch_.empty())
      cannot_launch_ = beyond_limits(row.launch, static_cast<int>(std::min(row.registers, 10'000u)),
                                     row.static_shared_bytes, *limits);
    return;
  }
  const double weight = std::max(ns, 1.0);
  occupancy_ns_ += weight;
  theoretical_ += weight * occupancy->theoretical;
  estimated_ += weight * occupancy->estimated;
  limiters_[std::string(to_text(occupancy->limiter))] += weight;
  if (const int units = units_of(*device_);
      units > 0 && row.launch.blocks() < static_cast<std::uint64_t>(units))
    small_grid_ns_ += ns;
}

Roof RoofSum::roof() const {
  Roof roof;
  roof.cannot_launch = cannot_launch_;
  const bool counted_flops = counted_flops_.launches > 0,
             counted_bytes = counted_bytes_.launches > 0;
  const Amount& flops = counted_flops ? counted_flops_ : model_flops_;
  const Amount& bytes = counted_bytes ? counted_bytes_ : model_bytes_;
  roof.flops = flops.per_launch();
  roof.bytes = bytes.per_launch();
  if (roof.flops > 0)
    roof.flops_from = counted_flops ? Provenance::kCounter : Provenance::kShapeModel;
  if (roof.bytes > 0)
    roof.bytes_from = counted_bytes ? Provenance::kCounter : Provenance::kShapeModel;
  roof.model_flops = model_flops_.per_launch();
  roof.model_bytes = model_bytes_.per_launch();
  roof.l2_bytes = l2_bytes_.per_launch();
  if (roof.bytes > 0) roof.intensity = roof.flops / roof.bytes;
  if (clock_ns_ > 0) roof.clock_mhz = clock_sum_ / clock_ns_;
  if (occupancy_ns_ > 0) {
    roof.occupancy_theoretical = theoretical_ / occupancy_ns_;
    roof.occupancy_achieved = estimated_ / occupancy_ns_;
    roof.occupancy_limiter = longest(limiters_);
  }
  if (measured_ns_ > 0) {
    roof.occupancy_achieved = measured_ / measured_ns_;
    roof.occupancy_measured = true;
  }
  if (judged_ns_ > 0) {
    roof.flops_per_s = judged_flops_ / judged_ns_ * 1e9;
    roof.bytes_per_s = judged_bytes_ / judged_ns_ * 1e9;
    roof.utilization = std::min(1.0, floor_ns_ / judged_ns_);
    roof.compute_share = std::min(1.0, compute_ns_ / judged_ns_);
    roof.memory_share = std::min(1.0, memory_ns_ / judged_ns_);
    if (floor_ns_ > 0) roof.attainable_flops_per_s = judged_flops_ / floor_ns_ * 1e9;
  } else {  // rates stand without a ceiling to compare them with, where no model was refused
    if (flops.ns > 0 && counted_flops) roof.flops_per_s = flops.total / flops.ns * 1e9;
    if (bytes.ns > 0 && counted_bytes) roof.bytes_per_s = bytes.total / bytes.ns * 1e9;
  }
  judge(roof);
  find_idle_tensor_cores(roof);
  describe(roof);
  return roof;
}

void RoofSum::judge(Roof& roof) const {
  const Bound binding = compute_bound_ns_ > floor_ns_ / 2 ? Bound::kCompute : Bound::kMemory;
  const double mean_ns = launches_ > 0 ? ns_ / launches_ : 0;
  const bool gpu = device_->kind != "cpu";
  const bool is_short = gpu && mean_ns > 0 && mean_ns <= kShortNs;
  if (gpu && mean_ns > 0) roof.launch_share = std::min(1.0, kEmptyLaunchNs / mean_ns);
  const bool small_grid = ns_ > 0 && small_grid_ns_ > ns_ / 2;
  const double compute_busy = busy_ns_ > 0 ? compute_busy_ / busy_ns_ : -1;
  const double memory_busy = busy_ns_ > 0 ? memory_busy_ / busy_ns_ : -1;
  if (roof.utilization > 0) {
    roof.ceiling = binding == Bound::kCompute ? longest(units_) : longest(levels_);
    roof.bound = binding;
    roof.bound_from = judged_by_counter_ ? "counter" : "shape_model";
    if (roof.utilization < kIdle) {
      if (busy_ns_ > 0 && std::max(compute_busy, memory_busy) >= kBusyUtilization) {
        // Caches, or instructions that are no FLOPs: busy all the same.
        const bool memory = memory_busy >= compute_busy;
        roof.bound = memory ? Bound::kMemory : Bound::kCompute;
        roof.bound_from = "counter";
        roof.utilization = std::min(1.0, std::max(compute_busy, memory_busy));
        roof.ceiling = memory ? "memory throughput" : "sm throughput";  // Nsight Compute's words
      } else if (is_short || small_grid) {
        roof.bound = Bound::kLatency;
        roof.bound_from = "launch";
      } else if (!judged_by_model_) {
        roof.bound = Bound::kLatency;  // counters saw all the work there was
      }
    }
    const bool by_latency = roof.bound == Bound::kLatency;
    roof.grade = grade_of(by_latency ? binding : roof.bound, roof.utilization);
  } else if (busy_ns_ > 0) {
    roof.bound_from = "counter";
    roof.bound = std::max(compute_busy, memory_busy) < kBusyUtilization ? Bound::kLatency
                 : memory_busy >= compute_busy                          ? Bound::kMemory
                                                                        : Bound::kCompute;
    // The recorder's own share of peak: it knows the device.
    const bool memory = memory_busy >= compute_busy;
    roof.utilization = std::clamp(std::max(compute_busy, memory_busy), 0.0, 1.0);
    roof.ceiling = memory ? "memory throughput" : "sm throughput";
    roof.grade = grade_of(memory ? Bound::kMemory : Bound::kCompute, roof.utilization);
  } else if (is_short) {
    roof.bound = Bound::kLatency;
    roof.bound_from = "launch";
  } else if (is_heavy(op_class_)) {
    roof.bound = Bound::kCompute;
    roof.bound_from = "op_class";
  } else if (op_class_ == "elementwise" || op_class_ == "norm" || op_class_ == "softmax" ||
             op_class_ == "reduction" || op_class_ == "copy" || op_class_ == "layout" ||
             op_class_ == "optimizer" || op_class_ == "embedding" || op_class_ == "fft") {
    roof.bound = Bound::kMemory;
    roof.bound_from = "op_class";
  }
}

void RoofSum::find_idle_tensor_cores(Roof& roof) const {
  if (roof.utilization <= 0 || roof.flops_per_s <= 0) return;
  if (roof.bound != Bound::kCompute || longest(units_) != "f32" || !is_heavy(op_class_)) return;
  const Ceiling* tensor = tensor_ceiling_for_f32(*ceilings_);
  if (tensor == nullptr || tensor->peak <= 0) return;
  roof.tensor_cores_idle = true;
  roof.tensor_share = roof.flops_per_s / tensor->peak;
  roof.tensor_ceiling = tensor->name;
}

// Why work says nothing of the bound.
std::string RoofSum::missing() const {
  const bool counted = counted_flops_.launches > 0 || counted_bytes_.launches > 0;
  const bool modelled = model_flops_.launches > 0 || model_bytes_.launches > 0;
  if (!counted && !modelled) return "its work is not known: no counters and no problem shape";
  if (ns_ <= 0) return "launches were counted, not timed";
  if (ceilings_->empty()) return "the device's ceilings are not known";
  return "its work is known in part";
}

void RoofSum::describe(Roof& roof) const {
  std::vector<std::string> parts;
  const bool judged = roof.utilization > 0 && judged_ns_ > 0;
  if (judged) {
    const std::string source = judged_by_counter_ && judged_by_model_ ? "counters and shape model"
                               : judged_by_counter_                   ? "counters"
                                                                      : "shape model";
    const std::string level = longest(levels_) == "l2" ? "L2" : "DRAM";
    std::string text =
        fmt::format("{} of {} bandwidth", whole_percent(memory_ns_ / judged_ns_), level);
    if (!units_.empty())
      text += fmt::format(", {} of {}", whole_percent(compute_ns_ / judged_ns_), longest(units_));
    parts.push_back(text + " (" + source + ")");
    const Ceiling* ceiling = roof.ceiling == "dram" || roof.ceiling == "l2"
                                 ? ceilings_->memory_for(roof.ceiling)
                                 : nullptr;
    for (const Ceiling& one : ceilings_->compute)
      if (ceiling == nullptr && one.name == roof.ceiling) ceiling = &one;
    if (ceiling != nullptr) {
      std::string from = ceiling->provenance;
      if (ceiling->clock_mhz > 0 && roof.clock_mhz > 0)
        from += fmt::format(", corrected to {:.0f} MHz observed", roof.clock_mhz);
      parts.push_back("ceiling: " + from);
    }
    if (roof.tensor_cores_idle)
      parts.push_back(fmt::format("tensor cores idle: {} of {}", whole_percent(roof.tensor_share),
                                  roof.tensor_ceiling));
  }
  if (busy_ns_ > 0)
    parts.push_back(fmt::format("SMs {} busy, memory {}", whole_percent(compute_busy_ / busy_ns_),
                                whole_percent(memory_busy_ / busy_ns_)));
  if (roof.bound == Bound::kLatency) {
    const double mean_ns = launches_ > 0 ? ns_ / launches_ : 0;
    if (ns_ > 0 && small_grid_ns_ > ns_ / 2) parts.push_back("fewer blocks than SMs");
    if (mean_ns > 0 && mean_ns <= kShortNs)
      parts.push_back(
          fmt::format("launches of {}: mostly starting and draining", format_ns(mean_ns)));
  }
  if (roof.bound == Bound::kMemory && roof.grade == "optimise")
    parts.push_back(
        "far below the roof: strided or uncoalesced accesses, or more traffic than needed");
  if (roof.bound_from == "op_class")
    parts.push_back(fmt::format("usual for {} kernels; {}", op_class_, missing()));
  if (judged && judged_ns_ < 0.95 * ns_)
    parts.push_back(fmt::format("for {} of the row's time", whole_percent(judged_ns_ / ns_)));
  if (!notes_.empty()) parts.push_back(longest(notes_));
  if (bus_bytes_.ns > 0)
    parts.push_back(fmt::format("{:.1f} GB/s over the links", bus_bytes_.total / bus_bytes_.ns));
  // Work that fits the cache may never have reached DRAM.
  if (ceilings_->l2_bytes > 0 && roof.bytes_from == Provenance::kShapeModel &&
      roof.utilization > 0 && roof.ceiling == "dram" && roof.bytes < ceilings_->l2_bytes)
    parts.push_back("fits the L2 cache: part of it may not come from DRAM");
  roof.evidence = join(parts, "; ");
}

}  // namespace purlin::analyze
