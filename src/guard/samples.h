// SPDX-License-Identifier: Apache-2.0
// Recorded samples: CSV files of kernel times by process, so that the gate can be run, and its
// error rates checked, on anybody's measurements. Columns process, kernel, iteration, time_us and,
// where known, sm_clock_mhz, in any order; others are ignored; may be gzipped.
// docs/formats/samples.md.
//
// Thread-safety: value types. Failure: kInvalid with file and line; sizes are bounded.
#pragma once

#include "base/status.h"
#include "guard/gate.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::guard {

struct KernelSamples {
  std::string kernel;
  struct Process {
    std::string id;
    std::vector<double> times_ns;
    std::vector<double> clocks_mhz;  // as many, or empty where not recorded
  };
  std::vector<Process> processes;  // in the file's order
};

Result<std::vector<KernelSamples>> parse_samples(std::string_view csv, const std::string& file);
Result<std::vector<KernelSamples>> load_samples(const std::string& path);

// What a process says of a kernel: medians over its iterations. REQUIRES: times not empty.
ArmReading reading_of(const std::vector<double>& times_ns, const std::vector<double>& clocks_mhz);

// The smallest step between distinct samples, which is the timer's resolution where steps repeat;
// 0 where they do not (a timer too fine to matter).
double timer_resolution_ns(const std::vector<double>& times_ns);

// Runs the gate over recordings of two arms. A pair is the processes with the same id in both;
// pairs are used in the file's order. A kernel that only one file has is inconclusive.
struct SamplesVerdict {
  std::string kernel;
  ItemResult result;
};
std::vector<SamplesVerdict> compare_samples(const std::vector<KernelSamples>& baseline,
                                            const std::vector<KernelSamples>& current,
                                            const Thresholds& thresholds, const Design& design);

}  // namespace purlin::guard
