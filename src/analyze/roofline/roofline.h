// SPDX-License-Identifier: Apache-2.0
// Roofline: how near a kernel comes to what its device can do, and what holds it back. Work is
// FLOPs and bytes per launch, from counters where they were read, else from a model of the problem
// shape (analyze/roofline/work.h); ceilings are the GPU table's dense figures at the clock
// observed, or measured. Williams, Waterman, Patterson, CACM 2009. Utilisation is against the
// ceiling that binds. Pure functions; a RoofSum is a value. docs/concepts/roofline.md.
#pragma once

#include "analyze/kernel_name/kernel_name.h"
#include "base/json/json.h"
#include "model/device/ceilings.h"
#include "model/device/device.h"
#include "model/profile/profile.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

using purlin::Ceiling;
using purlin::Ceilings;

enum class Bound { kMemory, kCompute, kLatency, kUnknown };
std::string_view to_text(Bound bound);  // "memory"

enum class Provenance { kNone, kCounter, kShapeModel };
std::string_view to_text(Provenance provenance);  // "counter", "shape_model", "none"

struct Roof {                   // of one report row
  double flops = 0, bytes = 0;  // per launch; 0 = unknown
  Provenance flops_from = Provenance::kNone, bytes_from = Provenance::kNone;
  double model_flops = 0, model_bytes = 0;  // the shape model's, also where counters were read
  double flops_per_s = 0, bytes_per_s = 0;  // achieved, over the mean duration
  double l2_bytes = 0;                      // per launch, from counters
  double intensity = 0;                     // FLOP/B
  double attainable_flops_per_s = 0;        // min(peak, intensity * bandwidth)
  double utilization = 0;                   // of the binding ceiling; 0 = unknown
  // Shares of the time that the arithmetic alone and the traffic alone would take at their
  // ceilings: utilisation is the greater of them, launch by launch. 0 = unknown.
  double compute_share = 0, memory_share = 0;
  bool tensor_cores_idle = false;  // a product in vector units, of a device that could do better
  double tensor_share = 0;         // of the tensor ceiling it would have then
  std::string tensor_ceiling;      // "tf32 tensor"; "f16 tensor" where there is no TF32
  std::string ceiling;             // name of the binding one
  Bound bound = Bound::kUnknown;
  std::string bound_from;  // "counter", "shape_model", "launch" (its size), "op_class" (a prior)
  std::string grade;       // "good", "ok", "optimise"; "" where utilisation is unknown
  std::string evidence;    // why: "71 % of DRAM bandwidth, 3 % of f32 (counters)"
  double clock_mhz = 0;    // of the SMs, as counters observed it; 0 = not read
  double occupancy_theoretical = 0, occupancy_achieved = 0;  // share of warp slots; 0 = unknown
  bool occupancy_measured = false;  // achieved is a counter's, not the estimate of the grid
  std::string occupancy_limiter;    // "registers", "shared memory", …
  double launch_share = 0;          // of the mean time: what an empty launch takes; 0 on a CPU
  std::string cannot_launch;        // the limit that a recorded launch is beyond; "" = none
};

// Bands: of memory bandwidth above 60 % is good and below 30 % wants work; of compute 80 % and 50
// %.
std::string_view grade_of(Bound binding, double utilization);

// What products of f32 could use instead: TF32, else 16 bits; nullptr where there is neither.
const Ceiling* tensor_ceiling_for_f32(const Ceilings& ceilings);

// Ceilings of a device: measured ones first, where given; else the GPU table's by its name, at as
// many SMs as the device says it has; else what its attributes come to. What none of them tells is
// left out.
Ceilings build_ceilings(const DeviceInfo& device, const Ceilings* measured = nullptr);

// Adds up the profile rows that make one report row, each against the ceilings at its own clock.
class RoofSum {
 public:
  // `device` and `ceilings` must outlive the object.
  RoofSum(const DeviceInfo& device, const Ceilings& ceilings)
      : device_(&device), ceilings_(&ceilings) {}
  // A launch of the row does `part` of its op's work (op_parts.h).
  void add(const KernelRow& row, const KernelName& name, double part = 1);
  Roof roof() const;

 private:
  struct Amount {  // over the launches for which it is known
    double total = 0, launches = 0, ns = 0;
    double per_launch() const { return launches > 0 ? total / launches : 0; }
    void add(double each, double count, double time);
  };
  void add_work(const KernelRow& row, const KernelName& name, double part, double launches,
                double ns);
  void add_occupancy(const KernelRow& row, double ns);
  void judge(Roof& roof) const;
  void find_idle_tensor_cores(Roof& roof) const;
  void describe(Roof& roof) const;
  std::string missing() const;

  const DeviceInfo* device_;
  const Ceilings* ceilings_;
  double launches_ = 0, ns_ = 0;
  Amount counted_flops_, counted_bytes_, model_flops_, model_bytes_, l2_bytes_, bus_bytes_;
  // Over launches that have both figures, or one that decides alone: their time, and the least
  // time that the work would take at each ceiling and in all.
  double judged_ns_ = 0, compute_ns_ = 0, memory_ns_ = 0, compute_bound_ns_ = 0, floor_ns_ = 0;
  double judged_flops_ = 0, judged_bytes_ = 0;
  bool judged_by_model_ = false, judged_by_counter_ = false;
  std::map<std::string, double> units_, levels_;  // ceilings used, with the time for which
  std::map<std::string, double> notes_;           // what was left out and why, with its time
  double clock_sum_ = 0, clock_ns_ = 0;
  // Shares of peak as the tool gives them, weighted by time.
  double busy_ns_ = 0, compute_busy_ = 0, memory_busy_ = 0;
  double occupancy_ns_ = 0, theoretical_ = 0, estimated_ = 0, measured_ns_ = 0, measured_ = 0;
  double small_grid_ns_ = 0;  // launches with fewer blocks than there are SMs
  std::map<std::string, double> limiters_;
  std::string cannot_launch_;
  std::string op_class_;
};

}  // namespace purlin::analyze
