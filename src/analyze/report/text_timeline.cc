// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/text.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::size_t kShownDevices = 8, kShownGaps = 3, kShownSequences = 3;
constexpr std::size_t kNameRoom = 60;          // characters of a kernel's name within a sentence
constexpr std::size_t kTimelineKeyWidth = 10;  // of the words at the left of each line

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string ns_and_share(std::int64_t ns, std::int64_t whole) {
  return fmt::format("{} ({})", short_ns(static_cast<double>(ns)), percent(share_of(ns, whole)));
}

class TimelineRenderer {
 public:
  TimelineRenderer(const Report& report, const Terminal& terminal)
      : timeline_(report.timeline),
        environment_(report.environment),
        processes_(report.processes),
        terminal_(terminal) {}

  std::string render() {
    out_ = terminal_.paint(Style::kBold, "timeline") + "\n";
    const std::size_t shown = std::min(kShownDevices, timeline_.devices.size());
    for (std::size_t i = 0; i < shown; ++i) device(timeline_.devices[i]);
    if (shown < timeline_.devices.size())
      out_ += fmt::format("  and {} more {}\n", timeline_.devices.size() - shown,
                          noun_for(timeline_.devices.size() - shown, "device"));
    phases();
    steps();
    ranks();
    launches_and_queues();
    sequences();
    gaps();
    return std::move(out_);
  }

 private:
  std::size_t width() const { return text_width(terminal_); }

  // "  key        text", folded under itself.
  void line(std::string_view key, std::string_view text) {
    const std::string indent(2 + kTimelineKeyWidth, ' ');
    std::string folded = fold(text, indent, width());
    folded.replace(2, key.size(), key);
    out_ += folded;
  }

  std::string device_name(int index) const {
    const auto i = static_cast<std::size_t>(index);
    if (index < 0 || i >= environment_.devices.size()) return fmt::format("device {}", index);
    const DeviceInfo& info = environment_.devices[i];
    return clean(info.id.empty() ? fmt::format("device {}", index) : info.id);
  }

  // "213 ms, steady state of 10 steps"
  std::string covered(const DeviceTime& time) const {
    std::string text = short_ns(static_cast<double>(time.window_ns));
    if (timeline_.phase == PhaseChoice::kAll) return text + ", the whole recording";
    const PhaseKind kind =
        timeline_.phase == PhaseChoice::kStartUp ? PhaseKind::kStartUp : PhaseKind::kSteadyState;
    for (const Phase& phase : timeline_.phases) {
      if (phase.device != time.device || phase.kind != kind) continue;
      text += fmt::format(", {}", to_text(kind));
      if (phase.steps > 0) text += " of " + counted(phase.steps, "step");
      return text;
    }
    return text + " from its first to its last work";
  }

  void device(const DeviceTime& time) {
    const std::int64_t span = time.span_ns;
    const std::int64_t communication = time.communication_ns - time.compute_and_communication_ns;
    const std::int64_t copies = time.busy_ns - time.compute_ns - communication;
    const std::vector<BarPart> parts = {
        {share_of(time.compute_ns, span), Style::kGreen, "#", "█"},
        {share_of(communication, span), Style::kBlue, "=", "▓"},
        {share_of(copies, span), Style::kYellow, "+", "▒"},
        {share_of(time.idle_total_ns(), span), Style::kDim, ".", "░"},
    };
    out_ += fmt::format("  {}{}  {}, {}\n", device_name(time.device), rank_of(time.device),
                        covered(time), counted(time.streams, "stream"));
    out_ += "  " + stacked_bar(parts, static_cast<int>(width()) - 4, terminal_) + "\n";
    const auto mark = [&](std::size_t part) {
      return terminal_.paint(parts[part].style,
                             terminal_.utf8() ? parts[part].utf8 : parts[part].ascii);
    };
    std::vector<std::string> legend = {
        fmt::format("{} compute {}", mark(0), percent(parts[0].share))};
    if (time.communication_ns > 0)
      legend.push_back(fmt::format("{} communication alone {}", mark(1), percent(parts[1].share)));
    if (time.copy_ns > 0)
      legend.push_back(fmt::format("{} memcpy, memset alone {}", mark(2), percent(parts[2].share)));
    legend.push_back(fmt::format("{} idle {}", mark(3), percent(parts[3].share)));
    std::string text;
    for (const std::string& one : legend) {
      if (!text.empty() && visible_width(text) + 4 + visible_width(one) > width()) {
        out_ += text + "\n";
        text.clear();
      }
      text += "  " + one;
    }
    out_ += text + "\n";
    idle(time);
    left_out(time);
    overlap(time);
  }

  // What is in the window and in none of its shares.
  void left_out(const DeviceTime& time) {
    std::vector<std::string> parts;
    if (time.one_off_gaps > 0)
      parts.push_back(fmt::format("{} of {} in all, much longer than the others, and rare",
                                  counted(time.one_off_gaps, "one-off gap"),
                                  short_ns(static_cast<double>(time.one_off_ns))));
    if (time.other_works > 0)
      parts.push_back(fmt::format(
          "{} of other work between two steps, {} in all, such as an "
          "evaluation",
          counted(time.other_works, "stretch"), short_ns(static_cast<double>(time.other_work_ns))));
    if (!parts.empty())
      line("left out", fmt::format("{}. The shares are of the other {}", join(parts, "; "),
                                   short_ns(static_cast<double>(time.span_ns))));
  }

  // " (rank 3)" of a distributed run.
  std::string rank_of(int device) const {
    for (const RankStats& rank : timeline_.ranks)
      if (rank.device == device && rank.rank >= 0) return fmt::format(" (rank {})", rank.rank);
    return "";
  }

  // What lies before and after the steady state, of the device whose start-up is the longest.
  void phases() {
    if (timeline_.phase != PhaseChoice::kSteadyState) return;
    for (const PhaseKind kind : {PhaseKind::kStartUp, PhaseKind::kEnd}) {
      const Phase* longest = nullptr;
      for (const Phase& phase : timeline_.phases)
        if (phase.kind == kind && (longest == nullptr || phase.span_ns > longest->span_ns))
          longest = &phase;
      if (longest != nullptr && worth_a_line(*longest)) phase(*longest);
    }
    if (timeline_.rows_of_phase)
      line("rows", fmt::format("the kernels above are those of the steady state; {} with {} of "
                               "kernel time are outside of it, --phase all shows them",
                               counted(timeline_.launches_outside, "launch"),
                               short_ns(timeline_.kernel_ns_outside)));
  }

  // A recording of some steps begins and ends a little outside of them, with or without work.
  bool worth_a_line(const Phase& phase) const {
    constexpr double kLongEdge = 0.05;  // of the steady state
    for (const Phase& steady : timeline_.phases)
      if (steady.device == phase.device && steady.kind == PhaseKind::kSteadyState)
        return share_of(phase.span_ns, steady.span_ns) > (phase.kernels > 0 ? kLongEdge : 1);
    return true;
  }

  void phase(const Phase& phase) {
    std::string text = fmt::format(
        "{} {}the steady state: device busy {}, {}", short_ns(static_cast<double>(phase.span_ns)),
        phase.kind == PhaseKind::kStartUp ? "before " : "after ",
        percent(share_of(phase.busy_ns, phase.span_ns)), counted(phase.kernels, "kernel"));
    if (phase.steps > 0) text += ", " + counted(phase.steps, "warm-up step");
    for (std::size_t i = 0; i < phase.calls.size(); ++i)
      text += fmt::format("{} {} {}", i == 0 ? "; host calls:" : ",", clean(phase.calls[i].name),
                          short_ns(static_cast<double>(phase.calls[i].total_ns)));
    line(to_text(phase.kind), text);
  }

  // Who keeps the others waiting, and how much of the run was recorded.
  void ranks() {
    if (timeline_.ranks.size() < 2) {
      if (const std::string text = recorded_ranks(); !text.empty()) line("ranks", text);
      return;
    }
    const auto straggler = std::max_element(
        timeline_.ranks.begin(), timeline_.ranks.end(),
        [](const RankStats& a, const RankStats& b) { return a.late_ns < b.late_ns; });
    const std::string name = straggler->rank >= 0 ? fmt::format("rank {}", straggler->rank)
                                                  : device_name(straggler->device);
    line("ranks", fmt::format("{}: {} begins last in {} of {} collectives, {} after the first on "
                              "average",
                              recorded_ranks(), name, format_count(straggler->last),
                              format_count(straggler->collectives), short_ns(straggler->late_ns)));
  }

  std::string recorded_ranks() const {
    int world = 0;
    std::set<int> recorded;
    for (const ProcessInfo& process : processes_) {
      world = std::max(world, process.world_size);
      if (process.rank >= 0) recorded.insert(process.rank);
    }
    const std::size_t count = std::max(recorded.size(), timeline_.ranks.size());
    if (world > 1 && static_cast<std::size_t>(world) >= count)
      return fmt::format("{} of {} recorded", count, counted(world, "rank"));
    return count > 1 ? counted(count, "rank") : "";
  }

  void idle(const DeviceTime& time) {
    std::vector<std::pair<std::int64_t, IdleCause>> causes;
    for (std::size_t i = 0; i < kIdleCauses; ++i)
      if (time.idle_ns[i] > 0) causes.emplace_back(time.idle_ns[i], static_cast<IdleCause>(i));
    std::stable_sort(causes.begin(), causes.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> texts;
    for (const auto& [ns, cause] : causes)
      texts.push_back(
          (cause == IdleCause::kOther ? "no cause found" : spaced_words(to_text(cause))) + " " +
          ns_and_share(ns, time.span_ns));
    if (!texts.empty()) line("idle", join(texts, ", "));
  }

  void overlap(const DeviceTime& time) {
    std::vector<std::string> texts;
    if (time.communication_ns > 0)
      texts.push_back(
          fmt::format("{} of {} communication during compute",
                      percent(share_of(time.compute_and_communication_ns, time.communication_ns)),
                      short_ns(static_cast<double>(time.communication_ns))));
    if (time.copy_ns > 0)
      texts.push_back(fmt::format("{} of {} memcpy and memset during compute",
                                  percent(share_of(time.compute_and_copy_ns, time.copy_ns)),
                                  short_ns(static_cast<double>(time.copy_ns))));
    if (!texts.empty()) line("overlap", join(texts, ", "));
  }

  void steps() {
    const StepTime& mean = timeline_.mean_step;
    if (timeline_.steps.empty() || mean.duration_ns <= 0) return;
    std::string text = fmt::format("{}: {} =", mean.name.empty() ? "mean" : clean(mean.name),
                                   short_ns(static_cast<double>(mean.duration_ns)));
    bool first = true;
    const auto add = [&](std::string_view name, std::int64_t ns) {
      if (ns <= 0) return;
      text += fmt::format("{} {} {}", first ? "" : " +", name, ns_and_share(ns, mean.duration_ns));
      first = false;
    };
    add("kernels", mean.kernel_ns);
    add("communication", mean.communication_ns);
    add("memcpy", mean.copy_ns);
    add("memset", mean.set_ns);
    add("runtime calls", mean.runtime_ns);
    add("data loader", mean.data_loader_ns);
    add("host code", mean.cpu_ns);
    add("other", mean.other_ns);
    line("step", text);
    if (timeline_.steps_from == kGuessedSteps)
      line("", fmt::format("a guess: rounds of {} that repeat, with {} of the kernel time; no mark "
                           "of the program shows its steps",
                           counted(timeline_.guessed_launches, "launch"),
                           percent(timeline_.guessed_share)));
    step_ranges();
    std::vector<std::int64_t> lengths;
    for (const StepTime& step : timeline_.steps) lengths.push_back(step.duration_ns);
    std::sort(lengths.begin(), lengths.end());
    const std::int64_t median = lengths[lengths.size() / 2];
    constexpr double kSkewed = 0.1;
    const bool skewed = std::abs(share_of(mean.duration_ns - median, median)) > kSkewed;
    if (lengths.size() > 1)
      line("",
           fmt::format(
               "{} of {} to {}{}", counted(lengths.size(), "step"),
               short_ns(static_cast<double>(lengths.front())),
               short_ns(static_cast<double>(lengths.back())),
               skewed ? fmt::format(", median {}", short_ns(static_cast<double>(median))) : ""));
  }

  // Which ranges the steps are, and how much lies between them.
  void step_ranges() {
    const StepTime& first = timeline_.steps.front();
    const std::string name = clean(elide_middle(first.name, 60));
    if (timeline_.steps_from == "user ranges")
      line("", fmt::format("a step is a range of the program, such as {}", name));
    if (timeline_.steps_from == "marks")
      line("", fmt::format("a step goes from the end of one {} to the end of a later one", name));
    std::int64_t in_steps = 0;
    for (const StepTime& step : timeline_.steps) in_steps += step.duration_ns;
    in_steps += timeline_.devices.front().other_work_ns;
    const StepTime& last = timeline_.steps.back();
    const std::int64_t all = last.start_ns + last.duration_ns - first.start_ns;
    constexpr double kNotable = 0.05;
    if (share_of(all - in_steps, all) > kNotable)
      line("", fmt::format("{} of these {} are between the steps, in none of them",
                           short_ns(static_cast<double>(all - in_steps)),
                           short_ns(static_cast<double>(all))));
  }

  void launches_and_queues() {
    const LaunchStats& stats = timeline_.launches;
    if (stats.launches > 0) {
      const std::string call =
          stats.call_p50_ns > 0 ? fmt::format("call p50 {}, ", short_ns(stats.call_p50_ns)) : "";
      std::string text = fmt::format(
          "{} with a known call: {}from call to kernel p50 {} p95 {}", format_count(stats.launches),
          call, short_ns(stats.latency_p50_ns), short_ns(stats.latency_p95_ns));
      if (stats.tiny > 0)
        text += fmt::format("; {} ({}) shorter than the call that launched them",
                            counted(stats.tiny, "kernel"), percent(stats.tiny / stats.launches));
      line("launches", text);
    }
    if (timeline_.syncs > 0)
      line("syncs",
           fmt::format("{} of the host, with {} of idle time", counted(timeline_.syncs, "wait"),
                       short_ns(timeline_.sync_idle_ns)));
    const auto deepest = std::max_element(
        timeline_.queues.begin(), timeline_.queues.end(),
        [](const QueueStats& a, const QueueStats& b) { return a.max_depth < b.max_depth; });
    if (deepest != timeline_.queues.end() && deepest->max_depth > 0) {
      std::string text = fmt::format("{} stream {}: {:.1f} launches queued on average, {} at most",
                                     device_name(deepest->device), deepest->stream,
                                     deepest->mean_depth, deepest->max_depth);
      if (deepest->full_ns > 0)
        text += fmt::format(", full for {}", short_ns(static_cast<double>(deepest->full_ns)));
      line("queue", text);
    }
  }

  void sequences() {
    const std::size_t shown = std::min(kShownSequences, timeline_.sequences.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const RepeatedSequence& sequence = timeline_.sequences[i];
      std::string text = fmt::format(
          "{} x {} on {}stream {}, {} of which {} busy", round_of(sequence), sequence.repeats,
          timeline_.devices.size() > 1 ? device_name(sequence.device) + " " : "", sequence.stream,
          short_ns(static_cast<double>(sequence.total_ns)),
          short_ns(static_cast<double>(sequence.busy_ns)));
      if (!sequence.kernels.empty())
        text += ", from " + elide_middle(clean(sequence.kernels.front()), kNameRoom);
      if (!sequence.hindrance.empty()) text += "; hindered by: " + clean(sequence.hindrance);
      line(i == 0 ? "repeats" : "", text);
    }
  }

  void gaps() {
    const std::size_t shown = std::min(kShownGaps, timeline_.gaps.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const Gap& gap = timeline_.gaps[i];
      std::string text = short_ns(static_cast<double>(gap.duration_ns));
      if (timeline_.devices.size() > 1) text += " on " + device_name(gap.device);
      if (!gap.before.empty()) text += " after " + elide_middle(clean(gap.before), kNameRoom);
      if (gap.one_off) text += ", one-off";
      text += ": " + (gap.cause == IdleCause::kOther ? "no cause found"
                                                     : spaced_words(to_text(gap.cause)));
      if (!gap.evidence.empty()) text += " (" + clean(gap.evidence) + ")";
      line(i == 0 ? "longest" : "", text);
    }
  }

  const TimelineAnalysis& timeline_;
  const Environment& environment_;
  const std::vector<ProcessInfo>& processes_;
  const Terminal& terminal_;
  std::string out_;
};

}  // namespace

std::string render_timeline(const Report& report, const Terminal& terminal) {
  if (report.timeline.devices.empty()) return "";
  return TimelineRenderer(report, terminal).render();
}

}  // namespace purlin::analyze
