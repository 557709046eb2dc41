// SPDX-License-Identifier: Apache-2.0
#include "analyze/report_text.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr int kBarCells = 6;
constexpr std::size_t kShownProcesses = 8;

Style style_of(std::string_view op_class) {
  if (op_class == "gemm" || op_class == "conv" || op_class == "attention") return Style::kGreen;
  if (op_class == "copy" || op_class == "layout") return Style::kYellow;
  if (op_class == "communication") return Style::kBlue;
  if (op_class == "other") return Style::kDim;
  return Style::kCyan;
}

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string launches(double count) {
  return format_count(count) + (count == 1 ? " launch" : " launches");
}

// Folds text at blanks so that no line is wider than the terminal.
std::string fold(std::string_view text, std::string_view indent, int width) {
  std::string out(indent), line(indent);
  out.clear();
  for (const std::string& word : split(text, ' ')) {
    const bool fresh = line.size() == indent.size();
    if (!fresh && line.size() + 1 + word.size() > static_cast<std::size_t>(width)) {
      out += line + "\n";
      line = indent;
    } else if (!fresh) {
      line += ' ';
    }
    line += word;
  }
  return out + line + "\n";
}

class Renderer {
 public:
  Renderer(const Report& report, const Terminal& terminal, const TextOptions& options)
      : report_(report), terminal_(terminal), options_(options) {}

  std::string render() {
    head();
    if (report_.partial) partial();
    kernels();
    copies();
    coverage();
    return std::move(out_);
  }

 private:
  std::string bold(std::string_view text) const { return terminal_.paint(Style::kBold, text); }
  std::string dim(std::string_view text) const { return terminal_.paint(Style::kDim, text); }
  std::size_t width() const { return static_cast<std::size_t>(std::max(60, terminal_.width())); }

  void head() {
    const Environment& environment = report_.environment;
    if (!report_.command.empty())
      out_ += bold(elide_middle("$ " + report_.command, width())) + "\n";
    std::string line = report_.kernels.empty()
                           ? std::string("No kernels")
                           : fmt::format("{} of kernels in {}", format_ns(report_.kernel_ns),
                                         launches(report_.launches));
    if (report_.wall_ns > 0) {
      line += fmt::format(", wall time {}", format_ns(static_cast<double>(report_.wall_ns)));
      if (report_.exit_code != 0) line += fmt::format(", exit code {}", report_.exit_code);
    }
    if (!environment.build.empty()) line += fmt::format(", build {}", environment.build);
    out_ += line + "\n";
    for (const DeviceInfo& device : environment.devices) {
      std::string facts = device.id.empty() ? device.name : device.id + "  " + device.name;
      if (!device.arch.empty()) facts += ", " + device.arch;
      if (device.compute_units > 0) facts += fmt::format(", {} units", device.compute_units);
      if (!device.driver.empty()) facts += ", driver " + device.driver;
      if (!device.toolkit.empty()) facts += ", " + device.toolkit;
      out_ += dim(elide_middle(facts, width())) + "\n";
    }
  }

  void partial() {
    const std::string text =
        "PARTIAL PROFILE: it was damaged or cut short. What follows is what was recorded up to the "
        "last complete part; shares and totals are of that part only.";
    out_ += "\n";
    for (const std::string& line : split(fold(text, "", terminal_.width()), '\n'))
      if (!line.empty()) out_ += terminal_.paint(Style::kRed, line) + "\n";
  }

  // Columns but the last; the name takes what is left of the line.
  std::vector<std::string> cells(const KernelStat& kernel) const {
    const Sketch& duration = kernel.duration;
    std::string bar = terminal_.bar(kernel.share, kBarCells);
    bar = terminal_.paint(Style::kCyan, bar) + std::string(kBarCells - visible_width(bar), ' ');
    std::vector<std::string> out = {percent(kernel.share),
                                    bar,
                                    format_ns(duration.total_ns()),
                                    format_count(duration.count()),
                                    format_ns(duration.quantile(0.5)),
                                    format_ns(duration.quantile(0.95))};
    if (report_.group_by == GroupBy::kLaunch) {
      out.push_back(launch_text(kernel.launch));
    } else {
      out.push_back(terminal_.paint(style_of(kernel.name.op_class), kernel.name.op_class));
    }
    return out;
  }

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

  void kernels() {
    if (report_.kernels.empty()) return;
    const std::size_t all = report_.kernels.size();
    const std::size_t shown =
        options_.top > 0 ? std::min(all, static_cast<std::size_t>(options_.top)) : all;
    const bool several_devices = devices_shown(shown) > 1;
    std::vector<std::string> titles = {
        "share",
        "",
        "total",
        "count",
        "p50",
        "p95",
        report_.group_by == GroupBy::kLaunch ? "grid / block" : "class"};
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
    const std::size_t room = std::max<std::size_t>(24, width() > used ? width() - used : 0);

    Table table;
    for (std::size_t c = 0; c < titles.size(); ++c)
      table.column(titles[c], c == 1 || c == 6 ? Table::Align::kLeft : Table::Align::kRight);
    table.column("kernel");
    for (std::size_t i = 0; i < shown; ++i) {
      std::string label = report_.kernels[i].label;
      if (!report_.kernels[i].shape.empty()) label += " [" + report_.kernels[i].shape + "]";
      if (several_devices) label += " on " + report_.kernels[i].device;
      rows[i].push_back(elide_middle(label, room));
      table.row(std::move(rows[i]));
    }
    out_ += "\n" + table.render(terminal_);
    if (shown == all) return;
    double rest = 0;
    for (std::size_t i = shown; i < all; ++i) rest += report_.kernels[i].share;
    out_ +=
        dim(fmt::format("{:>6}  in the other {}; --top 0 shows all", percent(rest), all - shown)) +
        "\n";
  }

  std::size_t devices_shown(std::size_t shown) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < shown; ++i)
      if (std::find(names.begin(), names.end(), report_.kernels[i].device) == names.end())
        names.push_back(report_.kernels[i].device);
    return names.size();
  }

  void copies() {
    if (report_.copies.empty()) return;
    Table table;
    table.column("copies and sets");
    for (const char* title : {"total", "count", "p50", "bytes", "rate"})
      table.column(title, Table::Align::kRight);
    for (const CopyStat& copy : report_.copies) {
      const double ns = copy.duration.total_ns();
      table.row({copy.kind, format_ns(ns), format_count(copy.duration.count()),
                 format_ns(copy.duration.quantile(0.5)), format_bytes(copy.bytes),
                 ns > 0 ? fmt::format("{:.1f} GB/s", copy.bytes / ns) : "-"});
    }
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
    out_ += "  " + line + "\n";
    std::string cost =
        fmt::format("  {} spent in Purlin's callbacks", format_ns(coverage.overhead_ns));
    if (report_.wall_ns > 0)
      cost += fmt::format(" ({:.2f}% of the wall time)",
                          100 * coverage.overhead_ns / static_cast<double>(report_.wall_ns));
    if (coverage.bytes_written > 0)
      cost +=
          fmt::format(", {} written", format_bytes(static_cast<double>(coverage.bytes_written)));
    out_ += cost + "\n";
    processes();
    for (const CoverageNote& note : coverage.notes) {
      std::string text = note.cause + ": " + note.text;
      if (note.count > 0) text += fmt::format(" ({})", format_count(note.count));
      const std::string folded = fold("! " + text, "  ", terminal_.width());
      out_ += terminal_.paint(Style::kYellow, folded.substr(0, folded.size() - 1)) + "\n";
    }
  }

  void processes() {
    const std::size_t count = report_.processes.size();
    for (std::size_t i = 0; i < std::min(count, kShownProcesses); ++i) {
      const ProcessInfo& process = report_.processes[i];
      const std::string end = process.complete ? "" : "  cut short";
      const std::string text =
          fmt::format("  pid {} ({})  {}", process.pid, process.layer, process.command);
      out_ +=
          dim(elide_middle(text, width() - end.size())) + terminal_.paint(Style::kRed, end) + "\n";
    }
    if (count > kShownProcesses)
      out_ += dim(fmt::format("  and {} more processes", count - kShownProcesses)) + "\n";
  }

  const Report& report_;
  const Terminal& terminal_;
  const TextOptions& options_;
  std::string out_;
};

}  // namespace

std::string render_text(const Report& report, const Terminal& terminal,
                        const TextOptions& options) {
  return Renderer(report, terminal, options).render();
}

}  // namespace purlin::analyze
