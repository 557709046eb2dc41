// SPDX-License-Identifier: Apache-2.0
// Recorded samples: CSV files of kernel times by process. They feed the gate, and its error rates
// can be checked on any measurements. Columns process, kernel, iteration, time_us and, where known,
// sm_clock_mhz, in any order. Other columns are ignored. The file may be gzipped.
// docs/formats/samples.md.
//
// Thread-safety: value types. Failure: kInvalid with file and line; sizes are bounded.
#pragma once

#include "base/status.h"
#include "guard/gate/gate.h"
#include "measure/output/benchmark_output.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::guard {

using measure::is_clock;
using measure::is_time;

// The measurement of one item by one process.
struct ProcessReading {
  ArmReading reading;  // medians over its iterations
  double p95_ns = 0;
  double clock_mhz = 0;  // median; 0 = not recorded
  int iterations = 0;    // of those that count
  int rejected = 0;      // samples left out: see summarise()
  std::string unfit;     // why the reading must not count; "" = it counts
  // Every sample that counts, in the order taken; not kept in baselines.
  std::vector<double> times_ns, clocks_mhz;
};

struct KernelSamples {
  std::string kernel;
  struct Process {
    std::string id;
    std::vector<double> times_ns;
    std::vector<double> clocks_mhz;  // as many, or empty where not recorded
  };
  std::vector<Process> processes;  // in the file's order
  // The highest recorded clock, taken as the nominal one; 0 = none recorded.
  double nominal_mhz() const;
};

Result<std::vector<KernelSamples>> parse_samples(std::string_view csv, const std::string& file);
Result<std::vector<KernelSamples>> load_samples(const std::string& path);

// The reading of a process: medians over its iterations. REQUIRES: times not empty.
ArmReading reading_of(const std::vector<double>& times_ns, const std::vector<double>& clocks_mhz);

// Below this share of its nominal clock a device is asleep, or its hardware's protection slows it
// (which halves the clock). Power limits stay above: an H200 under sustained matrix products keeps
// 75 %.
inline constexpr double kMinClockShare = 0.5;

// The reading of a process, without the samples whose clock lies below kMinClockShare of
// `nominal_mhz` (0 = not known: all count); unfit when fewer than half of them remain. kFailed
// where there is no usable time.
// `clocks_mhz` has as many entries as `times_ns`, or none; an entry of 0 is not known.
Result<ProcessReading> summarise(std::vector<double> times_ns, std::vector<double> clocks_mhz,
                                 double nominal_mhz);

// The smallest step between distinct samples, which is the timer's resolution where steps repeat;
// 0 where they do not (a timer too fine to matter).
double timer_resolution_ns(const std::vector<double>& times_ns);

// Runs the gate over recordings of two arms. A pair is the processes with the same id in both;
// pairs are used in the file's order. A kernel that only one file has is inconclusive. Each process
// goes through summarise(), as in a live measurement. The nominal clock is the highest of the
// kernel in either file. A pair with an unfit process is left out.
struct SamplesVerdict {
  std::string kernel;
  ItemResult result;
  int rejected_samples = 0;           // of the pairs that count
  std::vector<std::string> rejected;  // why, for each pair that was left out
};
std::vector<SamplesVerdict> compare_samples(const std::vector<KernelSamples>& baseline,
                                            const std::vector<KernelSamples>& current,
                                            const Thresholds& thresholds, const Design& design);

}  // namespace purlin::guard
