// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/replayer.h"

#include "analyze/replay/step_spread.h"
#include "analyze/timeline/host.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace purlin::analyze {
namespace {

constexpr double kMostUnlinked = 0.5;
constexpr double kStepTolerance = 0.05;  // of a step's time outside of the recording
constexpr double kMostRecorder = 8;      // times the usual overhead
constexpr int kHalvings = 14;
// The least that what remains after a change is uncertain by, and the most; of the saving itself.
constexpr double kLeastUncertain = 0.005, kMostUncertain = 0.05, kOfSaving = 0.1,
                 kRestFaster = 0.03;

constexpr std::size_t place_of(Scenario scenario) { return static_cast<std::size_t>(scenario); }

bool can_lose(const Change& change) {
  return std::any_of(change.edits.begin(), change.edits.end(), [](const Edit& one) {
    const auto* host = std::get_if<edit::ScaleHost>(&one);
    return std::holds_alternative<edit::LaunchAsGraph>(one) ||
           std::holds_alternative<edit::Overlap>(one) || (host != nullptr && host->factor.low > 1);
  });
}

// The profiler's step() runs between one of its marks and the next.
std::vector<Interval> between_marks(const Timeline& timeline, std::uint32_t process) {
  constexpr std::string_view kMark = "ProfilerStep#";
  constexpr std::int64_t kLongest = 200'000;  // ns; beyond, something else happens there
  std::vector<Interval> out;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  for (const Range& range : timeline.ranges) {
    if (range.process != process || range.kind != RangeKind::kStep ||
        range.name >= timeline.names.size() || !starts_with(timeline.names[range.name], kMark))
      continue;
    if (begin_of(range) > end && begin_of(range) - end <= kLongest)
      out.push_back({end, begin_of(range)});
    end = end_of(range);
  }
  return out;
}

// Loading input is work outside of what a recorder of ops and calls slows.
Change slower_loading(const Profile& profile, double factor) {
  Change out;
  const HostFacts host(profile);
  for (std::uint32_t process = 0; process < profile.processes.size(); ++process) {
    edit::ScaleHost edit{{factor, factor, factor}, {}, process};
    for (const NamedInterval& one : host.process(process).loading)
      edit.when.push_back(one.interval);
    if (!edit.when.empty()) out.edits.push_back(std::move(edit));
  }
  return out;
}

// Kernels that are gone no longer push the others' data out of the caches: what remains got faster
// by up to 3 % in measured pairs.
bool drops_launches(const Change& change) {
  return std::any_of(change.edits.begin(), change.edits.end(), [](const Edit& one) {
    return std::holds_alternative<edit::Remove>(one) || std::holds_alternative<edit::Replace>(one);
  });
}

// The recording tool's own work between the calls goes in every scenario.
Change without_profiler(const Profile& profile) {
  Change out;
  const HostFacts host(profile);
  for (std::uint32_t process = 0; process < profile.processes.size(); ++process) {
    edit::ScaleHost edit{{0, 0, 0}, {}, process};
    for (const NamedInterval& one : host.process(process).profiler)
      edit.when.push_back(one.interval);
    if (!edit.when.empty()) out.edits.push_back(std::move(edit));
    edit::ScaleHost marks{{0, 0, 0}, between_marks(profile.timeline, process), process};
    if (!marks.when.empty()) out.edits.push_back(std::move(marks));
  }
  return out;
}

}  // namespace

Replayer::Replayer(const Profile& profile, const TimelineAnalysis& timeline, double step_ns)
    : profile_(profile) {
  const ReplayWindow window = choose_window(profile, timeline);
  graph_ = build_graph(profile, window);
  if (graph_.empty() || graph_.work <= 0) return;
  steps_ = std::max(1.0, window.steps);
  applier_ = std::make_unique<Applier>(profile, graph_);
  measure_quality(window);
  usable_ = quality_.recorded_ns > 0 && graph_.unlinked <= kMostUnlinked * graph_.work;
  if (usable_) calibrate(step_ns);
  find_step_nodes(window);
}

void Replayer::find_step_nodes(const ReplayWindow& window) {
  step_nodes_.assign(window.step_ends.size(), 0);
  for (std::size_t i = 0; i < graph_.activities.size(); ++i) {
    const NodePair nodes = graph_.activities[i];
    if (nodes.begin == kNone) continue;
    const auto step = std::upper_bound(window.step_ends.begin(), window.step_ends.end(),
                                       begin_of(profile_.timeline.activities[i]));
    if (step == window.step_ends.end()) continue;
    std::uint32_t& last = step_nodes_[static_cast<std::size_t>(step - window.step_ends.begin())];
    if (last == 0 || graph_.recorded[nodes.end] > graph_.recorded[last]) last = nodes.end;
  }
  std::erase(step_nodes_, 0);
}

double Replayer::step_of(const Weights& weights, double least) const {
  return std::max(least, span_of(graph_, replay(graph_, weights))) / steps_;
}

void Replayer::measure_quality(const ReplayWindow& window) {
  ReplayQuality& q = quality_;
  q.steps = window.steps;
  q.long_steps = window.long_steps;
  q.step_spread = window.spread;
  q.recorded_ns = step_of(recorded_weights(graph_));
  if (q.recorded_ns > 0)
    q.constant_error = std::abs(step_of(constant_weights(graph_)) / q.recorded_ns - 1);
  q.residuals = graph_.held > 0 ? graph_.residuals / graph_.held : 0;
  q.unlinked = graph_.work > 0 ? graph_.unlinked / graph_.work : 0;
  q.waits = graph_.waits;
  q.unrecovered = graph_.unrecovered;
  q.edges = static_cast<double>(graph_.edges.size());
  q.events = static_cast<double>(graph_.recorded.size() / 2);
  const bool poor = q.constant_error > 0.03 || q.residuals > 0.1 || q.unlinked > 0.05 ||
                    q.unrecovered > 0.2 * q.waits + 1;
  const bool bad = q.constant_error > 0.1 || q.residuals > 0.3 || q.unlinked > 0.2;
  q.lower_confidence = bad ? 2 : poor ? 1 : 0;
}

// The usual range. Where a step's time is known, one factor gives that time.
void Replayer::calibrate(double step_ns) {
  HostInflation inflation = host_inflation(profile_);
  if (step_ns > 0) inflation = {2, 0, {}, inflation.ops};
  const Weights recorded =
      applier_->apply(without_profiler(profile_), Scenario::kMid, recorded_weights(graph_)).weights;
  const auto with = [&](double amount) {
    Weights out = recorded;
    take_off_recorder(graph_, inflation, amount, out);
    if (inflation.ops) return out;  // loading has few ops, so little was taken off
    const double factor = 1 + amount * (inflation.factor - 1);
    return applier_->apply(slower_loading(profile_, factor), Scenario::kMid, std::move(out))
        .weights;
  };
  const auto amount_for = [&](double target) {
    double low = 0, high = kMostRecorder;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (step_of(with(middle)) > target ? low : high) = middle;
    }
    return (low + high) / 2;
  };
  if (step_ns > 0)
    inflation.amount = {amount_for(step_ns * (1 + kStepTolerance)), amount_for(step_ns),
                        amount_for(step_ns * (1 - kStepTolerance))};
  for (const Scenario cost : kScenarios) base_[place_of(cost)] = with(at(inflation.amount, cost));
  before_ = {step_of(base_[0]), step_of(base_[1]), step_of(base_[2])};
  quality_.baseline_ns = {before_.high, before_.mid, before_.low};
}

// Low: the worst of all recorder costs. What remains after the change is uncertain too, by as much
// as constant delays miss the recording.
Saving Replayer::saving(const Change& change) const {
  const auto after = [&](const Change& of, Scenario scenario, Scenario cost) {
    const Applied applied = applier_->apply(of, scenario, base_[place_of(cost)]);
    return step_of(applied.weights, applied.least_span_ns);
  };
  Saving out;
  if (before_.low <= 0 || before_.mid <= 0 || before_.high <= 0) return out;
  const double mid = before_.mid - after(change, Scenario::kMid, Scenario::kMid);
  out.ns = {mid, mid, mid};
  out.share = out.ns * (1 / before_.mid);
  double most = mid, most_share = out.share.mid;
  const bool loses = can_lose(change);
  const double remains = std::clamp(quality_.constant_error, kLeastUncertain, kMostUncertain);
  const Change limit = at_its_limit(change);
  for (const Scenario cost : kScenarios) {
    const double before = at(before_, cost);
    const auto add = [&](double left, double sign, double Interval3::*end) {
      double saved = before - left;
      saved += sign * (remains * std::max(0.0, left) + kOfSaving * std::abs(saved));
      if (!loses && before >= left) saved = std::max(0.0, saved);
      const bool further = sign * saved > sign * out.ns.*end;
      if (further) out.ns.*end = saved;
      if (sign * saved / before > sign * out.share.*end) out.share.*end = saved / before;
    };
    add(after(change, Scenario::kLow, cost), -1, &Interval3::low);
    add(after(change, Scenario::kHigh, cost), 1, &Interval3::high);
    const double left = after(limit, Scenario::kMid, cost);
    double limit_ns = before - left;
    if (drops_launches(change)) limit_ns += std::min(kRestFaster * left, kOfSaving * limit_ns);
    most = std::max(most, limit_ns);
    most_share = std::max(most_share, limit_ns / before);
  }
  const Applied applied = applier_->apply(change, Scenario::kMid, base_[place_of(Scenario::kMid)]);
  const StepSpread steps =
      spread_over_steps(step_nodes_, replay(graph_, base_[place_of(Scenario::kMid)]),
                        replay(graph_, applied.weights));
  const auto lower = [&](double end, double by) {
    return loses ? end - by : std::max(std::min(end, 0.0), end - by);
  };
  out.share.low = lower(out.share.low, steps.below);
  out.ns.low = lower(out.ns.low, steps.below * before_.mid);
  out.share.high += steps.above;
  out.ns.high += steps.above * before_.mid;
  out.ns = bounded(out.ns, most);
  out.share = bounded(out.share, std::min(1.0, most_share));
  return out;
}

Replayed Replayer::before() const {
  Replayed out;
  out.applied.weights = base_[place_of(Scenario::kMid)];
  out.times = replay(graph_, out.applied.weights);
  out.step_ns = before_.mid;
  return out;
}

Replayed Replayer::after(const Change& change) const {
  Replayed out;
  out.applied = applier_->apply(change, Scenario::kMid, base_[place_of(Scenario::kMid)]);
  out.times = replay(graph_, out.applied.weights);
  out.step_ns = std::max(out.applied.least_span_ns, span_of(graph_, out.times)) / steps_;
  return out;
}

}  // namespace purlin::analyze
