// SPDX-License-Identifier: Apache-2.0
// Report: a profile ranked, one row per kernel, shape, op or class, heaviest first. text.h renders
// it for people, to_json for programs (docs/formats/report.md). Pure functions over values.
#pragma once

#include "analyze/kernel_name/kernel_name.h"
#include "analyze/report/dtype_guess.h"
#include "analyze/roofline/roofline.h"
#include "analyze/roofline/target.h"
#include "analyze/stalls/sites.h"
#include "analyze/timeline/timeline.h"
#include "base/json/json.h"
#include "base/status.h"
#include "model/profile/profile.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

// What makes a row, on one GPU model and of one build.
enum class GroupBy {
  kKernel,  // a kernel; launch shapes, problem shapes and devices of one model merged
  kShape,   // a kernel, its op, problem shape and element type

  kLaunch,   // the same and its launch shape
  kOp,       // an op with all kernels it launched; one row for kernels without a known op
  kOpClass,  // an op class
};
std::string_view to_text(GroupBy group_by);  // "kernel", "op_class"
Result<GroupBy> group_by_from_text(std::string_view text);

struct KernelStat {
  KernelName name;
  std::string label;   // name.brief; namesakes are told apart
  std::string device;  // model, "NVIDIA H200"; "" where unknown
  std::string build;   // the user's label of the code it ran in
  // As the program gave it; "" where unknown or where rows with others merged.
  std::string op, shape, dtype;
  DtypeGuess dtype_guess;  // where neither the program nor the name says it
  LaunchShape launch;      // the one that took most time
  int launch_shapes = 0;   // merged here
  int kernels = 1;         // merged here; name is then that of the op or the class
  // Of that launch shape. Without registers, they were not recorded: OpenCL reports none.
  std::uint32_t registers = 0, static_shared_bytes = 0, local_bytes = 0;
  double share = 0;  // of the time of all kernels
  Sketch duration;
  std::int64_t first_ns = 0, last_ns = 0;  // wall clock of the first start and last end
  std::vector<Counter> counters;           // means over the launches with this counter, by name

  StallSites sampled;  // of the kernel with all launch shapes
  Roof roof;           // of the row as a whole; unknown until roofs are added

  bool has_guess() const { return dtype.empty() && !dtype_guess.dtype.empty(); }
};

// How program counters were sampled, and what of the samples is in no row.
struct StallSampling {
  double windows = 0, sampled_ns = 0, samples = 0;
  std::uint64_t least_period = 0, most_period = 0;  // cycles between samples of an SM; 0 = unknown
  double dropped = 0, untold = 0;
  std::vector<std::pair<std::string, double>> elsewhere;  // functions without a row, most first
};

struct CopyStat {
  std::string kind;
  std::string device;
  double bytes = 0;
  // Read and written in the device's memory: twice the bytes of d2d. 0 where a link limits the
  // copy.
  double traffic_bytes = 0;
  double utilization = 0;  // of the device's bandwidth; 0 where not known, or in the L2 cache
  Sketch duration;
};

// What a program watches for: a threshold that was passed.
struct Alert {
  std::string id;        // "data_starvation"
  std::string severity;  // "critical", "warning"
  double value = 0, threshold = 0;
  std::string kernel, kernel_id;  // "" where it is about none
  std::string text;
};

// An intervention in short, as `purlin advise` has it in full.
struct BriefAdvice {
  std::string id, title;
  std::vector<std::string> kernels;
  double low = 0, mid = 0, high = 0;  // saved, of the end-to-end time
};

struct Report {
  std::string profile_id;          // analyze/report/identity.h
  std::vector<std::string> files;  // it was read from; "" where unknown
  std::string verdict;             // of the advice; "" where none was asked for
  std::vector<BriefAdvice> advice;
  std::vector<Alert> alerts;
  TargetFractions targets;
  GroupBy group_by = GroupBy::kKernel;
  Environment environment;
  std::vector<RunLabels> runs;  // where it ran
  std::string command;
  std::string source;  // what recorded it: Profile::source
  std::int64_t wall_ns = 0;
  int exit_code = 0;
  std::vector<KernelStat> kernels;  // by total time, then by name, unless selected otherwise
  std::string filter;               // what the rows were selected by, "" = all rows are here
  std::size_t rows_left_out = 0;    // by that filter; shares are still of all kernels
  std::vector<CopyStat> copies;     // by total time
  StallSampling stall_sampling;
  std::vector<WaitRow> waits;  // of the host, by total time
  double kernel_ns = 0, launches = 0;
  double copy_ns = 0;
  std::vector<Ceilings> ceilings;  // of each GPU model, where known
  TimelineAnalysis timeline;       // no devices where the profile kept no timeline
  std::vector<ProcessInfo> processes;
  Coverage coverage;
  bool partial = false;
};

// `measured` ceilings, by the device's model, take precedence over the table's.
Report build_report(const Profile& profile, GroupBy group_by,
                    const std::vector<Ceilings>& measured = {});
// With a timeline analysed before (select_phase in analyze/phase/slice.h).
Report build_report(const Profile& profile, TimelineAnalysis timeline, GroupBy group_by,
                    const std::vector<Ceilings>& measured = {});
// The same without the timeline's analysis. `row_of`, where given, becomes for each row of
// Profile::kernels the index of its row in Report::kernels.
Report build_rows(const Profile& profile, GroupBy group_by,
                  const std::vector<Ceilings>& measured = {},
                  std::vector<std::size_t>* row_of = nullptr);
// Whether the total of a sampled capture needs more time than its devices had. One in-order stream
// cannot: kernels overlapped, or windows count too much.
bool beyond_wall_time(const Report& report);
// At most `max_rows` kernels; everything else is about all of them.
Json to_json(const Report& report, std::size_t max_rows = SIZE_MAX);
std::string to_csv(const Report& report);

}  // namespace purlin::analyze
