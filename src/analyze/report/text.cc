// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/text.h"

#include "analyze/report/finding.h"
#include "analyze/report/selection.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace purlin::analyze {
namespace {

constexpr int kBarCells = 6;
constexpr std::size_t kNameLines = 3;
constexpr std::size_t kShownProcesses = 8;

Style style_of(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return Style::kGreen;
    case Bound::kMemory:
      return Style::kCyan;
    case Bound::kLatency:
      return Style::kYellow;
    case Bound::kUnknown:
      return Style::kDim;
  }
  return Style::kPlain;
}

Style style_of(std::string_view op_class) {
  if (op_class == "gemm" || op_class == "conv" || op_class == "attention") return Style::kGreen;
  if (op_class == "copy" || op_class == "layout") return Style::kYellow;
  if (op_class == "communication") return Style::kBlue;
  if (op_class == "other") return Style::kDim;
  return Style::kCyan;
}

// Told by what such kernels usually are, not by anything the profile has of this one.
bool is_guess(const Roof& roof) { return roof.bound_from == "op_class"; }

class Renderer {
 public:
  Renderer(const Report& report, const Terminal& terminal, const TextOptions& options)
      : report_(report), terminal_(terminal), options_(options) {
    for (const KernelStat& kernel : report.kernels) {
      devices_.insert(kernel.device);
      builds_.insert(kernel.build);
      most_share_ = std::max(most_share_, kernel.share);
      bounds_known_ |= kernel.roof.bound != Bound::kUnknown || kernel.roof.utilization > 0;
    }
  }

  std::string render() {
    head();
    if (report_.partial) partial();
    kernels();
    const std::string timeline = render_timeline(report_.timeline, report_.environment, terminal_);
    if (!timeline.empty()) out_ += "\n" + timeline;
    copies();
    waits();
    advice();
    coverage();
    return std::move(out_);
  }

 private:
  std::string bold(std::string_view text) const { return terminal_.paint(Style::kBold, text); }
  std::string dim(std::string_view text) const { return terminal_.paint(Style::kDim, text); }
  std::size_t width() const { return static_cast<std::size_t>(std::max(60, terminal_.width())); }

  // A folded paragraph, each line painted on its own.
  void paragraph(Style style, std::string_view text, std::string_view indent) {
    for (const std::string& line : split(fold(text, indent, width()), '\n'))
      if (!line.empty()) out_ += terminal_.paint(style, line) + "\n";
  }

  void head() {
    const Environment& environment = report_.environment;
    if (!report_.command.empty())
      out_ += bold(elide_middle("$ " + clean(report_.command), width())) + "\n";
    if (!report_.kernels.empty() || !report_.timeline.devices.empty())
      paragraph(Style::kBold, ">> " + find(report_).front().text, "");
    std::string line =
        report_.launches > 0
            ? fmt::format("{} of kernels in {}", format_ns(report_.kernel_ns),
                          launches(report_.launches))
            : std::string(report_.kernels.empty() ? "No kernels" : "No durations of kernels");
    if (report_.wall_ns > 0)
      line += fmt::format(", wall time {}", format_ns(static_cast<double>(report_.wall_ns)));
    if (report_.exit_code != 0) line += fmt::format(", exit code {}", report_.exit_code);
    if (!environment.build.empty()) line += ", build " + clean(environment.build);
    if (!report_.source.empty() && report_.source != "purlin")
      line += ", recorded by " + clean(report_.source);
    paragraph(Style::kPlain, line, "");
    for (const DeviceInfo& device : environment.devices) {
      std::string facts = device.name.empty() ? "model not known" : device.name;
      if (!device.id.empty()) facts.insert(0, device.id + "  ");
      if (!device.arch.empty()) facts += ", " + device.arch;
      if (device.compute_units > 0) facts += fmt::format(", {} units", device.compute_units);
      if (!device.driver.empty() && device.driver != device.toolkit)
        facts += ", " + driver_text(device.driver);
      if (!device.toolkit.empty()) facts += ", " + device.toolkit;
      out_ += dim(elide_middle(clean(facts), width())) + "\n";
    }
  }

  void partial() {
    out_ += "\n";
    paragraph(Style::kRed,
              "PARTIAL PROFILE: it was damaged or cut short. What follows is what was recorded up "
              "to the last complete part; shares and totals are of that part only.",
              "");
  }

  // "compute 31%": what holds the kernel back and how near it is to that.
  std::string bound_cell(const Roof& roof) const {
    if (roof.bound == Bound::kUnknown && roof.utilization <= 0) return dim("-");
    std::string text(to_text(roof.bound));
    if (is_guess(roof)) return dim(text + "?");
    if (roof.utilization > 0) text += fmt::format(" {:.0f}%", roof.utilization * 100);
    return terminal_.paint(style_of(roof.bound), text);
  }

  // Columns but the last; the name takes what is left of the line.
  std::vector<std::string> cells(const KernelStat& kernel) const {
    const Sketch& duration = kernel.duration;
    std::vector<std::string> out = {percent(kernel.share)};
    if (has_bar()) {
      const std::string bar = terminal_.bar(kernel.share / most_share_, kBarCells);
      out.push_back(terminal_.paint(Style::kCyan, bar) +
                    std::string(kBarCells - visible_width(bar), ' '));
    }
    const auto time = [&](double ns) { return duration.empty() ? "-" : short_ns(ns); };
    out.push_back(time(duration.total_ns()));
    out.push_back(format_count(duration.count()));
    out.push_back(time(duration.quantile(0.5)));
    if (has_p95()) out.push_back(time(duration.quantile(0.95)));
    if (bounds_known_) {
      out.push_back(bound_cell(kernel.roof));
    } else {
      out.push_back(terminal_.paint(style_of(kernel.name.op_class), kernel.name.op_class));
    }
    return out;
  }

  bool has_bar() const { return width() >= 96; }
  bool has_p95() const { return width() >= 84; }

  // "128x4 / 256": extents of 1 at the end say nothing.
  static std::string launch_text(const LaunchShape& launch) {
    const auto dims = [](const Dim3& dim) {
      std::string out = std::to_string(dim[0]);
      if (dim[1] > 1 || dim[2] > 1) out += fmt::format("x{}", dim[1]);
      if (dim[2] > 1) out += fmt::format("x{}", dim[2]);
      return out;
    };
    return dims(launch.grid) + " / " + dims(launch.block);
  }

  std::string row_title() const {
    switch (report_.group_by) {
      case GroupBy::kLaunch:
        return "kernel, grid / block";
      case GroupBy::kOp:
        return "op";
      case GroupBy::kOpClass:
        return "op class";
      case GroupBy::kKernel:
      case GroupBy::kShape:
        break;
    }
    return "kernel";
  }

  // What is known of the problem, under the name.
  std::string problem(const KernelStat& kernel) const {
    std::vector<std::string> parts;
    if (bounds_known_ && kernel.label != kernel.name.op_class)
      parts.emplace_back(kernel.name.op_class);
    // "bf16 tensor" tells the element type and the roof at once; of memory, "dram" is understood.
    const std::string& roof = kernel.roof.ceiling;
    const bool told = !kernel.dtype.empty() && starts_with(roof, kernel.dtype);
    std::string shape = told ? roof : kernel.dtype;
    if (!kernel.shape.empty()) shape += (shape.empty() ? "" : " ") + kernel.shape;
    if (!shape.empty()) parts.push_back(clean(shape));
    if (kernel.kernels > 1) parts.push_back(fmt::format("{} kernels", kernel.kernels));
    if (report_.group_by == GroupBy::kLaunch) {
      parts.push_back(launch_text(kernel.launch));
    } else if (kernel.launch_shapes > 1) {
      parts.push_back(fmt::format("{} launch shapes", kernel.launch_shapes));
    }
    if (!told && !roof.empty() && roof != "dram") parts.push_back("roof " + clean(roof));
    if (options_.headroom && headroom_ns(kernel) > 0)
      parts.push_back(short_ns(headroom_ns(kernel)) + " above its roof");
    if (devices_.size() > 1) parts.push_back("on " + clean(kernel.device));
    if (builds_.size() > 1)
      parts.push_back(kernel.build.empty() ? "build unknown" : "build " + clean(kernel.build));
    return join(parts, ", ");
  }

  void kernels() {
    if (report_.kernels.empty()) {
      if (!report_.filter.empty())
        out_ += fmt::format("\nNo kernel matches '{}'; {} are left out\n", clean(report_.filter),
                            report_.rows_left_out);
      return;
    }
    const std::size_t all = report_.kernels.size();
    const std::size_t shown =
        options_.top > 0 ? std::min(all, static_cast<std::size_t>(options_.top)) : all;
    std::vector<std::string> titles = {"share"};
    if (has_bar()) titles.emplace_back();
    for (const char* title : {"total", "count", "p50"}) titles.emplace_back(title);
    if (has_p95()) titles.emplace_back("p95");
    titles.emplace_back(bounds_known_ ? "bound" : "class");
    std::vector<std::vector<std::string>> rows;
    std::vector<std::size_t> widths;
    for (const std::string& title : titles) widths.push_back(title.size());
    for (std::size_t i = 0; i < shown; ++i) {
      rows.push_back(cells(report_.kernels[i]));
      for (std::size_t c = 0; c < widths.size(); ++c)
        widths[c] = std::max(widths[c], visible_width(rows[i][c]));
    }
    std::size_t used = 0;
    for (std::size_t column : widths) used += column + 2;
    const std::size_t room = width() > used + 20 ? width() - used : 20;

    Table table;
    for (std::size_t c = 0; c < titles.size(); ++c)
      table.column(titles[c], titles[c].empty() || c + 1 == titles.size() ? Table::Align::kLeft
                                                                          : Table::Align::kRight);
    table.column(row_title());
    for (std::size_t i = 0; i < shown; ++i) {
      const KernelStat& kernel = report_.kernels[i];
      std::vector<std::string> lines = wrap_name(clean(kernel.label), room, kNameLines);
      const std::string what = problem(kernel);
      if (!what.empty())
        for (const std::string& line : wrap_name(what, room, 4)) lines.push_back(dim(line));
      for (std::size_t line = 0; line < lines.size(); ++line) {
        std::vector<std::string> row =
            line == 0 ? std::move(rows[i]) : std::vector<std::string>(titles.size());
        row.push_back(lines[line]);
        table.row(std::move(row));
      }
    }
    out_ += "\n" + table.render(terminal_);
    rest(shown);
  }

  void rest(std::size_t shown) {
    const std::size_t all = report_.kernels.size();
    double left = 0, listed = 0;
    for (std::size_t i = 0; i < all; ++i) (i < shown ? listed : left) += report_.kernels[i].share;
    if (shown < all)
      out_ += dim(fmt::format("{:>5}  in the other {}; --top 0 shows all", percent(left),
                              all - shown)) +
              "\n";
    if (!report_.filter.empty())
      out_ += dim(fmt::format("{:>5}  in the {} rows that do not match '{}'",
                              percent(std::max(0.0, 1 - left - listed)), report_.rows_left_out,
                              clean(report_.filter))) +
              "\n";
  }

  void copies() {
    if (report_.copies.empty()) return;
    Table table;
    table.column("copies and sets");
    for (const char* title : {"total", "count", "p50", "bytes", "rate"})
      table.column(title, Table::Align::kRight);
    for (const CopyStat& copy : report_.copies) {
      const double ns = copy.duration.total_ns();
      table.row({clean(copy.kind), short_ns(ns), format_count(copy.duration.count()),
                 short_ns(copy.duration.quantile(0.5)),
                 copy.bytes > 0 ? format_bytes(copy.bytes) : "-",
                 ns > 0 && copy.bytes > 0 ? si(copy.bytes / ns * 1e9, "B/s") : "-"});
    }
    out_ += "\n" + table.render(terminal_);
  }

  void advice() {
    if (report_.advice.empty()) return;
    Table table;
    table.column("saves", Table::Align::kRight);
    table.column("", Table::Align::kLeft);
    table.column("advice");
    const std::size_t room = width() > 50 ? width() - 26 : 24;
    for (const BriefAdvice& one : report_.advice) {
      std::string text = one.title;
      if (!one.kernels.empty()) text += ": " + clean(one.kernels.front());
      if (one.kernels.size() > 1) text += fmt::format(" and {} more", one.kernels.size() - 1);
      table.row({fmt::format("{:.0f}%", 100 * one.mid),
                 fmt::format("({:.0f} to {:.0f})", 100 * one.low, 100 * one.high),
                 elide_middle(text, room)});
    }
    out_ += "\n" + table.render(terminal_);
    const std::string file = report_.files.size() == 1 ? clean(report_.files[0]) : "FILE…";
    paragraph(Style::kDim, "purlin advise " + file + " says why, how, and what would not help", "");
  }

  void waits() {
    if (report_.waits.empty()) return;
    Table table;
    table.column("the host waited for");
    table.column("count", Table::Align::kRight);
    table.column("total", Table::Align::kRight);
    table.column("p50", Table::Align::kRight);
    table.column("p95", Table::Align::kRight);
    for (const WaitRow& wait : report_.waits)
      table.row({"a " + clean(wait.kind), format_count(wait.duration.count()),
                 short_ns(wait.duration.total_ns()), short_ns(wait.duration.quantile(0.5)),
                 short_ns(wait.duration.quantile(0.95))});
    out_ += "\n" + table.render(terminal_);
  }

  void coverage() {
    const Coverage& coverage = report_.coverage;
    out_ += "\n" + bold("coverage") + "\n";
    std::string line = launches(coverage.launches_seen) + " recorded";
    if (coverage.launches_counted > 0) {
      line += fmt::format(" of {} counted ({})", format_count(coverage.launches_counted),
                          percent(coverage.launches_seen / coverage.launches_counted));
    } else {
      line += "; how many there were was not counted";
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
    cost();
    sampling();
    processes();
    for (const CoverageNote& note : coverage.notes) {
      std::string text = note.cause + ": " + note.text;
      if (note.count > 0) text += fmt::format(" ({})", format_count(note.count));
      if (note.seconds > 0) text += fmt::format(" ({})", short_ns(note.seconds * 1e9));
      paragraph(Style::kYellow, "! " + clean(text), "  ");
    }
    unknown();
  }

  // Where nobody would know that there is more to ask for.
  void unrecorded_waits() {
    if (report_.coverage.sampling.waits.value_or(true) || !report_.waits.empty()) return;
    paragraph(Style::kDim, "the host's waits were not recorded: purlin profile --waits does", "  ");
  }

  void windows() {
    const Sampling& sampling = report_.coverage.sampling;
    if (sampling.governed_ns <= 0 || report_.coverage.launches_sampled_out < 0.5) return;
    std::string text = fmt::format(
        "sampled: recording was on for {} of the time, in {} windows; counts and times are "
        "estimates",
        percent(sampling.recorded_ns / sampling.governed_ns), format_count(sampling.windows));
    if (sampling.total_error() > 0)
      text +=
          fmt::format(", the kernels' total within ±{} (95 %)", percent(sampling.total_error()));
    if (sampling.timed_windows > 0 && sampling.counted_windows > 0)
      text += fmt::format("; {} windows are weighed by time alone",
                          format_count(sampling.timed_windows));
    else if (sampling.timed_windows > 0)
      text += "; windows are weighed by time, as if the program did as much in them as outside";
    out_ += fold(text, "  ", width());
  }

  void drawn() {
    double recorded = 0, all = 0;
    for (const ProcessInfo& process : report_.processes) {
      recorded += process.stands_for > 0 ? 1 : 0;
      all += process.stands_for;
    }
    if (all > recorded)
      out_ +=
          fold(fmt::format("drawn: {} recorded {} for an estimated {} (--sample); counts and "
                           "times are of those recorded",
                           format_count(recorded),
                           recorded == 1 ? "process stands" : "processes stand", format_count(all)),
               "  ", width());
  }

  // What Purlin's own capture took; other tools do not say.
  void cost() {
    const Coverage& coverage = report_.coverage;
    if (coverage.overhead_ns <= 0 && coverage.bytes_written == 0) return;
    std::string text = fmt::format("{} taken from the program", format_ns(coverage.overhead_ns));
    if (report_.wall_ns > 0)
      text += fmt::format(" ({:.2f}% of the wall time)",
                          100 * coverage.overhead_ns / static_cast<double>(report_.wall_ns));
    if (coverage.sampling.hidden_ns >= 1e6)
      text += fmt::format(", and {} while it waited for a device, which it does not feel",
                          format_ns(coverage.sampling.hidden_ns));
    if (coverage.bytes_written > 0)
      text +=
          fmt::format(", {} written", format_bytes(static_cast<double>(coverage.bytes_written)));
    out_ += fold(text, "  ", width());
  }

  // What stalls were sampled from, and what of the samples is in no row.
  void sampling() {
    const StallSampling& all = report_.stall_sampling;
    if (all.windows <= 0 && all.samples <= 0) return;
    std::string text =
        fmt::format("stalls: {} samples in {} windows, {} in all", format_count(all.samples),
                    format_count(all.windows), short_ns(all.sampled_ns));
    if (all.least_period > 0)
      text +=
          all.least_period == all.most_period
              ? fmt::format(", one of an SM in {} cycles", all.least_period)
              : fmt::format(", one of an SM in {} to {} cycles", all.least_period, all.most_period);
    if (all.dropped > 0) text += fmt::format(", {} dropped by the GPU", format_count(all.dropped));
    if (all.untold > 0)
      text += fmt::format(", {} in code the driver does not tell of", format_count(all.untold));
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
      // Other tools do not say how a process ended.
      const bool cut = !process.complete && (report_.source.empty() || report_.source == "purlin");
      const std::string end = cut ? "  cut short" : "";
      std::string text = fmt::format("  pid {}", process.pid);
      if (process.rank >= 0) text += fmt::format(", rank {}", process.rank);
      if (process.stands_for == 0) text += ", left out";
      if (process.stands_for > 1) text += fmt::format(", stands for {}", process.stands_for);
      if (!process.layer.empty()) text += " (" + clean(process.layer) + ")";
      text += "  " + clean(process.command);
      out_ +=
          dim(elide_middle(text, width() - end.size())) + terminal_.paint(Style::kRed, end) + "\n";
    }
    if (count > kShownProcesses)
      out_ += dim(fmt::format("  and {} more processes", count - kShownProcesses)) + "\n";
  }

  void unknown() {
    for (const std::string& limit : report_.timeline.limits)
      paragraph(Style::kDim, "- " + clean(limit), "  ");
    if (devices_.count("") > 0)
      paragraph(
          Style::kDim,
          "- the GPU's model was not recorded, so its roofs are not known: --gpu NAME tells it",
          "  ");
    double without = 0, guessed = 0;
    for (const KernelStat& kernel : report_.kernels) {
      if (kernel.roof.bound == Bound::kUnknown) without += kernel.share;
      if (is_guess(kernel.roof)) guessed += kernel.share;
    }
    if (bounds_known_ && without >= 0.001)
      paragraph(
          Style::kDim,
          fmt::format("- what binds the kernels that take {} of the time is not known, for want of "
                      "counters or a problem shape",
                      percent(without)),
          "  ");
    if (guessed > 0)
      paragraph(Style::kDim,
                fmt::format("- ?: what such kernels usually are ({} of the time); neither counters "
                            "nor a problem shape were recorded",
                            percent(guessed)),
                "  ");
  }

  const Report& report_;
  const Terminal& terminal_;
  const TextOptions& options_;
  std::set<std::string> devices_, builds_;
  bool bounds_known_ = false;
  double most_share_ = 1e-9;  // bars are drawn against the heaviest row
  std::string out_;
};

}  // namespace

std::string render_text(const Report& report, const Terminal& terminal,
                        const TextOptions& options) {
  return Renderer(report, terminal, options).render();
}

}  // namespace purlin::analyze
