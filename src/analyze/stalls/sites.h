// SPDX-License-Identifier: Apache-2.0
// StallSites: a kernel's sampled stalls, by reason and by place: source lines where they are known,
// single instructions where not. The samples of a kernel are of all its launches: a profile's
// sampled stalls know no launch shapes. Pure functions over values.
#pragma once

#include "model/profile/sampled_stalls.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {

struct StallLine {
  std::string file;  // "" where the line is not known
  std::uint32_t line = 0;
  std::uint64_t offset = 0;  // of its most sampled instruction; StallSite::kNowhere: not kept
  std::size_t instructions = 0;
  double samples = 0;
  std::vector<std::pair<std::string, double>> reasons;  // (reason, samples), most first
  std::string where() const;  // "/src/gemm.cu:14", "+0x150"; "" where it was not kept
};

struct StallSites {
  std::map<std::string, double> reasons;
  double samples = 0;
  std::vector<StallLine> lines;  // most first
  bool empty() const { return reasons.empty(); }
  // Where most of the samples of a reason are; nullptr where that is not known.
  const StallLine* most_of(const std::string& reason) const;
};

// Of functions that are one kernel: of several modules, devices of one model, and so on.
StallSites sites_of(const SampledStalls& stalls, const std::vector<const StallFunction*>& parts);

}  // namespace purlin::analyze
