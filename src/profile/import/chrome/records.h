// SPDX-License-Identifier: Apache-2.0
// What the events of a Chrome trace say, before it is known which belong together: records of
// device work, calls, ops and ranges with the ids by which trace_link joins them, once all were
// read. Plain values. Not thread-safe.
#pragma once

#include "model/profile/profile.h"
#include "profile/import/chrome/raw_values.h"
#include "profile/import/id_table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

inline constexpr std::uint64_t kNoId = 0xFFFFFFFFFFFFFFFFull;

// What a figure of a kernel is where the trace does not say.
inline constexpr double kNoFigure = -1;

// A kernel with all fields of its event except the times. Launches with equal fields share one.
struct TracedKernel {
  LaunchShape launch = {{0, 0, 0}, {0, 0, 0}};  // not known, until the event gives it
  std::uint32_t name = 0, registers = 0, static_shared_bytes = 0, local_bytes = 0;
  std::uint32_t op = 0, shape = 0, dtype = 0;  // where the event names them: XLA, collectives
  std::uint32_t device = 0;                    // index into Records::devices
  double occupancy_pct = kNoFigure, blocks_per_sm = kNoFigure, warps_per_sm = kNoFigure;
};

struct DeviceRecord {
  Activity activity;  // .row: index into Records::specs for kernels
  std::uint64_t correlation = kNoId, external = kNoId;
};

struct CallRecord {
  Call call;
  std::uint32_t spec = kNone;  // AMD says the launch shape with the call
  std::uint64_t correlation = kNoId, external = kNoId;
};

struct WaitRecord {  // of a call with that id
  std::uint64_t correlation = kNoId;
  std::uint32_t awaits = kNone, holds = kNone;  // as Call's
};

struct OpRecord {
  Op op;
  std::uint64_t external = kNoId;
  bool has_dims = false;    // its inputs were recorded
  bool is_problem = false;  // and Op::shape is a problem shape
};

// Counters of a "cuda_profiler_range". Kineto invents their times.
struct CounterRecord {
  std::int64_t start_ns = 0;
  std::uint32_t name = 0;
  std::vector<std::pair<std::uint32_t, double>> values;  // name, value
};

// An event without a category that is known: its track says what it is, which may follow later.
struct LooseRecord {
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint64_t correlation = kNoId, bytes = 0;
  std::uint32_t name = 0, track = 0, spec = kNone, copy_name = 0;
  std::uint32_t op = 0, shape = 0, dtype = 0;
  bool is_step = false;
};

// A thread or stream, by the text of its pid and tid.
struct TraceTrack {
  std::string pid, tid;
  std::uint32_t pid_name = 0;     // index into names: the pid's text
  std::uint32_t process = kNone;  // index into processes, once it is seen to be of the host
  std::uint32_t thread = 0;       // as the timeline numbers it
  std::string thread_name;
};

struct Records {
  Names names;
  std::vector<TracedKernel> specs;
  std::vector<DeviceRecord> kernels, copies;
  std::vector<CallRecord> calls;
  std::vector<WaitRecord> waits;
  std::vector<OpRecord> ops;
  std::vector<Range> ranges;
  std::vector<CounterRecord> counters;
  std::vector<LooseRecord> loose;
  std::vector<TraceTrack> tracks;
  std::vector<std::int64_t> devices;  // their ids in the trace
  std::vector<CopyRow> copy_rows;
  std::vector<ProcessInfo> processes;
  // Launches beyond the bound of the timeline, by spec.
  std::vector<std::pair<std::uint32_t, Sketch>> overflow;

  std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;               // of all events kept
  std::int64_t window_begin_ns = INT64_MAX, window_end_ns = INT64_MIN;  // what the tool says it saw

  // What was left out, and why.
  std::uint64_t left_out_kernels = 0, left_out_copies = 0, left_out_other = 0, python_frames = 0,
                bad_times = 0, negative_durations = 0, copies_without_bytes = 0, not_understood = 0,
                untimed_work = 0, far_times = 0;
  // Of a device that is neither CUDA's nor HIP's, by the categories of its calls: "xpu", "mtia".
  std::string_view other_backend;
  bool host_is_amd = false, has_xla = false, has_kineto = false, ops_with_dims = false;
};

}  // namespace purlin::profile
