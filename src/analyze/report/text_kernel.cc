// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/histogram.h"
#include "analyze/report/selection.h"
#include "analyze/report/text.h"
#include "analyze/roofline/counters.h"
#include "analyze/stalls/stalls.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr std::size_t kKeyWidth = 12;
constexpr int kBins = 16, kHistogramCells = 30;

std::string counter_text(double value) {
  return value == static_cast<double>(static_cast<std::int64_t>(value)) && value < 1e15
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{:.6g}", value);
}

class KernelRenderer {
 public:
  KernelRenderer(const KernelStat& kernel, GroupBy group_by, const Report& by_launch,
                 const Terminal& terminal, const TextOptions& options)
      : kernel_(kernel),
        group_by_(group_by),
        by_launch_(by_launch),
        terminal_(terminal),
        options_(options) {}

  std::string render() {
    heading(clean(kernel_.label));
    for (const std::string& line : wrap_name(clean(kernel_.name.full), width() - 2, 1000))
      out_ += terminal_.paint(Style::kDim, "  " + line) + "\n";
    what();
    roof();
    occupancy();
    distribution();
    stalls();
    counters();
    shapes();
    return std::move(out_);
  }

 private:
  std::size_t width() const { return text_width(terminal_); }
  void heading(std::string_view text) {
    for (const std::string& line : wrap_name(text, width(), 100))
      out_ += terminal_.paint(Style::kBold, line) + "\n";
  }
  void line(std::string_view key, std::string_view text) {
    std::string folded = fold(text, std::string(2 + kKeyWidth, ' '), width());
    folded.replace(2, key.size(), key);
    out_ += folded;
  }

  void what() {
    std::string text(kernel_.name.op_class);
    if (!kernel_.name.family.empty()) text += fmt::format(" ({})", kernel_.name.family);
    if (kernel_.kernels > 1) text += fmt::format(", {} kernels", kernel_.kernels);
    if (!kernel_.op.empty()) text += ", of " + clean(kernel_.op);
    if (const std::string dtype = dtype_text(kernel_); !dtype.empty()) text += ", " + clean(dtype);
    if (!kernel_.shape.empty()) text += ", " + clean(kernel_.shape);
    if (!kernel_.device.empty()) text += ", on " + clean(kernel_.device);
    line("what", text);
    built();
    line("time", kernel_.duration.empty()
                     ? std::string("not recorded")
                     : fmt::format("{} of the kernel time: {} in {}", percent(kernel_.share),
                                   short_ns(kernel_.duration.total_ns()),
                                   counted(kernel_.duration.count(), "launch")));
    line("resources", resources_text(kernel_));
  }

  // The facts of the kernel's build that its name holds.
  void built() {
    const KernelName& name = kernel_.name;
    std::vector<std::string> parts;
    if (!name.dtype.empty()) parts.emplace_back(name.dtype);
    if (!name.accumulator.empty()) parts.push_back("summed in " + std::string(name.accumulator));
    if (!name.tile.empty()) parts.push_back("tile " + clean(name.tile));
    if (name.stages > 0) parts.push_back(counted(name.stages, "stage"));
    if (!name.layout.empty()) parts.push_back("layout " + clean(name.layout));
    if (!name.arch.empty()) parts.push_back(clean(name.arch));
    if (name.tensor != TensorCores::kUnknown)
      parts.emplace_back(name.tensor == TensorCores::kYes ? "tensor cores" : "no tensor cores");
    if (name.split_k) parts.emplace_back("split K");
    if (!parts.empty()) line("built", join(parts, ", "));
  }

  static std::string amount(double measured, Provenance from, double model, std::string_view unit) {
    if (measured <= 0) return fmt::format("{} not known", unit);
    std::string text = fmt::format("{} ({})", si(measured, unit),
                                   from == Provenance::kCounter ? "counters" : "shape model");
    if (from == Provenance::kCounter && model > 0)
      text += fmt::format(", shape model {}", si(model, unit));
    return text;
  }

  void roof() {
    const Roof& roof = kernel_.roof;
    if (roof.flops <= 0 && roof.bytes <= 0 && roof.utilization <= 0) {
      line("roof", "not known: neither counters nor a problem shape were recorded");
      if (!roof.evidence.empty())
        line("bound", fmt::format("{}: {}", has_bound(roof) ? bound_text(roof) : "not known",
                                  clean(roof.evidence)));
      return;
    }
    if (roof.bound_from == "op_class") {
      line("roof", "not known: durations, counters or a problem shape are missing");
    } else {
      std::string text(to_text(roof.bound));
      text += " bound";
      if (roof.utilization > 0)
        text +=
            fmt::format(", at {} of the {} roof", percent(roof.utilization), clean(roof.ceiling));
      line("roof", text);
    }
    if (!roof.evidence.empty()) line("evidence", clean(roof.evidence));
    line("work", amount(roof.flops, roof.flops_from, roof.model_flops, "FLOP") + "; " +
                     amount(roof.bytes, roof.bytes_from, roof.model_bytes, "B") + "; per launch");
    std::string rates;
    if (roof.flops_per_s > 0) rates = si(roof.flops_per_s, "FLOP/s");
    if (roof.bytes_per_s > 0) rates += (rates.empty() ? "" : ", ") + si(roof.bytes_per_s, "B/s");
    if (roof.intensity > 0) rates += fmt::format(", {:.3g} FLOP/B", roof.intensity);
    if (roof.attainable_flops_per_s > 0)
      rates += fmt::format(", {} attainable there", si(roof.attainable_flops_per_s, "FLOP/s"));
    if (!rates.empty()) line("rates", rates);
    if (const double headroom = headroom_ns(kernel_); headroom > 0)
      line("headroom", fmt::format("{} less at its roof", short_ns(headroom)));
    const Target target = target_of(roof, options_.targets);
    if (target.reached()) {
      line("target", fmt::format("reached: {:.0f}% of that roof", 100 * target.fraction));
    } else if (target.fraction > 0) {
      line("target",
           fmt::format("{:.0f}% of that roof{}: {:.2f} times as fast, {} less",
                       100 * target.fraction,
                       target.flops_per_s > 0 ? ", " + si(target.flops_per_s, "FLOP/s") : "",
                       target.speedup, short_ns(kernel_.duration.total_ns() * target.saved_share)));
    }
  }

  void occupancy() {
    const Roof& roof = kernel_.roof;
    if (!roof.cannot_launch.empty())
      line("occupancy", "cannot launch on this GPU: " + clean(roof.cannot_launch));
    if (roof.occupancy_theoretical <= 0 && roof.occupancy_achieved <= 0) return;
    std::string text;
    if (roof.occupancy_theoretical > 0)
      text = fmt::format("{} theoretical", percent(roof.occupancy_theoretical));
    if (!roof.occupancy_limiter.empty())
      text += fmt::format(", limited by {}", clean(roof.occupancy_limiter));
    if (roof.occupancy_achieved > 0)
      text += fmt::format("{}{} achieved ({})", text.empty() ? "" : "; ",
                          percent(roof.occupancy_achieved),
                          roof.occupancy_measured ? "counter" : "estimated from the grid");
    line("occupancy", text);
  }

  void distribution() {
    const Sketch& duration = kernel_.duration;
    if (duration.empty()) return;
    line("durations",
         fmt::format("min {}, p5 {}, p50 {}, p95 {}, p99 {}, max {}", short_ns(duration.min_ns()),
                     short_ns(duration.quantile(0.05)), short_ns(duration.quantile(0.5)),
                     short_ns(duration.quantile(0.95)), short_ns(duration.quantile(0.99)),
                     short_ns(duration.max_ns())));
    const std::vector<Bin> bins = histogram(duration, kBins);
    if (bins.size() < 2) return;
    double most = 0;
    for (const Bin& bin : bins) most = std::max(most, bin.count);
    for (const Bin& bin : bins) {
      out_ += fmt::format("{:>{}}  {:>7}", "", kKeyWidth, short_ns(bin.low_ns));
      if (bin.count > 0)
        out_ += fmt::format(
            "  {} {}",
            terminal_.paint(Style::kCyan, terminal_.bar(bin.count / most, kHistogramCells)),
            format_count(bin.count));
      out_ += "\n";
    }
  }

  void stalls() {
    const StallTable stalls = read_stalls(kernel_.counters, kernel_.sampled);
    if (stalls.empty()) return;
    constexpr std::size_t kShown = 8;
    Table table;
    table.column(stalls.sampled ? "of samples" : "of warps", Table::Align::kRight);
    table.column("of stalls", Table::Align::kRight);
    table.column("warps wait for");
    for (std::size_t i = 0; i < std::min(kShown, stalls.reasons.size()); ++i) {
      const StallReason& reason = stalls.reasons[i];
      table.row({percent(reason.share), reason.stalled > 0 ? percent(reason.stalled) : "-",
                 clean(reason.name) + (reason.meaning.empty() ? "" : ": " + reason.meaning)});
    }
    out_ += "\n" + table.render(terminal_);
    const std::string why = why_occupancy_does_not_help(
        stalls, read_counters(kernel_.counters, kernel_.duration.mean_ns()),
        kernel_.roof.occupancy_achieved);
    if (!why.empty()) out_ += fold("More occupancy does not help: " + why, "", width());
    stall_lines();
  }

  void stall_lines() {
    constexpr std::size_t kShown = 8, kReasons = 2;
    const StallSites& sampled = kernel_.sampled;
    if (sampled.empty()) return;
    Table table;
    table.column("of samples", Table::Align::kRight);
    table.column("where");
    table.column("warps wait for");
    const std::size_t shown = std::min(kShown, sampled.lines.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const StallLine& line = sampled.lines[i];
      std::vector<std::string> reasons;
      for (std::size_t k = 0; k < std::min(kReasons, line.reasons.size()); ++k)
        reasons.push_back(fmt::format("{} {}", clean(line.reasons[k].first),
                                      percent(line.reasons[k].second / line.samples)));
      const std::string where = clean(line.where());
      table.row({percent(line.samples / sampled.samples),
                 where.empty() ? "(place not recorded)" : elide_middle(where, width() / 2),
                 join(reasons, ", ")});
    }
    out_ += "\n" + table.render(terminal_);
    if (shown < sampled.lines.size())
      out_ += terminal_.paint(
          Style::kDim, fmt::format("and {} more {}; --json has 50\n", sampled.lines.size() - shown,
                                   noun_for(sampled.lines.size() - shown, "place")));
    if (group_by_ == GroupBy::kShape || group_by_ == GroupBy::kLaunch)
      out_ += terminal_.paint(Style::kDim,
                              "samples are not split by launch shape: these cover all shapes\n");
  }

  void counters() {
    if (kernel_.counters.empty()) return;
    out_ += "\n";
    Table table;
    table.column("counter (mean of a launch)");
    table.column("value", Table::Align::kRight);
    table.column("launches", Table::Align::kRight);
    for (const Counter& counter : kernel_.counters)
      table.row({elide_middle(clean(counter.name), width() - 36), counter_text(counter.value),
                 format_count(counter.launches)});
    out_ += table.render(terminal_);
  }

  void shapes() {
    std::vector<const KernelStat*> rows;
    for (const KernelStat& row : by_launch_.kernels)
      if (row_key(row, group_by_) == row_key(kernel_, group_by_)) rows.push_back(&row);
    if (rows.empty()) return;
    const std::size_t shown = options_.top > 0
                                  ? std::min(rows.size(), static_cast<std::size_t>(options_.top))
                                  : rows.size();
    Table table;
    for (const char* title : {"share", "total", "count", "p50", "p95"})
      table.column(title, Table::Align::kRight);
    table.column("bound");
    table.column("launch shape and problem");
    const std::size_t room = width() > 74 ? width() - 54 : 20;
    for (std::size_t i = 0; i < shown; ++i) {
      const KernelStat& row = *rows[i];
      const Sketch& duration = row.duration;
      const auto time = [&](double ns) { return duration.empty() ? "-" : short_ns(ns); };
      std::string what = kernel_.kernels > 1 ? clean(row.label) + ", " : "";
      what += to_text(row.launch);
      if (!row.op.empty()) what += ", " + clean(row.op);
      if (const std::string dtype = dtype_text(row); !dtype.empty()) what += " " + clean(dtype);
      if (!row.shape.empty()) what += " " + clean(row.shape);
      bool first = true;
      for (const std::string& part : wrap_name(what, room, 4)) {
        if (first) {
          table.row({percent(row.share), time(duration.total_ns()), format_count(duration.count()),
                     time(duration.quantile(0.5)), time(duration.quantile(0.95)),
                     bound_text(row.roof), part});
        } else {
          table.row({"", "", "", "", "", "", part});
        }
        first = false;
      }
    }
    out_ += "\n" + table.render(terminal_);
    if (shown < rows.size())
      out_ += terminal_.paint(
          Style::kDim, fmt::format("and {} more {}; --top 0 shows all\n", rows.size() - shown,
                                   noun_for(rows.size() - shown, "shape")));
  }

  const KernelStat& kernel_;
  const GroupBy group_by_;
  const Report& by_launch_;
  const Terminal& terminal_;
  const TextOptions& options_;
  std::string out_;
};

}  // namespace

std::string bound_text(const Roof& roof) {
  if (!has_bound(roof)) return "-";
  std::string text(to_text(roof.bound));
  if (is_guess(roof)) return text + "?";
  if (roof.utilization > 0) text += fmt::format(" {:.0f}%", roof.utilization * 100);
  return text;
}

std::string resources_text(const KernelStat& kernel) {
  const std::string dynamic = format_bytes(kernel.launch.dynamic_shared_bytes);
  if (kernel.registers == 0 && kernel.static_shared_bytes == 0 && kernel.local_bytes == 0)
    return "registers and memory not recorded" +
           (kernel.launch.dynamic_shared_bytes > 0
                ? fmt::format("; {} dynamic shared memory a block", dynamic)
                : std::string());
  const std::string registers =
      kernel.registers > 0
          ? fmt::format("{} {}", kernel.registers, noun_for(kernel.registers, "register"))
          : "unknown registers";
  return fmt::format(
      "{} a thread, {} static and {} dynamic shared memory a block, {} local memory a thread",
      registers, format_bytes(kernel.static_shared_bytes), dynamic,
      format_bytes(kernel.local_bytes));
}

std::string render_kernel(const KernelStat& kernel, GroupBy group_by, const Report& by_launch,
                          const Terminal& terminal, const TextOptions& options) {
  return KernelRenderer(kernel, group_by, by_launch, terminal, options).render();
}

}  // namespace purlin::analyze
