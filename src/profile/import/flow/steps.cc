// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/steps.h"

#include "base/text.h"
#include "model/profile/data_flow.h"

#include <span>
#include <string_view>

namespace purlin::profile::flow {
namespace {

constexpr std::string_view kStepMark = "ProfilerStep", kOptimizerMark = "Optimizer.step#";
constexpr std::size_t kFewestRepeated = 3;  // periods

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

// The shortest period of a sequence (Knuth, Morris and Pratt's prefix function).
std::size_t period_of(std::span<const std::uint32_t> tokens) {
  std::vector<std::uint32_t> border(tokens.size(), 0);
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    std::uint32_t length = border[i - 1];
    while (length > 0 && tokens[i] != tokens[length]) length = border[length - 1];
    border[i] = length + (tokens[i] == tokens[length] ? 1 : 0);
  }
  return tokens.empty() ? 0 : tokens.size() - border.back();
}

FlowSteps find_repeated(const ExecutionTrace& trace) {
  const auto whole = static_cast<std::uint32_t>(trace.nodes.size());
  std::vector<std::uint32_t> nodes, tokens;  // of ops by name
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    if (!trace.nodes[i].is_op() || !OpSequence::counts(trace.name(trace.nodes[i]))) continue;
    nodes.push_back(i);
    tokens.push_back(trace.nodes[i].name);
  }
  FlowSteps out;
  // What comes before the steps, or is not in each of them, may take the first half.
  constexpr std::size_t kParts = 16;
  for (std::size_t part = 0; part <= kParts / 2; ++part) {
    const std::size_t first = tokens.size() * part / kParts;
    const std::size_t period = period_of(std::span(tokens).subspan(first));
    if (period == 0 || (tokens.size() - first) / period < kFewestRepeated) continue;
    // A step begins with an op that no other one calls.
    std::size_t begin = first;
    const auto is_inside = [&](std::size_t op) {
      const std::uint32_t parent = trace.nodes[nodes[op]].parent;
      return parent != nodes[op] && trace.nodes[parent].is_op();
    };
    while (begin < first + period && is_inside(begin)) ++begin;
    if (begin == first + period) return out;
    for (; begin + period <= tokens.size(); begin += period)
      out.steps.push_back(
          {nodes[begin], begin + period < tokens.size() ? nodes[begin + period] : whole});
    OpSequence sequence;
    for (std::size_t i = 0; i < period; ++i)
      sequence.add(OpSequence::hash_of(trace.name(trace.nodes[nodes[begin - period + i]])));
    out.sequence_ops = static_cast<std::uint32_t>(period);
    out.sequence_hash = sequence.hash(0, period);
    return out;
  }
  return out;
}

}  // namespace

FlowSteps find_steps(const ExecutionTrace& trace) {
  const auto whole = static_cast<std::uint32_t>(trace.nodes.size());
  FlowSteps out;
  std::vector<FlowStep>& steps = out.steps;
  const std::vector<std::uint32_t> step_marks = marks(trace, kStepMark);
  for (std::size_t i = 0; i < step_marks.size(); ++i) {
    const std::uint32_t limit = i + 1 < step_marks.size() ? step_marks[i + 1] : whole;
    steps.push_back({step_marks[i], end_of(trace, step_marks[i], limit)});
  }
  // The recording may have ended in the last one.
  if (steps.size() > 1 && ops_in(trace, steps.back()) < ops_in(trace, steps[steps.size() - 2]))
    steps.pop_back();
  if (!step_marks.empty()) return out;

  const std::vector<std::uint32_t> optimizer_marks = marks(trace, kOptimizerMark);
  if (optimizer_marks.empty()) return find_repeated(trace);
  std::vector<std::uint32_t> ends;
  for (std::size_t i = 0; i < optimizer_marks.size(); ++i)
    ends.push_back(end_of(trace, optimizer_marks[i],
                          i + 1 < optimizer_marks.size() ? optimizer_marks[i + 1] : whole));
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i - 1] < ends[i]) steps.push_back({ends[i - 1], ends[i]});
  return out;
}

}  // namespace purlin::profile::flow
