// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/text.h"

#include "analyze/report/finding.h"
#include "analyze/report/selection.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace purlin::analyze {
namespace {

constexpr int kBarCells = 6;
constexpr std::size_t kNameLines = 3;

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

class Renderer {
 public:
  Renderer(const Report& report, const Terminal& terminal, const TextOptions& options)
      : report_(report), terminal_(terminal), options_(options) {
    for (const KernelStat& kernel : report.kernels) {
      devices_.insert(kernel.device);
      builds_.insert(kernel.build);
      max_share_ = std::max(max_share_, kernel.share);
      bounds_known_ |= has_bound(kernel.roof);
    }
  }

  std::string render() {
    head();
    if (report_.partial) partial();
    kernels();
    const std::string timeline = render_timeline(report_, terminal_);
    if (!timeline.empty()) out_ += "\n" + timeline;
    copies();
    waits();
    advice();
    out_ += render_coverage(report_, terminal_);
    return std::move(out_);
  }

 private:
  std::string bold(std::string_view text) const { return terminal_.paint(Style::kBold, text); }
  std::string dim(std::string_view text) const { return terminal_.paint(Style::kDim, text); }
  std::size_t width() const { return text_width(terminal_); }

  void paragraph(Style style, std::string_view text, std::string_view indent) {
    out_ += painted(style, text, indent, terminal_);
  }

  // A total that is no base for a conclusion is not stated without its error.
  std::string estimated() const {
    const Sampling& sampling = report_.coverage.sampling;
    if (report_.coverage.launches_sampled_out < 0.5) return "";
    if (sampling.total_unknown())
      return fmt::format("An estimated (±{}) ", percent(sampling.total_error()));
    return beyond_wall_time(report_) ? "An estimated " : "";
  }

  void head() {
    if (!report_.command.empty())
      out_ += bold(elide_middle("$ " + clean(report_.command), width())) + "\n";
    if (!report_.kernels.empty() || !report_.timeline.devices.empty())
      paragraph(Style::kBold, ">> " + find(report_).front().text, "");
    std::string line =
        report_.launches > 0
            ? fmt::format("{}{} of kernels in {}", estimated(), format_ns(report_.kernel_ns),
                          counted(report_.launches, "launch"))
            : std::string(report_.kernels.empty() ? "No kernels" : "No durations of kernels");
    if (report_.wall_ns > 0)
      line += fmt::format(", wall time {}", format_ns(static_cast<double>(report_.wall_ns)));
    if (report_.exit_code != 0) line += fmt::format(", exit code {}", report_.exit_code);
    if (const std::string& build = report_.environment.build; !build.empty())
      line += ", build " + clean(build);
    if (!report_.source.empty() && report_.source != "purlin")
      line += ", recorded by " + clean(report_.source);
    paragraph(Style::kPlain, line, "");
    runs();
    devices();
  }

  void runs() {
    constexpr std::size_t kShownRuns = 3;
    const std::vector<RunLabels>& all = report_.runs;
    for (std::size_t i = 0; i < std::min(all.size(), kShownRuns); ++i)
      out_ += dim(elide_middle(clean(to_text(all[i])), width())) + "\n";
    if (all.size() > kShownRuns)
      out_ += dim(fmt::format("and {} more places", all.size() - kShownRuns)) + "\n";
  }

  static std::string device_facts(const DeviceInfo& device) {
    std::string facts = device.name.empty() ? "model not known" : device.name;
    if (!device.arch.empty()) facts += ", " + device.arch;
    if (device.compute_units > 0) facts += ", " + counted(device.compute_units, "unit");
    if (!device.driver.empty() && device.driver != device.toolkit)
      facts += ", " + driver_text(device.driver);
    if (!device.toolkit.empty()) facts += ", " + device.toolkit;
    return facts;
  }

  // One line for all devices with the same facts. Each rank's recording lists the devices of its
  // host, so the same id may come several times.
  void devices() {
    constexpr std::size_t kShownIds = 4;
    struct Alike {
      std::string facts;
      std::vector<std::string> ids;  // distinct, in order
      std::map<std::string, std::size_t> entries;
    };
    std::vector<Alike> lines;
    for (const DeviceInfo& device : report_.environment.devices) {
      const std::string facts = device_facts(device);
      auto line = std::find_if(lines.begin(), lines.end(),
                               [&](const Alike& one) { return one.facts == facts; });
      if (line == lines.end()) line = lines.insert(lines.end(), {facts, {}, {}});
      if (line->entries[device.id]++ == 0) line->ids.push_back(device.id);
    }
    for (const Alike& line : lines) {
      std::vector<std::string> ids;
      std::size_t recordings = 1, unnamed = 0;
      for (const std::string& id : line.ids) {
        const std::size_t entries = line.entries.at(id);
        if (id.empty()) {
          unnamed = entries;
        } else {
          ids.push_back(id);
          recordings = std::max(recordings, entries);
        }
      }
      std::string text = unnamed > 1 ? fmt::format("{} x {}", unnamed, line.facts) : line.facts;
      if (!ids.empty()) {
        const std::size_t shown = std::min(ids.size(), kShownIds);
        std::string names =
            join({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown)}, ", ");
        if (shown < ids.size()) names += fmt::format(" and {} more", ids.size() - shown);
        text.insert(0, names + "  ");
      }
      if (recordings > 1) text += fmt::format(", in {}", counted(recordings, "recording"));
      out_ += dim(elide_middle(clean(text), width())) + "\n";
    }
  }

  void partial() {
    out_ += "\n";
    paragraph(Style::kRed,
              "PARTIAL PROFILE: it was damaged or cut short. The report covers the records up to "
              "the last complete part. Shares and totals are those of this part only.",
              "");
  }

  std::string bound_cell(const Roof& roof) const {
    const std::string text = bound_text(roof);
    if (!has_bound(roof) || is_guess(roof)) return dim(text);
    return terminal_.paint(style_of(roof.bound), text);
  }

  // Columns except the last; the name takes the rest of the line.
  std::vector<std::string> cells(const KernelStat& kernel) const {
    const Sketch& duration = kernel.duration;
    std::vector<std::string> out = {percent(kernel.share)};
    if (has_bar()) {
      const std::string bar = terminal_.bar(kernel.share / max_share_, kBarCells);
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

  // "128x4 / 256", without the extents of 1 at the end.
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

  // The known facts of the problem, under the name.
  std::string problem(const KernelStat& kernel) const {
    std::vector<std::string> parts;
    if (bounds_known_ && kernel.label != kernel.name.op_class)
      parts.emplace_back(kernel.name.op_class);
    // "bf16 tensor" gives the element type and the roof together; "dram" is implied for memory.
    const std::string& roof = kernel.roof.ceiling;
    const bool in_roof = !kernel.dtype.empty() && starts_with(roof, kernel.dtype);
    std::string shape = in_roof ? roof : dtype_text(kernel);
    if (!kernel.shape.empty()) shape += (shape.empty() ? "" : " ") + kernel.shape;
    if (!shape.empty()) parts.push_back(clean(shape));
    if (kernel.kernels > 1) parts.push_back(fmt::format("{} kernels", kernel.kernels));
    if (report_.group_by == GroupBy::kLaunch) {
      parts.push_back(launch_text(kernel.launch));
    } else if (kernel.launch_shapes > 1) {
      parts.push_back(fmt::format("{} launch shapes", kernel.launch_shapes));
    }
    if (!in_roof && !roof.empty() && roof != "dram") parts.push_back("roof " + clean(roof));
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
        out_ += fmt::format("\nNo kernel matches '{}'; {} left out\n", clean(report_.filter),
                            counted(report_.rows_left_out, "row"));
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
      out_ += dim(fmt::format("{:>5}  in {} without a match for '{}'",
                              percent(std::max(0.0, 1 - left - listed)),
                              counted(report_.rows_left_out, "row"), clean(report_.filter))) +
              "\n";
  }

  void copies() {
    if (report_.copies.empty()) return;
    Table table;
    table.column("memcpy, memset");
    for (const char* title : {"total", "count", "p50", "bytes", "rate"})
      table.column(title, Table::Align::kRight);
    const bool peaks = std::any_of(report_.copies.begin(), report_.copies.end(),
                                   [](const CopyStat& copy) { return copy.utilization > 0; });
    if (peaks) table.column("of peak", Table::Align::kRight);
    bool twice = false;
    for (const CopyStat& copy : report_.copies) {
      const double ns = copy.duration.total_ns();
      const double moved = std::max(copy.bytes, copy.traffic_bytes);
      twice |= copy.traffic_bytes > copy.bytes;
      std::vector<std::string> cells = {clean(copy.kind),
                                        short_ns(ns),
                                        format_count(copy.duration.count()),
                                        short_ns(copy.duration.quantile(0.5)),
                                        copy.bytes > 0 ? format_bytes(copy.bytes) : "-",
                                        ns > 0 && moved > 0 ? si(moved / ns * 1e9, "B/s") : "-"};
      if (peaks) cells.push_back(copy.utilization > 0 ? percent(copy.utilization) : "-");
      table.row(std::move(cells));
    }
    out_ += "\n" + table.render(terminal_);
    if (twice) paragraph(Style::kDim, "the rate of d2d counts the read and the write", "");
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
    paragraph(Style::kDim,
              "purlin advise " + file + " shows reasons, instructions and changes without effect",
              "");
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

  const Report& report_;
  const Terminal& terminal_;
  const TextOptions& options_;
  std::set<std::string> devices_, builds_;
  bool bounds_known_ = false;
  double max_share_ = 1e-9;  // bars are drawn against the heaviest row
  std::string out_;
};

}  // namespace

std::string render_text(const Report& report, const Terminal& terminal,
                        const TextOptions& options) {
  return Renderer(report, terminal, options).render();
}

}  // namespace purlin::analyze
