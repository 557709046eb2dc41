// SPDX-License-Identifier: Apache-2.0
// The coverage block of a report: launches seen and lost, sampling, overhead, processes, notes.
#include "analyze/report/text.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr std::size_t kShownProcesses = 8;

class CoverageRenderer {
 public:
  CoverageRenderer(const Report& report, const Terminal& terminal)
      : report_(report), terminal_(terminal) {
    for (const KernelStat& kernel : report.kernels) {
      device_unknown_ |= kernel.device.empty();
      bounds_known_ |= has_bound(kernel.roof);
    }
  }

  std::string render() {
    const Coverage& coverage = report_.coverage;
    out_ += "\n" + terminal_.paint(Style::kBold, "coverage") + "\n";
    std::string line = counted(coverage.launches_seen, "launch") + " recorded";
    if (coverage.launches_counted > 0) {
      line += fmt::format(" of {} counted ({})", format_count(coverage.launches_counted),
                          percent(coverage.launches_seen / coverage.launches_counted));
    } else {
      line += "; the program's launches were not counted";
    }
    if (coverage.launches_lost > 0) {
      line += ", " + terminal_.paint(Style::kRed, format_count(coverage.launches_lost) + " lost");
    } else {
      line += ", none known to be lost";
    }
    if (coverage.launches_sampled_out > 0)
      line += fmt::format(", {} sampled out", format_count(coverage.launches_sampled_out));
    out_ += fold(line, "  ", width());
    windows();
    drawn();
    unrecorded_waits();
    overhead();
    sampling();
    processes();
    for (const CoverageNote& note : coverage.notes) {
      std::string text = note.cause + ": " + note.text;
      if (note.count > 0) text += fmt::format(" ({})", format_count(note.count));
      if (note.seconds > 0) text += fmt::format(" ({})", short_ns(note.seconds * 1e9));
      paragraph(Style::kYellow, "! " + clean(text), "  ");
    }
    unknown();
    return std::move(out_);
  }

 private:
  std::string dim(std::string_view text) const { return terminal_.paint(Style::kDim, text); }
  std::size_t width() const { return text_width(terminal_); }
  void paragraph(Style style, std::string_view text, std::string_view indent) {
    out_ += painted(style, text, indent, terminal_);
  }

  // Otherwise the user would not know that the waits can be recorded.
  void unrecorded_waits() {
    if (report_.coverage.sampling.waits.value_or(true) || !report_.waits.empty()) return;
    paragraph(Style::kDim,
              report_.timeline.syncs > 0
                  ? "the host's waits are known for the timeline only: --waits records all of them"
                  : "the host's waits were not recorded: use purlin profile --waits",
              "  ");
  }

  void windows() {
    const Sampling& sampling = report_.coverage.sampling;
    if (sampling.governed_ns <= 0 || report_.coverage.launches_sampled_out < 0.5) return;
    std::string text = fmt::format(
        "sampled: recording was on for {} of the time, in {}; counts and times are estimates",
        percent(sampling.recorded_ns / sampling.governed_ns), counted(sampling.windows, "window"));
    if (sampling.total_error() > 0)
      text +=
          fmt::format(", the kernels' total within ±{} (95 %)", percent(sampling.total_error()));
    if (sampling.timed_windows > 0 && sampling.counted_windows > 0)
      text += fmt::format("; {} weighted by time alone", counted(sampling.timed_windows, "window"));
    else if (sampling.timed_windows > 0)
      text += "; windows are weighted by time, which assumes equal work inside and outside of them";
    out_ += fold(text, "  ", width());
    unsure_total(sampling);
  }

  // An overloaded machine delays the calls that open and close windows, and takes the program's
  // processor inside and outside of them unequally.
  void unsure_total(const Sampling& sampling) {
    constexpr double kNotable = 0.02;
    if (beyond_wall_time(report_))
      paragraph(
          Style::kYellow,
          "! the kernels' total is beyond the wall time: kernels overlapped, or windows count "
          "too much",
          "  ");
    const bool by_time = sampling.unsure_ns > kNotable * sampling.total_ns;
    if (!by_time && !sampling.total_unknown()) return;
    std::string line = "! totals are not well known: ";
    line += by_time ? fmt::format(
                          "±{} are of windows that are known by time alone, on a machine "
                          "that was overloaded",
                          percent(sampling.unsure_ns / sampling.total_ns))
                    : std::string("windows differ too much");
    if (sampling.total_unknown()) line += ". Compare shares and percentiles, not totals";
    paragraph(Style::kYellow, line, "  ");
  }

  void drawn() {
    double recorded = 0, all = 0;
    for (const ProcessInfo& process : report_.processes) {
      recorded += process.stands_for > 0 ? 1 : 0;
      all += process.stands_for;
    }
    if (all > recorded)
      out_ += fold(fmt::format("process sample: {} recorded of an estimated {} (--sample); counts "
                               "and times are those of the recorded part",
                               counted(recorded, "process"), format_count(all)),
                   "  ", width());
  }

  // The overhead of Purlin's own capture; other tools do not report theirs.
  void overhead() {
    const Coverage& coverage = report_.coverage;
    if (coverage.overhead_ns <= 0 && coverage.bytes_written == 0) return;
    std::string text = fmt::format("overhead {}", format_ns(coverage.overhead_ns));
    if (report_.wall_ns > 0)
      text += fmt::format(" ({:.2f}% of the wall time)",
                          100 * coverage.overhead_ns / static_cast<double>(report_.wall_ns));
    if (coverage.sampling.hidden_ns >= 1e6)
      text += fmt::format(", and {} hidden by the program's waits for a device",
                          format_ns(coverage.sampling.hidden_ns));
    if (coverage.bytes_written > 0)
      text +=
          fmt::format(", {} written", format_bytes(static_cast<double>(coverage.bytes_written)));
    out_ += fold(text, "  ", width());
  }

  // The origin of the stall samples, and the samples that belong to no row.
  void sampling() {
    const StallSampling& all = report_.stall_sampling;
    if (all.windows <= 0 && all.samples <= 0) return;
    std::string text = fmt::format("stalls: {} in {}, {} in total", counted(all.samples, "sample"),
                                   counted(all.windows, "window"), short_ns(all.sampled_ns));
    if (all.least_period > 0)
      text += all.least_period == all.most_period
                  ? fmt::format(", one per SM every {} cycles", all.least_period)
                  : fmt::format(", one per SM every {} to {} cycles", all.least_period,
                                all.most_period);
    if (all.dropped > 0) text += fmt::format(", {} dropped by the GPU", format_count(all.dropped));
    if (all.untold > 0)
      text += fmt::format(", {} in code unknown to the driver", format_count(all.untold));
    double elsewhere = 0;
    for (const auto& [function, samples] : all.elsewhere) elsewhere += samples;
    if (elsewhere > 0)
      text += fmt::format("; {} of them in functions without a row, most in {}",
                          percent(elsewhere / std::max(all.samples, 1.0)),
                          clean(elide_middle(all.elsewhere[0].first, 60)));
    out_ += fold(text, "  ", width());
  }

  void processes() {
    const std::size_t count = report_.processes.size();
    for (std::size_t i = 0; i < std::min(count, kShownProcesses); ++i) {
      const ProcessInfo& process = report_.processes[i];
      // Other tools do not record how a process ended.
      const bool cut = !process.complete && (report_.source.empty() || report_.source == "purlin");
      const std::string end = cut ? "  cut short" : "";
      std::string text = fmt::format("  pid {}", process.pid);
      if (process.rank >= 0) text += fmt::format(", rank {}", process.rank);
      if (process.rank >= 0 && process.world_size > 0)
        text += fmt::format(" of {}", process.world_size);
      if (process.stands_for == 0) text += ", left out";
      if (process.stands_for > 1) text += fmt::format(", represents {}", process.stands_for);
      if (!process.layer.empty()) text += " (" + clean(process.layer) + ")";
      text += "  " + clean(process.command);
      out_ +=
          dim(elide_middle(text, width() - end.size())) + terminal_.paint(Style::kRed, end) + "\n";
    }
    if (count > kShownProcesses)
      out_ += dim(fmt::format("  and {} more {}", count - kShownProcesses,
                              noun_for(count - kShownProcesses, "process"))) +
              "\n";
  }

  void unknown() {
    for (const std::string& limit : report_.timeline.limits)
      paragraph(Style::kDim, "- " + clean(limit), "  ");
    if (device_unknown_)
      paragraph(
          Style::kDim,
          "- the GPU's model was not recorded, so its roofs are not known: give it with --gpu NAME",
          "  ");
    double without = 0, guessed = 0;
    for (const KernelStat& kernel : report_.kernels) {
      if (kernel.roof.bound == Bound::kUnknown && kernel.name.op_class != "communication")
        without += kernel.share;
      if (is_guess(kernel.roof)) guessed += kernel.share;
    }
    if (bounds_known_ && without >= 0.001)
      paragraph(Style::kDim,
                fmt::format("- the bound of kernels with {} of the time is not known: counters or "
                            "a problem shape are missing",
                            percent(without)),
                "  ");
    if (guessed > 0)
      paragraph(Style::kDim,
                fmt::format("- ?: the usual bound of such kernels ({} of the time); neither "
                            "counters nor a problem shape were recorded",
                            percent(guessed)),
                "  ");
  }

  const Report& report_;
  const Terminal& terminal_;
  bool device_unknown_ = false, bounds_known_ = false;
  std::string out_;
};

}  // namespace

std::string render_coverage(const Report& report, const Terminal& terminal) {
  return CoverageRenderer(report, terminal).render();
}

}  // namespace purlin::analyze
