// SPDX-License-Identifier: Apache-2.0
// SampledStalls: the places where the warps of a program's kernels waited, and the reasons, from
// sampled program counters. It is a separate table of a profile, by function, because the samples
// know neither launches nor launch shapes. Samples are of windows, and a share of them is a share
// of the time in which SMs had that function's warps. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace purlin {

struct StallCount {
  std::uint32_t reason = 0;  // index into SampledStalls::reasons
  double samples = 0;
};

// One instruction.
struct StallSite {
  static constexpr std::uint64_t kNowhere = UINT64_MAX;
  std::uint64_t offset = kNowhere;  // bytes from the function's start; kNowhere where not kept
  std::uint32_t file = 0;           // index into SampledStalls::files; 0 = not known
  std::uint32_t line = 0;           // 0 = not known
  std::vector<StallCount> counts;   // each reason once, in the order of their indices
  double samples() const {
    double sum = 0;
    for (const StallCount& count : counts) sum += count.samples;
    return sum;
  }
  void add(std::uint32_t reason, double samples);
};

// A kernel, or a function that kernels call.
struct StallFunction {
  std::string name;              // as recorded: mangled where the source was
  int device = 0;                // index into Environment::devices
  std::string build;             // Environment::build of the profile it came from
  std::uint64_t code = 0;        // a hash of the module it is in; 0 = not known
  std::vector<StallSite> sites;  // in the order of their offsets
};

struct SampledStalls {
  std::vector<std::string> files = {""}, reasons;  // reasons as docs/formats/import.md has them
  std::vector<StallFunction> functions;
  double windows = 0, sampled_ns = 0;
  // An SM takes a sample every so many cycles, a power of two; 0 = not known. Windows may differ.
  std::uint64_t least_period = 0, most_period = 0;
  double dropped = 0;  // samples the hardware could not keep
  double untold = 0;   // samples of code the driver tells nothing of
  bool empty() const { return functions.empty() && windows == 0; }
  double samples() const;
  void widen_period(std::uint64_t least, std::uint64_t most);
  // Parts of one function (equal name, device, build and code) become one, sites of one offset too,
  // functions and sites come in order. Of more than `most` sites those with the fewest samples lose
  // their place: their samples go to the function's site kNowhere.
  void combine(std::size_t most = kMaxSites);
  static constexpr std::size_t kMaxSites = std::size_t{1} << 20;
};

}  // namespace purlin
