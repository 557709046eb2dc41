// SPDX-License-Identifier: Apache-2.0
// Timeline analysis: how busy each device was, why it was idle, what overlapped, step by step.
// Every nanosecond of a device's span is in exactly one category; categories add up to the span.
// Pure functions; the profile's timeline must be sorted (sort_timeline). Definitions and their
// sources: docs/concepts/timeline.md.
#pragma once

#include "base/json/json.h"
#include "model/profile/profile.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {

enum class IdleCause {
  kHostLaunch,       // the host had not launched the next work yet, and was busy on its own
  kDataStarvation,   // …because it waited for input
  kSynchronization,  // …because it had waited for the device

  kKernelToKernel,  // the next work was already queued: the device's own turn-around
  kProfiler,        // the recording tool was at work
  kOther,           // no evidence for any of these
};
inline constexpr std::size_t kIdleCauses = 6;
std::string_view to_text(IdleCause cause);  // "host_launch"

// A program starts up, works step after step, and ends. Where the steps are known, the analysis is
// of the steady state; start-up would dominate every figure of a short run.
enum class PhaseKind { kStartUp, kSteadyState, kEnd };
std::string_view to_text(PhaseKind kind);  // "start-up", "steady state", "end"
enum class PhaseChoice { kSteadyState, kStartUp, kAll };
std::string_view to_text(PhaseChoice choice);  // "steady", "startup", "all"

struct HostCalls {  // all calls of one name, nested ones left out
  std::string name;
  double count = 0;
  std::int64_t total_ns = 0;
};
struct Phase {  // of one device
  PhaseKind kind = PhaseKind::kSteadyState;
  int device = 0;
  std::int64_t begin_ns = 0, span_ns = 0;
  std::int64_t busy_ns = 0;      // at least one activity under way
  double kernels = 0;            // launches that begin in it
  std::int64_t kernel_ns = 0;    // of these, each in full
  int steps = 0;                 // 0 outside of the steady state, except warm-up steps
  std::vector<HostCalls> calls;  // of its process, by total, at most three
};

struct DeviceTime {
  int device = 0;              // index into Environment::devices
  std::int64_t begin_ns = 0;   // of the analysed window: the steady state, or the device's work
  std::int64_t window_ns = 0;  // its length
  std::int64_t span_ns = 0;    // compute + exposed communication + exposed copy + idle
  // Gaps that are in the window and not in the span: much longer than the others, and rare.
  std::int64_t one_off_ns = 0;
  int one_off_gaps = 0;
  // Rare work between two steps, in none of them: an evaluation, a checkpoint. Neither in the span:
  // window_ns = span_ns + one_off_ns + other_work_ns.
  std::int64_t other_work_ns = 0;
  int other_works = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;  // the window without it: begin, end
  std::int64_t busy_ns = 0;  // at least one activity under way (union over streams)

  std::int64_t kernel_ns = 0;         // at least one kernel of any kind (union)
  std::int64_t compute_ns = 0;        // at least one kernel that is no communication (union)
  std::int64_t communication_ns = 0;  // at least one communication kernel (union)
  std::int64_t copy_ns = 0;           // at least one copy or set (union)
  // Of the unions above: time in which both were under way.
  std::int64_t compute_and_copy_ns = 0, compute_and_communication_ns = 0;
  std::int64_t exposed_communication_ns = 0;  // communication, and no compute
  std::int64_t exposed_copy_ns = 0;           // copy or set, and no kernel at all
  std::array<std::int64_t, kIdleCauses> idle_ns = {};
  int streams = 0;
  double activities = 0;  // that touch the span
  // All its work, inside and outside of the span: from the first begin to the last end.
  std::int64_t work_begin_ns = 0, work_span_ns = 0, work_busy_ns = 0;
  double kernel_sum_ns = 0;  // of all kernels, each in full
  std::int64_t idle_total_ns() const { return span_ns - busy_ns; }
};

// Where a step's wall time went, on one device: the categories of PyTorch's own step breakdown.
// They add up to the step: each nanosecond counts for the first category that covers it.
struct StepTime {
  std::string name;
  std::int64_t start_ns = 0, duration_ns = 0;
  std::int64_t kernel_ns = 0, communication_ns = 0, copy_ns = 0, set_ns = 0;
  std::int64_t runtime_ns = 0, data_loader_ns = 0, cpu_ns = 0, other_ns = 0;
};

struct Gap {  // one idle interval of a device, the longest are kept
  int device = 0;
  std::int64_t start_ns = 0, duration_ns = 0;
  IdleCause cause = IdleCause::kOther;
  std::string before, after;  // names of the work around it
  std::string evidence;       // "cudaStreamSynchronize 1.2 ms"
  bool one_off = false;       // in no category: DeviceTime::one_off_ns
};

// Every idle interval of a device's window, in short: what a timeline draws.
struct IdleInterval {
  int device = 0;
  IdleCause cause = IdleCause::kOther;  // of the largest part
  float share = 0;                      // that part, of the interval: how clear the cause is
  std::int64_t start_ns = 0, duration_ns = 0;
};

struct QueueStats {  // of one stream
  int device = 0;
  std::uint32_t process = 0, stream = 0;
  double mean_depth = 0;  // launched and not yet begun, time-weighted
  int max_depth = 0;
  std::int64_t full_ns = 0;  // time at the depth where launches block (1,022 and more)
};

struct LaunchStats {
  double launches = 0;                            // with a known call
  double call_p50_ns = 0;                         // the launching call's own time
  double latency_p50_ns = 0, latency_p95_ns = 0;  // end of call -> begin of kernel, 0 where earlier
  double tiny = 0, tiny_ns = 0;  // kernels shorter than their launching call: count and time
};

struct RepeatedSequence {            // a candidate for a CUDA graph
  std::vector<std::string> kernels;  // one round, names in order (at most the first 64)
  int length = 0;                    // kernels, memcpys and memsets in one round
  int copies = 0;                    // of length: memcpys and memsets
  int repeats = 0;
  std::int64_t total_ns = 0, busy_ns = 0;  // span and busy time of all rounds
  std::string hindrance;                   // the obstacle to a capture; "" without one
  // Where only copies to the host are in the way: launches of a round between two of them.
  int between_copies = 0;
  int device = 0;
  std::uint32_t process = 0, stream = 0;
  // Where its rounds are: from the begin of a first to the begin of a last launch.
  std::vector<std::pair<std::int64_t, std::int64_t>> stretches;
};

std::string round_of(const RepeatedSequence& sequence);  // "5 kernels and 1 memcpy or memset"

struct RankStats {  // of one device among those that take part in the same collectives
  int device = 0;
  int rank = -1;           // as the process says, -1 = not
  double collectives = 0;  // compared
  double last = 0;         // of these: how often it was the last to begin
  double late_ns = 0;      // its begin after the first begin, mean
  double clock_offset_ns =
      0;  // its clock against the first device's, as the collectives' ends tell
};

struct TimelineAnalysis {
  std::vector<DeviceTime> devices;
  std::vector<StepTime> steps;  // of the first device that worked in them
  StepTime mean_step;           // over the steady steps; name says how many
  // "ranges", "user ranges", "marks" (from one range to the next), "launch sequence", "" = no steps
  std::string steps_from;
  // Of steps from the launch sequence, which is a guess: launches of one step, and the share of the
  // kernel time that repeats with the steps.
  double guessed_launches = 0, guessed_share = 0;

  PhaseChoice phase = PhaseChoice::kSteadyState;  // what the figures are of
  std::vector<Phase> phases;                      // in order, by device; empty without steps
  // Whether the profile's rows were cut to the phase (analyze/phase/slice.h), and what that left
  // out.
  bool rows_of_phase = false;
  double launches_outside = 0, kernel_ns_outside = 0;

  std::vector<StepTime> device_steps;  // mean step of each device, in the order of devices
  std::vector<Gap> gaps;               // longest first, at most 100
  std::vector<IdleInterval> idle;      // all of them, by device, in order of time
  std::vector<QueueStats> queues;
  LaunchStats launches;
  std::vector<RepeatedSequence> sequences;  // by total_ns
  double syncs = 0, sync_idle_ns = 0;       // synchronising calls, and idle time they explain
  std::vector<RankStats> ranks;             // where several devices ran the same collectives
  // Buckets of equal length over the span, share of each that was compute, communication, copy,
  // idle on each device: what the overview draws.
  struct Overview {
    int device = 0;
    std::int64_t begin_ns = 0, bucket_ns = 0;
    std::vector<std::array<float, 4>> shares;
  };
  std::vector<Overview> overview;
  std::vector<std::string> limits;  // what the profile lacks, and what is therefore not known
};

// steps_from of steps that are a guess.
inline constexpr std::string_view kGuessedSteps = "launch sequence";

TimelineAnalysis analyze_timeline(const Profile& profile,
                                  PhaseChoice choice = PhaseChoice::kSteadyState);
Json to_json(const TimelineAnalysis& analysis);  // docs/formats/report.md, "timeline"

}  // namespace purlin::analyze
