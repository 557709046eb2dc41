// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/steps.h"

#include "analyze/timeline/median.h"
#include "analyze/timeline/rounds.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

std::string_view name_at(const Timeline& timeline, std::uint32_t index) {
  return index < timeline.names.size() ? std::string_view(timeline.names[index]) : "";
}

// Clocks of the source round: neighbours that overlap by so much of a step are apart.
constexpr std::int64_t kOverlapDivisor = 100;
constexpr double kWarmUpFactor = 1.5;
constexpr std::size_t kMinStepsWithWarmUp = 4;
constexpr double kAsLong = 0.8;           // of the shortest leading step
constexpr std::ptrdiff_t kComeAgain = 2;  // later steps as long as the leading ones

// Ranges in order of start, those inside of or overlapping with the one before left out.
class StepList {
 public:
  void add(std::string_view name, Interval interval) {
    if (!steps.empty()) {
      const std::int64_t overlap = steps.back().window.end - interval.begin;
      if (overlap > interval.length() / kOverlapDivisor) return;
      if (overlap > 0) interval.begin += overlap;
    }
    steps.push_back({std::string(name), interval});
  }
  std::vector<Step> steps;
};

std::vector<Step> marked_steps(const Timeline& timeline, std::uint32_t process) {
  StepList list;
  for (const Range& range : timeline.ranges)
    if (range.kind == RangeKind::kStep && range.process == process)
      list.add(name_at(timeline, range.name), interval_of(range));
  return std::move(list.steps);
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Whether the name has the word, not as a part of another one: "train_step" and "trainStep", but
// not "rewriter".
bool names_word(std::string_view name, std::string_view word) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (auto at = name.begin();; ++at) {
    at = std::search(at, name.end(), word.begin(), word.end(), same);
    if (at == name.end()) return false;
    const bool capital = std::isupper(static_cast<unsigned char>(*at)) != 0;
    if (at == name.begin() || !is_letter(at[-1]) || (capital && !std::isupper(at[-1]))) return true;
  }
}

// XLA's own ranges: those of a compilation are no steps. They have the name of what it compiles.
bool of_compiler(std::string_view name) {
  return starts_with(name, "Xla") && !starts_with(name, "XlaModule:#");
}

// "Train step 17" -> "train step"; "" for a name that does not speak of an iteration.
std::string iteration_name(std::string_view name) {
  name = name.substr(0, 200);
  if (of_compiler(name)) return "";
  if (!names_word(name, "step") && !names_word(name, "iter") && !names_word(name, "batch") &&
      !names_word(name, "minibatch"))
    return "";
  std::string plain;
  for (const char c : name)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t last = plain.find_last_not_of(" _-#:=./");
  return plain.substr(0, last + 1);
}

// The device time of what a process launched, by the time of its calls.
class LaunchedWork {
 public:
  LaunchedWork(const Timeline& timeline, std::uint32_t process) {
    for (const Activity& activity : timeline.activities) {
      if (activity.call >= timeline.calls.size()) continue;
      const Call& call = timeline.calls[activity.call];
      if (call.process == process)
        work_.emplace_back(begin_of(call), interval_of(activity).length());
    }
    std::sort(work_.begin(), work_.end());
    std::int64_t sum = 0;
    for (auto& [begin, until] : work_) until = sum += until;
  }
  bool known() const { return !work_.empty(); }
  std::int64_t in(Interval window) const { return before(window.end) - before(window.begin); }

 private:
  std::int64_t before(std::int64_t time) const {
    const auto after = std::lower_bound(work_.begin(), work_.end(), std::pair(time, INT64_MIN));
    return after == work_.begin() ? 0 : std::prev(after)->second;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> work_;  // begin of the call, sum up to it
};

// Whether ranges cover less than half of what lies from one to the next, as a rule: an evaluation
// between two epochs makes no marks of the steps around it.
bool are_marks(const std::vector<Step>& ranges) {
  std::vector<std::int64_t> lengths, distances;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    lengths.push_back(ranges[i].window.length());
    distances.push_back(ranges[i].window.begin - ranges[i - 1].window.begin);
  }
  return !lengths.empty() && 2 * median_of(std::move(lengths)) < median_of(std::move(distances));
}

// The program's own ranges that read like iterations: of those that come again on one thread, the
// kind with most device time launched in it. A compiler's ranges carry names such as
// `XlaPass:#module=jit_step`, and nothing is launched in them. Without known launches, the kind
// that covers most time. A range that covers a part of its iteration only, such as
// `Optimizer.step#Adam.step`, marks the end of one.
struct NamedSteps {
  std::vector<Step> ranges;
  bool marks = false;
};
NamedSteps named_ranges(const Timeline& timeline, std::uint32_t process) {
  std::map<std::pair<std::string, std::uint32_t>, StepList> kinds;
  std::map<std::uint32_t, std::string> plain;  // of names already looked at
  for (const Range& range : timeline.ranges) {
    if (range.kind != RangeKind::kUser || range.process != process) continue;
    const auto [known, added] = plain.try_emplace(range.name);
    if (added) known->second = iteration_name(name_at(timeline, range.name));
    if (!known->second.empty())
      kinds[{known->second, range.thread}].add(name_at(timeline, range.name), interval_of(range));
  }
  NamedSteps out;
  if (kinds.empty()) return out;
  const LaunchedWork work(timeline, process);
  std::pair<std::int64_t, std::int64_t> most = {0, 0};
  for (auto& [kind, list] : kinds) {
    if (list.steps.size() < 2) continue;
    std::int64_t covered = 0, launched = 0;
    for (const Step& step : list.steps) {
      covered += step.window.length();
      launched += work.in(step.window);
    }
    if (work.known() && launched == 0) continue;
    if (std::pair(launched, covered) <= most) continue;
    most = {launched, covered};
    out.marks = are_marks(list.steps);
    out.ranges = std::move(list.steps);
  }
  return out;
}

// Times at which a process launched, in order.
std::vector<std::int64_t> launch_times(const Timeline& timeline, std::uint32_t process) {
  std::vector<std::int64_t> times;
  for (const Activity& activity : timeline.activities)
    if (activity.call < timeline.calls.size() && timeline.calls[activity.call].process == process)
      times.push_back(begin_of(timeline.calls[activity.call]));
  std::sort(times.begin(), times.end());
  return times;
}

// After how many marks the launches between them come again: 2 where two models have an optimizer
// each and take turns. 1 where nothing shows it.
std::size_t period_of_marks(const std::vector<double>& launches) {
  constexpr std::size_t kMost = 8, kRounds = 3;
  constexpr double kSame = 0.02, kMostly = 0.8;
  const auto same = [&](std::size_t period) {
    std::size_t alike = 0;
    for (std::size_t i = period; i < launches.size(); ++i)
      alike += std::abs(launches[i] - launches[i - period]) <= kSame * launches[i] ? 1 : 0;
    return static_cast<double>(alike) >= kMostly * static_cast<double>(launches.size() - period);
  };
  for (std::size_t period = 1; period <= kMost && kRounds * period <= launches.size(); ++period)
    if (same(period)) return period;
  return 1;
}

// From the end of one mark to the end of the next.
std::vector<Step> between_marks(const std::vector<Step>& marks) {
  std::vector<Step> steps;
  for (std::size_t i = 1; i < marks.size(); ++i)
    steps.push_back({marks[i].name, {marks[i - 1].window.end, marks[i].window.end}});
  return steps;
}

// Joins steps between marks whose launches come again after several of them. A step begins where
// the host takes longest to launch.
std::vector<Step> join_turns(const Timeline& timeline, std::uint32_t process,
                             std::vector<Step> steps) {
  const std::vector<std::int64_t> times = launch_times(timeline, process);
  std::vector<double> launches;
  std::vector<std::int64_t> pauses;
  for (const Step& step : steps) {
    const auto first = std::lower_bound(times.begin(), times.end(), step.window.begin);
    const auto last = std::lower_bound(times.begin(), times.end(), step.window.end);
    launches.push_back(static_cast<double>(last - first));
    pauses.push_back(first == last ? 0 : *first - step.window.begin);
  }
  const std::size_t period = period_of_marks(launches);
  if (period == 1) return steps;
  std::vector<std::int64_t> before(period);
  for (std::size_t i = 0; i < steps.size() / period * period; ++i) before[i % period] += pauses[i];
  const auto from =
      static_cast<std::size_t>(std::max_element(before.begin(), before.end()) - before.begin());
  std::vector<Step> joined;
  for (std::size_t i = from; i + period <= steps.size(); i += period) {
    const Step& end = steps[i + period - 1];
    joined.push_back({end.name, {steps[i].window.begin, end.window.end}});
  }
  return joined;
}

std::vector<Step> numbered(const std::vector<Interval>& rounds) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    steps.push_back({fmt::format("round {}", i + 1), rounds[i]});
  return steps;
}

// The host marks steps, the device lags behind: a step ends when its last work has, and begins when
// the step before has ended. At the end of a recording the work of a step may be missing.
void extend_to_device(const Timeline& timeline, const DeviceWork& work, Steps& out) {
  std::vector<Step>& steps = out.steps;
  struct OnDevice {
    std::optional<Interval> work;
    double count = 0;
  };
  std::vector<OnDevice> launched(steps.size());
  const auto step_of = [&](const Activity& activity) {
    if (activity.call >= timeline.calls.size()) return steps.size();
    const Interval call = interval_of(timeline.calls[activity.call]);
    const auto after = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
      return step.window.begin <= call.begin;
    });
    if (after == steps.begin()) return steps.size();
    const auto step = static_cast<std::size_t>(after - steps.begin()) - 1;
    return call.end <= steps[step].window.end ? step : steps.size();
  };
  for (std::size_t i = work.first; i < work.last; ++i) {
    const Activity& activity = timeline.activities[i];
    const std::size_t step = step_of(activity);
    if (step == steps.size()) continue;
    OnDevice& device = launched[step];
    const Interval interval = interval_of(activity);
    if (!device.work) device.work = interval;
    device.work->begin = std::min(device.work->begin, interval.begin);
    device.work->end = std::max(device.work->end, interval.end);
    device.count += 1;
  }
  std::size_t last = steps.size();
  while (last > 0 && launched[last - 1].count == 0) --last;
  if (last == 0) return;  // no launch known in any step

  std::int64_t until = steps.front().window.begin;
  if (launched.front().work)  // what was launched before the first step is not its work
    for (std::size_t i = work.first; i < work.last; ++i) {
      const Activity& activity = timeline.activities[i];
      if (begin_of(activity) >= launched.front().work->begin) break;
      const std::int64_t end = end_of(activity);
      if (end < launched.front().work->begin && step_of(activity) == steps.size())
        until = std::max(until, end);
    }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Interval& window = steps[i].window;
    window.begin = std::max(window.begin, until);
    if (launched[i].work) window.end = std::max(window.end, launched[i].work->end);
    until = window.end = std::max(window.end, window.begin);
  }
  if (steps.size() < 2) return;
  // A last step with less than four fifths of the work of the one before was cut off.
  if (last > 1 && launched[last - 2].count * 0.8 > launched[last - 1].count) --last;
  out.cut = static_cast<int>(steps.size() - last);
  steps.resize(last);
}

IntervalCoverage::Source merged(IntervalCoverage::Source a, IntervalCoverage::Source b) {
  struct Side {
    IntervalCoverage::Source source;
    Interval next;
    bool has = false;
    void advance() { has = source(next); }
  };
  Side left{std::move(a), {}, false}, right{std::move(b), {}, false};
  left.advance();
  right.advance();
  return [left, right](Interval& interval) mutable {
    if (!left.has && !right.has) return false;
    Side& side = !right.has || (left.has && left.next.begin <= right.next.begin) ? left : right;
    interval = side.next;
    side.advance();
    return true;
  };
}

template <class Record, class Keep>
IntervalCoverage::Source source_of(const std::vector<Record>& records, std::size_t first,
                                   std::size_t last, Keep keep) {
  return [&records, i = first, last, keep](Interval& interval) mutable {
    while (i < last && !keep(records[i])) ++i;
    if (i == last) return false;
    interval = interval_of(records[i++]);
    return true;
  };
}

}  // namespace

Steps host_steps(const Timeline& timeline, std::uint32_t process) {
  Steps out;
  out.from = "ranges";
  out.steps = marked_steps(timeline, process);
  if (!out.steps.empty()) return out;
  const NamedSteps named = named_ranges(timeline, process);
  out.from = named.marks ? "marks" : "user ranges";
  out.steps = named.marks ? between_marks(named.ranges) : named.ranges;
  return out;
}

Steps find_steps(const Profile& profile, const DeviceWork& work, std::uint32_t process,
                 const std::vector<std::uint32_t>& name_numbers) {
  const Timeline& timeline = profile.timeline;
  Steps out = host_steps(timeline, process);
  if (!out.steps.empty()) {
    if (out.from == "marks") out.steps = join_turns(timeline, process, std::move(out.steps));
    extend_to_device(timeline, work, out);
    return out;
  }
  const Rounds rounds = find_rounds(profile, name_numbers, work);
  if (rounds.windows.empty()) {
    out.from.clear();
    return out;
  }
  out.from = kGuessedSteps;
  out.steps = numbered(rounds.windows);
  out.launches = rounds.launches;
  out.kernel_share = rounds.score;
  return out;
}

std::size_t count_warm_up(const std::vector<Step>& steps) {
  if (steps.size() < kMinStepsWithWarmUp) return 0;
  std::vector<std::int64_t> lengths;
  for (const Step& step : steps) lengths.push_back(step.window.length());
  std::vector<std::int64_t> later(lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2),
                                  lengths.end());
  const double most = kWarmUpFactor * static_cast<double>(median_of(std::move(later)));
  std::size_t count = 0;
  while (count + 2 < lengths.size() && static_cast<double>(lengths[count]) > most) ++count;
  if (count == 0) return 0;
  // Steps that come again as long are no warm-up, as those that wait for the input.
  const double as_long =
      kAsLong * static_cast<double>(*std::min_element(
                    lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(count)));
  const auto again = std::count_if(
      lengths.begin() + static_cast<std::ptrdiff_t>(count), lengths.end(),
      [&](std::int64_t ns) { return static_cast<double>(ns) >= std::max(most, as_long); });
  return again >= kComeAgain ? 0 : count;
}

std::vector<StepTime> break_down(const Profile& profile, const DeviceWork& work,
                                 const std::vector<bool>& communication, std::uint32_t process,
                                 const Steps& steps) {
  const Timeline& timeline = profile.timeline;
  const auto device = [&](unsigned kind) {
    return source_of(timeline.activities, work.first, work.last,
                     [&communication, kind](const Activity& activity) {
                       return work_of(activity, communication) == kind;
                     });
  };
  const auto ranges = [&](RangeKind kind) {
    return source_of(timeline.ranges, 0, timeline.ranges.size(), [=](const Range& range) {
      return range.kind == kind && range.process == process;
    });
  };
  const auto calls = source_of(timeline.calls, 0, timeline.calls.size(),
                               [=](const Call& call) { return call.process == process; });
  const auto ops = source_of(timeline.ops, 0, timeline.ops.size(),
                             [=](const Op& op) { return op.process == process; });
  std::vector<IntervalCoverage> layers;  // first to last claim
  layers.emplace_back(device(kCompute));
  layers.emplace_back(device(kCopying));
  layers.emplace_back(device(kSetting));
  layers.emplace_back(merged(device(kCommunicating), ranges(RangeKind::kCommunication)));
  layers.emplace_back(calls);
  layers.emplace_back(ranges(RangeKind::kDataLoader));
  layers.emplace_back(merged(ops, ranges(RangeKind::kUser)));
  std::int64_t StepTime::*const fields[] = {&StepTime::kernel_ns,  &StepTime::copy_ns,
                                            &StepTime::set_ns,     &StepTime::communication_ns,
                                            &StepTime::runtime_ns, &StepTime::data_loader_ns,
                                            &StepTime::cpu_ns,     &StepTime::other_ns};

  std::vector<StepTime> out;
  for (const Step& step : steps.steps) {
    StepTime time;
    time.name = step.name;
    time.start_ns = step.window.begin;
    time.duration_ns = step.window.length();
    sweep_layers(layers, step.window,
                 [&](Interval piece, std::size_t layer) { time.*fields[layer] += piece.length(); });
    out.push_back(std::move(time));
  }
  return out;
}

StepTime mean_step(const std::vector<StepTime>& steps) {
  StepTime mean;
  if (steps.empty()) return mean;
  const auto count = static_cast<std::int64_t>(steps.size());
  std::int64_t rest = 0;
  for (const auto field :
       {&StepTime::duration_ns, &StepTime::kernel_ns, &StepTime::communication_ns,
        &StepTime::copy_ns, &StepTime::set_ns, &StepTime::runtime_ns, &StepTime::data_loader_ns,
        &StepTime::cpu_ns, &StepTime::other_ns}) {
    std::int64_t sum = 0;
    for (const StepTime& step : steps) sum += step.*field;
    mean.*field = sum / count;
    rest += field == &StepTime::duration_ns ? mean.*field : -(mean.*field);
  }
  mean.other_ns += rest;  // what rounding down left over, so that the parts add up
  mean.start_ns = steps.front().start_ns;
  mean.name = "mean of " + counted(count, "step");
  return mean;
}

}  // namespace purlin::analyze
