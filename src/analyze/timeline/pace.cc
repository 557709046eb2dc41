// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/pace.h"

#include "analyze/timeline/intervals.h"
#include "analyze/timeline/median.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr double kLeastOfRecorded = 0.5, kMostOfRecorded = 1.1;  // of the recorded step
constexpr double kFewestCalls = 20;                              // of a count
constexpr double kManyCalls = 4;     // times the median of a round's calls
constexpr double kNeighbours = 1.5;  // of the median distance of two steps

bool is_counted(const Call& call) {
  return call.kind == CallKind::kSync || call.kind == CallKind::kCopy ||
         call.kind == CallKind::kGraphLaunch;
}

// Steps that follow one another, from begin to begin.
std::vector<Interval> rounds_of(const std::vector<StepTime>& steps) {
  std::vector<double> distances;
  for (std::size_t i = 1; i < steps.size(); ++i)
    distances.push_back(static_cast<double>(steps[i].start_ns - steps[i - 1].start_ns));
  std::vector<Interval> rounds;
  if (distances.empty()) return rounds;
  const double longest = kNeighbours * median_of(distances);
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (distances[i - 1] > 0 && distances[i - 1] <= longest)
      rounds.push_back({steps[i - 1].start_ns, steps[i].start_ns});
  return rounds;
}

// The mean of the usual rounds: the first ones may hold a compiler's calls as well.
double calls_per_round(const std::vector<Interval>& rounds, const Timeline& timeline,
                       std::uint32_t process) {
  std::vector<double> calls(rounds.size());
  std::size_t round = 0;
  for (const Call& call : timeline.calls) {
    if (call.process != process || !is_counted(call)) continue;
    while (round < rounds.size() && rounds[round].end <= call.start_ns) ++round;
    if (round == rounds.size()) break;
    if (rounds[round].begin <= call.start_ns) calls[round] += 1;
  }
  const double usual = median_of(calls);
  double sum = 0, count = 0;
  for (const double of_round : calls) {
    if (usual > 0 && of_round > kManyCalls * usual) continue;
    sum += of_round;
    count += 1;
  }
  return sum / count;
}

// Of the process that launches the steps' work.
std::optional<PacedStep> paced(const Profile& profile, std::uint32_t process,
                               const std::vector<Interval>& rounds) {
  PacedStep out;
  const auto count = static_cast<double>(rounds.size());
  double total = 0;
  for (const Interval& round : rounds) total += static_cast<double>(round.length());
  out.recorded_ns = total / count;
  out.calls = calls_per_round(rounds, profile.timeline, process);
  if (out.calls <= 0) return std::nullopt;
  std::vector<double> steps;
  double counted_ns = 0, counted_calls = 0;
  for (const Pace& pace : profile.processes[process].paces) {
    if (pace.calls < kFewestCalls) continue;
    const double step = pace.ns * out.calls / pace.calls;
    if (step < kLeastOfRecorded * out.recorded_ns || step > kMostOfRecorded * out.recorded_ns)
      continue;
    steps.push_back(step);
    counted_ns += pace.ns;
    counted_calls += pace.calls;
  }
  if (steps.empty()) return std::nullopt;
  out.counts = steps.size();
  out.ns = counted_ns * out.calls / counted_calls;
  out.seconds = counted_ns * 1e-9;
  out.low_ns = *std::min_element(steps.begin(), steps.end());
  out.high_ns = *std::max_element(steps.begin(), steps.end());
  return out;
}

bool possible(double step_ns, const TimelineAnalysis& analysis) {
  const auto recorded = static_cast<double>(analysis.mean_step.duration_ns);
  return step_ns >= kLeastOfRecorded * recorded && step_ns <= kMostOfRecorded * recorded;
}

}  // namespace

std::optional<PacedStep> step_by_pace(const Profile& profile, const TimelineAnalysis& analysis) {
  const std::vector<Interval> rounds = rounds_of(analysis.steps);
  if (rounds.empty()) return std::nullopt;
  std::optional<PacedStep> slowest;  // ranks wait for one another
  for (std::uint32_t process = 0; process < profile.processes.size(); ++process)
    if (const std::optional<PacedStep> one = paced(profile, process, rounds);
        one && (!slowest || one->ns > slowest->ns))
      slowest = one;
  return slowest;
}

void apply_pace(Profile& profile, const TimelineAnalysis& analysis) {
  double& known = profile.coverage.step_ns;
  if (known > 0 && analysis.steps_from == kGuessedSteps && !possible(known, analysis)) known = 0;
  if (known > 0) return;
  const std::optional<PacedStep> step = step_by_pace(profile, analysis);
  if (!step) return;
  known = step->ns;
  const std::string range = step->counts < 2 ? std::string()
                                             : fmt::format(" ({} to {})", format_ns(step->low_ns),
                                                           format_ns(step->high_ns));
  profile.coverage.notes.push_back(
      {"step_pace",
       fmt::format("a step took {}{} while nothing was recorded, and {} while every launch was. "
                   "This is by {} of {:.1f} s in all, of host waits, memcpy calls and graph "
                   "launches, {:.3g} of which are a step",
                   format_ns(step->ns), range, format_ns(step->recorded_ns),
                   counted(static_cast<std::int64_t>(step->counts), "count"), step->seconds,
                   step->calls),
       0, step->seconds});
}

}  // namespace purlin::analyze
