// SPDX-License-Identifier: Apache-2.0
// Timeline: what happened when, on the devices and on the host, as vectors of small records that
// point at one another by index. Filled by importers and by captures that kept launches; read by
// analyze/timeline. Times are ns on one clock per profile (wall clock where the source had it).
//
// Order: activities by (device, start), calls, ops and ranges by start; sort_timeline establishes
// it and mends the indices. Texts are interned in names, names[0] is "". A plain value, no
// invariants beyond indices in range; nothing here is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace purlin {

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;

// How a launch came to the device: by a call of the program's into a stream, or as a node of a
// graph that was launched whole.
enum class LaunchOrigin : std::uint8_t { kStream, kGraph };

enum class ActivityKind : std::uint8_t { kKernel, kCopy, kSet };

struct Activity {  // work of a device
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint64_t bytes = 0;     // Of memcpy and memset.
  std::uint32_t row = 0;       // Index into Profile::kernels; ::copies for memcpy and memset.
  std::uint32_t process = 0;   // Index into Profile::processes.
  std::uint32_t stream = 0;    // The driver's number.
  std::uint32_t call = kNone;  // Index into calls: the call that launched it, where known.
  std::uint32_t graph = 0;     // CUDA graph that it was a node of, 0 = none.
  std::uint16_t device = 0;    // Index into Environment::devices.
  ActivityKind kind = ActivityKind::kKernel;
};

enum class CallKind : std::uint8_t {
  kLaunch,       // launches one kernel; of duration 0 where only its time is known (kQueuedCall)
  kGraphLaunch,  // launches a graph
  kCopy,         // memcpy or memset, asynchronous or not
  kSync,         // waits for a stream, event, device or context
  kAllocation,   // malloc, free and their pools
  kOther,
};

// The name of a call that the recorder did not see, where the work says when it was enqueued.
inline constexpr const char* kQueuedCall = "(launch)";

struct Call {  // of the runtime's or driver's API, on the host
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint32_t name = 0;     // index into names
  std::uint32_t process = 0;  // index into Profile::processes
  std::uint32_t thread = 0;   // as the system numbers it
  std::uint32_t op = kNone;   // index into ops: the innermost around it
  CallKind kind = CallKind::kOther;
  // Where the recorder says it (Kineto's cuda_sync); files do not keep it. Streams as Activity's:
  std::uint32_t awaits = kNone;  // whose work it waits for, or makes another stream wait for
  std::uint32_t holds = kNone;   // that it makes wait (cudaStreamWaitEvent)
};

// One number for a host thread of a profile: two processes may have threads of one number.
constexpr std::uint64_t thread_key(std::uint32_t process, std::uint32_t thread) {
  return std::uint64_t{process} << 32 | thread;
}

// Calls of the host that wait, copy or launch graphs, in a time in which nothing was recorded.
struct Pace {
  double calls = 0, ns = 0;
};

struct Op {  // what a framework ran on the host: "aten::mm", an XLA op
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint32_t name = 0;
  std::uint32_t process = 0, thread = 0;
  std::uint32_t parent = kNone;  // index into ops
  std::uint32_t shape = 0;       // index into names: problem shape or the inputs' dimensions
  std::uint32_t dtype = 0;       // index into names
};

enum class RangeKind : std::uint8_t {
  kStep,           // one iteration: "ProfilerStep#7"
  kDataLoader,     // the program waits for its input
  kCommunication,  // as the framework marks it on the host
  kUser,           // any other annotation, NVTX range
  kProfiler,       // the recording tool's own overhead
};

struct Range {  // of a host thread
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint32_t name = 0;
  std::uint32_t process = 0, thread = 0;  // kNone: it may end on another thread than it began on
  RangeKind kind = RangeKind::kUser;
};

struct Timeline {
  std::vector<Activity> activities;
  std::vector<Call> calls;
  std::vector<Op> ops;
  std::vector<Range> ranges;
  std::vector<std::string> names = {""};
  std::int64_t begin_ns = 0,
               end_ns = 0;  // what the recording covered; 0, 0 = its first and last event
  // Activities beyond a memory bound are in the rows' sketches but not here.
  std::uint64_t left_out = 0;

  bool empty() const { return activities.empty(); }
};

std::size_t event_count(const Timeline& timeline);  // of all four kinds
void sort_timeline(Timeline& timeline);
// Removes what began before that time in a process; `from_ns` by process, 0 = nothing. A call
// whose work stays does so too.
void drop_before(Timeline& timeline, const std::vector<std::int64_t>& from_ns);

}  // namespace purlin
