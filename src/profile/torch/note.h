// SPDX-License-Identifier: Apache-2.0
// TorchNote: what the hook in a Python process (python/purlin_hook) did, from its note in the
// spool, "purlin.torch/1" (docs/design/torch-hook.md). Notes are written by the profiled program's
// process and not trusted: damaged ones are left out. Pure functions over files.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::profile {

struct TorchNote {
  std::int64_t pid = 0;
  int number = 0;      // of the trace in its process; 0: the note of a process
  std::string mode;    // "steps", "time", "none"
  std::string reason;  // why there is no trace: "own_profiler", "not_steady", …; "" with a trace
  std::string detail, torch;
  std::string trace;    // the trace's file in the same folder
  std::string flow;     // the execution trace's, of other steps
  std::string no_flow;  // why there is none
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t steps = 0, optimizer_steps = 0;
  // A step before the trace and after it, by the program's own clock; 0: no steps.
  double usual_step_ns = 0, step_after_ns = 0;
  std::int64_t steps_after = 0;
  double cost_ns = 0;       // what the program waited for the trace
  bool cuda = false;        // whether the process used CUDA
  bool keeps_cupti = true;  // CUPTI was not shut down after the trace
};

Result<TorchNote> parse_torch_note(const std::string& text);
// Of all processes, in the order of their traces.
std::vector<TorchNote> read_torch_notes(const std::string& spool);

}  // namespace purlin::profile
