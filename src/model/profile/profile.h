// SPDX-License-Identifier: Apache-2.0
// Profile: what one run captured, in memory. The file is profile/format; its text
// docs/formats/profile.md.
#pragma once

#include "model/device/device.h"
#include "model/device/launch.h"
#include "model/profile/data_flow.h"
#include "model/profile/run_labels.h"
#include "model/profile/sampled_stalls.h"
#include "model/profile/sketch.h"
#include "model/profile/timeline.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace purlin {

// A hardware counter or a figure that the recording tool derived, by the name that tool gives it:
// "dram__bytes.sum", "kineto.est_achieved_occupancy_pct".
struct Counter {
  std::string name;
  double value = 0;     // mean over the launches it was read for
  double launches = 0;  // how many those were
};

// All launches of one kernel with one launch shape on one device.
struct KernelRow {
  std::string name;  // as recorded: mangled where the source was
  LaunchShape launch;
  std::uint32_t registers = 0;            // per thread
  std::uint32_t static_shared_bytes = 0;  // per block
  std::uint32_t local_bytes = 0;          // per thread: spills and stack
  int device = 0;                         // index into Environment::devices
  LaunchOrigin origin = LaunchOrigin::kStream;
  std::string op;                 // The program's name for it: "aten::mm"; "" where unknown.
  std::string shape;              // Problem shape (model/problem/problem.h), "" where unknown.
  std::string dtype;              // Of that problem: "bf16"; "" where unknown.
  std::string build;              // Environment::build of the profile it came from.
  std::vector<Counter> counters;  // Means per launch, where counters were read.
  Sketch duration;                // In ns; weights undo sampling.
  std::int64_t first_ns = 0, last_ns = 0;  // wall clock of the first start and last end seen
};

// memcpy and memset operations of one kind: "h2d", "d2h", "d2d", "h2d pageable", "migration h2d"
// (copy_kind.h), "h2h", "p2p", "memset", "fill", "map", "unmap", "svm".
struct CopyRow {
  std::string kind;
  int device = 0;
  double bytes = 0;
  Sketch duration;
};

// The host's waits for a device: "stream", "event", "context".
struct WaitRow {
  std::string kind;
  Sketch duration;
};

struct ProcessInfo {
  std::int64_t pid = 0, parent = 0;
  std::string command;
  std::string layer;                      // "cuda" or "opencl": the library that captured it
  std::int64_t start_ns = 0, end_ns = 0;  // wall clock
  bool complete = false;                  // its last seal was the one at exit
  int exit_seals = 0;                     // number of seals read
  int rank = -1;                          // in a distributed run, -1 = none
  int world_size = 0;                     // ranks of that run, 0 = not known
  // Runs or ranks that this one was drawn from (`--sample`); 0: it was not drawn, and not recorded.
  int stands_for = 1;
  // Its part of the timeline begins then, wall clock: earlier events were replaced by later ones.
  // 0: with the first event.
  std::int64_t timeline_from_ns = 0;
  bool timeline_requested = false;  // of windows that the user requested
  std::vector<Pace> paces;          // after recording had ended, in order of time
  RunLabels labels;                 // where it ran
};

// One reason for which the profile does not hold everything.
struct CoverageNote {
  std::string cause;   // stable identifier: "records_dropped", "stood_aside", "no_permission", …
  std::string text;    // for a person, with what to do
  double count = 0;    // launches, where that is known
  double seconds = 0;  // time, where that is known
};

// What a capture that records in windows saw of the time, over all its processes.
struct Sampling {
  double budget = 0;       // the share of the program's time that capture might take; 0: no windows
  double governed_ns = 0;  // the time that the recorded launches represent
  double recorded_ns = 0;  // of that, with recording on
  double windows = 0;
  double total_ns = 0;        // of the recorded kernels, weighted
  double total_variance = 0;  // its, ns², from how windows differ
  std::optional<bool> waits;  // whether the host's waits were recorded too, in every process
  // Of the windows that represent more than themselves: the number whose weight comes from the
  // count of launches, and the number whose weight comes from time only.
  double counted_windows = 0, timed_windows = 0;
  // The share of the program's time that CUPTI takes by being there, and the N of one run in N with
  // which capture holds the budget over all runs; of several processes the greatest. 0: not known.
  double presence = 0;
  int one_in = 0;
  // Of what capture was estimated to take, what the program cannot have felt, as it waited for a
  // device: no part of Coverage::overhead_ns.
  double hidden_ns = 0;
  // Of total_ns: by how much windows that are known by time alone may count wrongly in addition,
  // as on an overloaded machine.
  double unsure_ns = 0;

  // Relative, 95 %; 0 where it is not known.
  double total_error() const {
    const double spread = total_variance > 0 ? 1.96 * std::sqrt(total_variance) : 0;
    return total_ns > 0 ? (spread + unsure_ns) / total_ns : 0;
  }
  // Beyond it totals are no base for a conclusion.
  static constexpr double kGreatError = 0.25;
  bool total_unknown() const { return total_error() > kGreatError; }
};

struct Coverage {
  double launches_seen = 0;     // launches whose duration was recorded
  double launches_counted = 0;  // launches the program made, where counted; 0 = not counted
  double launches_lost = 0;
  double launches_sampled_out = 0;
  // What capture took from the program: measured (calls, callbacks) and, for CUDA's records,
  // estimated by their number, less what was hidden.
  double overhead_ns = 0;
  // A step while nothing was recorded, by the optimizer's steps or the pace of the host's calls;
  // the timeline of such a profile is of slower steps. 0: not known.
  double step_ns = 0;
  Sampling sampling;
  std::uint64_t bytes_written = 0;
  std::vector<CoverageNote> notes;
};

struct Profile {
  Environment environment;
  std::string command;  // what was run
  std::string source;   // what recorded it: "purlin", "kineto", "nsys", "ncu", "rocprof", "xla"
  std::int64_t wall_ns = 0;  // its wall time, 0 where unknown
  int exit_code = 0;
  RunLabels labels;  // where the command was started
  std::vector<ProcessInfo> processes;
  std::vector<KernelRow> kernels;
  std::vector<CopyRow> copies;
  std::vector<WaitRow> waits;
  Timeline timeline;     // empty where only sketches were kept
  DataFlow data_flow;    // of a step of the timeline, where it was recorded
  SampledStalls stalls;  // empty where program counters were not sampled
  Coverage coverage;
  bool partial = false;  // damaged or cut short: what is here was read up to the last seal
};

// Of the processes, each once; without any, of the place where the command was started.
std::vector<RunLabels> run_labels(const Profile& profile);

}  // namespace purlin
