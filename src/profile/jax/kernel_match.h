// SPDX-License-Identifier: Apache-2.0
// Gives the kernels of a run the ops and problem shapes of the XLA programs that launched them.
//
// A kernel that XLA compiled has the name of its instruction. Its neighbours in the
// schedule decide between programs. The kernels of a library between two of them are the library
// calls that the schedule has there. A match that is not certain, or that the device could not have
// run in that time, gives nothing. A row that several ops share is split, as its launches in the
// timeline are.
//
// Pure functions over values; not thread-safe. Cannot fail: what does not match is counted.
#pragma once

#include "model/profile/profile.h"
#include "profile/import/hlo/launches.h"

#include <cstdint>
#include <vector>

namespace purlin::profile {

struct ProcessPrograms {
  std::int64_t pid = 0;
  std::vector<hlo::Program> programs;
};

struct ProgramMatch {
  double total_ns = 0, with_op_ns = 0;  // of the run's kernels, after the match
  // Of products and convolutions that programs ran: not those that XLA tried while it compiled.
  double heavy_ns = 0, heavy_with_shape_ns = 0;
  double launches = 0;     // that got an op
  double implausible = 0;  // launches whose match was dropped: too fast for it, or of another type
};

ProgramMatch match_programs(Profile& run, const std::vector<ProcessPrograms>& processes);

}  // namespace purlin::profile
