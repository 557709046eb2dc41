// SPDX-License-Identifier: Apache-2.0
// The report for people: readable at 80 columns and wider. Pure functions of the report and the
// terminal's abilities. docs/guide/report.md explains how to read it.
#pragma once

#include "analyze/report/report.h"
#include "base/output/terminal.h"

#include <string>

namespace purlin::analyze {

struct TextOptions {
  int top = 20;           // kernels shown; 0 = all
  bool headroom = false;  // say it of each kernel
  TargetFractions targets = {};
};

std::string render_text(const Report& report, const Terminal& terminal,
                        const TextOptions& options = {});

// One row in full: distribution, roofline evidence, occupancy, counters, and the launch shapes it
// is made of, which are rows of `by_launch`. `group_by`: of the report that the row is from.
std::string render_kernel(const KernelStat& kernel, GroupBy group_by, const Report& by_launch,
                          const Terminal& terminal, const TextOptions& options = {});

// What the devices did over time: phases, busy and idle by cause, overlap, steps, launches, graph
// candidates, gaps. "" where there is no timeline. A part of render_text.
std::string render_timeline(const Report& report, const Terminal& terminal);

std::string render_coverage(const Report& report, const Terminal& terminal);

inline bool has_bound(const Roof& roof) {
  return roof.bound != Bound::kUnknown || roof.utilization > 0;
}
// The usual bound of such kernels, without evidence from this profile.
inline bool is_guess(const Roof& roof) { return roof.bound_from == "op_class"; }
// The bound as every row and list shows it: "compute 31%" with the share of that roof, "memory?"
// where it is a guess, "-" where it is not known.
std::string bound_text(const Roof& roof);
// The element type in the same way: "bf16", "bf16?" where it is a guess, "" where it is not known.
inline std::string dtype_text(const KernelStat& kernel) {
  return kernel.has_guess() ? kernel.dtype_guess.dtype + "?" : kernel.dtype;
}
// "128 registers a thread, 4 KiB static and …"; what is not known says so.
std::string resources_text(const KernelStat& kernel);

}  // namespace purlin::analyze
