// SPDX-License-Identifier: Apache-2.0
// What a CUDA graph of a repeated sequence would hold: its launches, step by step, or round by
// round where no steps are known. And what hinders a capture in most of them, at any place in the
// step. Pure functions.
#pragma once

#include "analyze/advise/facts.h"

#include <string>
#include <vector>

namespace purlin::analyze {

struct GraphCapture {
  std::vector<WorkGroup> groups;  // in order of time
  std::string hindrance;          // "cudaMalloc in 10 of 10"; "" where nothing hinders
  bool worth_it = false;          // each holds several launches, and not collectives only
};
GraphCapture find_capture(const Facts& facts, const RepeatedSequence& sequence);

}  // namespace purlin::analyze
