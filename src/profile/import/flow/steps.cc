// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/steps.h"

#include "base/text.h"

#include <string_view>

namespace purlin::profile::flow {
namespace {

constexpr std::string_view kStepMark = "ProfilerStep", kOptimizerMark = "Optimizer.step#";

std::vector<std::uint32_t> marks(const ExecutionTrace& trace, std::string_view prefix) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i)
    if (starts_with(trace.name(trace.nodes[i]), prefix)) found.push_back(i);
  return found;
}

// Of the first op on the mark's thread that is not inside the mark; at most `limit`.
std::uint32_t end_of(const ExecutionTrace& trace, std::uint32_t mark, std::uint32_t limit) {
  std::vector<char> inside(limit - mark, 0);
  inside[0] = 1;
  for (std::uint32_t i = mark + 1; i < limit; ++i) {
    const TraceNode& node = trace.nodes[i];
    if (node.parent >= mark && inside[node.parent - mark] != 0) {
      inside[i - mark] = 1;
    } else if (node.thread == trace.nodes[mark].thread && node.is_op()) {
      return i;
    }
  }
  return limit;
}

std::uint32_t ops_in(const ExecutionTrace& trace, const FlowStep& step) {
  std::uint32_t count = 0;
  for (std::uint32_t i = step.begin; i < step.end; ++i) count += trace.nodes[i].is_op() ? 1 : 0;
  return count;
}

}  // namespace

std::vector<FlowStep> find_steps(const ExecutionTrace& trace) {
  const auto whole = static_cast<std::uint32_t>(trace.nodes.size());
  std::vector<FlowStep> steps;
  const std::vector<std::uint32_t> step_marks = marks(trace, kStepMark);
  for (std::size_t i = 0; i < step_marks.size(); ++i) {
    const std::uint32_t limit = i + 1 < step_marks.size() ? step_marks[i + 1] : whole;
    steps.push_back({step_marks[i], end_of(trace, step_marks[i], limit)});
  }
  // The recording may have ended in the last one.
  if (steps.size() > 1 && ops_in(trace, steps.back()) < ops_in(trace, steps[steps.size() - 2]))
    steps.pop_back();
  if (!step_marks.empty()) return steps;

  const std::vector<std::uint32_t> optimizer_marks = marks(trace, kOptimizerMark);
  std::vector<std::uint32_t> ends;
  for (std::size_t i = 0; i < optimizer_marks.size(); ++i)
    ends.push_back(end_of(trace, optimizer_marks[i],
                          i + 1 < optimizer_marks.size() ? optimizer_marks[i + 1] : whole));
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i - 1] < ends[i]) steps.push_back({ends[i - 1], ends[i]});
  return steps;
}

}  // namespace purlin::profile::flow
