// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/flow.h"

#include "base/files.h"
#include "base/text.h"
#include "profile/import/flow/facts.h"
#include "profile/import/flow/trace_reader.h"
#include "profile/import/input.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace purlin::profile {
namespace {

constexpr const char* kUnknown = "data_flow_unknown";

Result<DataFlow> flow_of(Input& input) {
  PURLIN_ASSIGN(const flow::ExecutionTrace trace, flow::read_execution_trace(input));
  flow::FoundFlow found = flow::find_data_flow(trace);
  if (found.hidden)
    return error(Code::kUnavailable,
                 "ops read memory that no recorded op had written: kernels that PyTorch does not "
                 "launch work in the step, and its data flow is not known");
  if (!found.flow.recorded())
    return error(Code::kInvalid,
                 "an execution trace without two whole steps; record three, each in a range "
                 "ProfilerStep#N or with an optimizer's step, or three that repeat the same ops");
  return std::move(found.flow);
}

// Ops that execution traces have: those with a namespace, collectives. PyTorch writes no node of a
// compiled kernel (triton_…) while no profiler is on, so what such a kernel reads is not known.
bool is_recorded_op(std::string_view name) {
  constexpr std::array<std::string_view, 2> kOthers = {"nccl:", "record_param_comms"};
  return name.find("::") != std::string_view::npos ||
         std::any_of(kOthers.begin(), kOthers.end(),
                     [&](std::string_view other) { return starts_with(name, other); });
}

}  // namespace

Result<DataFlow> read_data_flow(const std::string& path) {
  if (!file_exists(path)) return error(Code::kNotFound, "{}: no such file", path);
  PURLIN_ASSIGN(Input input, Input::open(path));
  Result<DataFlow> found = flow_of(input);
  // Errors of reading name the file themselves.
  if (!found.is_ok() && found.status().message().find(path) == std::string::npos)
    return found.status().with_context(path);
  return found;
}

Result<DataFlow> data_flow_of(std::string_view bytes) {
  Input input = Input::from_bytes(bytes);
  return flow_of(input);
}

bool looks_like_execution_trace(std::string_view prefix) {
  constexpr std::size_t kNear = 1024;
  prefix = prefix.substr(0, kNear);
  const std::size_t schema = prefix.find("\"schema\"");
  return schema != std::string_view::npos &&
         prefix.find("-chakra.", schema) != std::string_view::npos && prefix.find('{') < schema &&
         prefix.find("\"traceEvents\"") == std::string_view::npos;
}

Result<Profile> import_execution_trace(const std::string& path) {
  Profile profile;
  Result<DataFlow> found = read_data_flow(path);
  if (found.is_ok()) {
    profile.data_flow = std::move(found).value();
  } else if (found.status().code() == Code::kUnavailable) {
    profile.coverage.notes.push_back({kUnknown, found.status().message(), 0, 0});
  } else {
    return found.status();
  }
  return profile;
}

void judge_by_timeline(Profile& profile) {
  if (!profile.data_flow.recorded()) return;
  const Timeline& timeline = profile.timeline;
  using Step = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;  // process, start, end
  std::vector<Step> steps;
  for (const Range& range : timeline.ranges)
    if (range.kind == RangeKind::kStep)
      steps.emplace_back(range.process, range.start_ns, range.start_ns + range.duration_ns);
  std::sort(steps.begin(), steps.end());
  const auto in_step = [&](std::int64_t time, std::uint32_t process) {
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), Step(process, time, std::numeric_limits<std::int64_t>::max()));
    if (after == steps.begin()) return false;
    const auto& [of, begin, end] = *(after - 1);
    return of == process && begin <= time && time < end;
  };
  // What was launched before the recording began has no call, and may run during the first steps.
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> first(profile.processes.size(), kNever);
  for (const Activity& activity : timeline.activities)
    if (activity.call < timeline.calls.size() && activity.process < first.size())
      first[activity.process] = std::min(first[activity.process], activity.start_ns);
  double hidden = 0;
  for (const Activity& activity : timeline.activities) {
    if (activity.kind != ActivityKind::kKernel) continue;
    const bool called = activity.call < timeline.calls.size();
    if (!called && activity.process < first.size() && first[activity.process] < kNever &&
        activity.start_ns < first[activity.process])
      continue;
    const std::uint32_t op = called ? timeline.calls[activity.call].op : kNone;
    if (op < timeline.ops.size() && timeline.ops[op].name < timeline.names.size() &&
        is_recorded_op(timeline.names[timeline.ops[op].name]))
      continue;
    const std::int64_t time = called ? timeline.calls[activity.call].start_ns : activity.start_ns;
    hidden += profile.data_flow.sequence_ops > 0 || in_step(time, activity.process) ? 1 : 0;
  }
  if (hidden == 0) return;
  profile.data_flow = {};
  profile.coverage.notes.push_back(
      {kUnknown,
       "launches in a step are not of PyTorch's ops: what they read and write is in no execution "
       "trace, and the data flow of the step is not known",
       hidden, 0});
}

}  // namespace purlin::profile
