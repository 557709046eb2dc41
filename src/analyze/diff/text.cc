// SPDX-License-Identifier: Apache-2.0
// The diff for people, readable at 100 columns.
#include "base/text.h"

#include "analyze/diff/diff.h"
#include "analyze/text/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

std::string signed_ns(double ns) {
  return ns == 0 ? "0" : (ns < 0 ? "-" : "+") + short_ns(std::abs(ns));
}

std::string change_percent(double from, double to) {
  if (from <= 0) return to > 0 ? "new" : "";
  if (to <= 0) return "gone";
  if (from == to) return "";
  const double share = (to - from) / from * 100;
  return std::abs(share) < 999 ? fmt::format("{:+.1f}%", share) : fmt::format("x{:.3g}", to / from);
}

std::string count_text(double count) {
  if (count == std::floor(count) && count < 10000) return fmt::format("{:.0f}", count);
  return count < 10000 ? fmt::format("{:.3g}", count) : format_count(count);
}

class DiffRenderer {
 public:
  DiffRenderer(const Diff& diff, const Terminal& terminal, int top)
      : diff_(diff), terminal_(terminal), top_(top) {}

  std::string render() {
    side("A", diff_.a);
    side("B", diff_.b);
    totals();
    causes();
    items("slower", [](const DiffItem& item) { return item.change > 0; });
    items("faster", [](const DiffItem& item) { return item.change < 0; });
    copies();
    for (const std::string& note : diff_.notes)
      out_ +=
          terminal_.paint(Style::kYellow, trim_end(fold("! " + clean(note), "  ", width()))) + "\n";
    return std::move(out_);
  }

 private:
  std::size_t width() const { return text_width(terminal_); }
  std::string bold(std::string_view text) const { return terminal_.paint(Style::kBold, text); }
  std::string dim(std::string_view text) const { return terminal_.paint(Style::kDim, text); }
  static std::string trim_end(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  void side(const char* name, const DiffTotals& side) {
    std::vector<std::string> facts;
    if (!side.devices.empty()) facts.push_back(join(side.devices, ", "));
    if (!side.drivers.empty()) facts.push_back(driver_text(join(side.drivers, ", ")));
    if (!side.build.empty()) facts.push_back("build " + side.build);
    if (diff_.per_step) facts.push_back(counted(side.units, "step"));
    const std::string what = side.path.empty() ? side.command : side.path;
    out_ += bold(name) + "  " + elide_middle(clean(what), width() - 3) + "\n";
    if (!facts.empty())
      out_ += dim("   " + elide_middle(clean(join(facts, "; ")), width() - 3)) + "\n";
  }

  std::string colored(double change, bool certain, std::string_view text) const {
    if (!certain || change == 0) return dim(text);
    return terminal_.paint(change > 0 ? Style::kRed : Style::kGreen, text);
  }

  void totals() {
    Table table;
    table.column(diff_.per_step ? "per step" : "per run");
    for (const char* title : {"A", "B", "change", ""}) table.column(title, Table::Align::kRight);
    const auto row = [&](std::string what, double a, double b) {
      if (a == 0 && b == 0) return;
      table.row(
          {std::move(what), short_ns(a), short_ns(b), signed_ns(b - a), change_percent(a, b)});
    };
    const auto of_step = [&](const char* what, std::int64_t StepTime::*part) {
      row(what, static_cast<double>(diff_.a.step.*part), static_cast<double>(diff_.b.step.*part));
    };
    if (diff_.per_step) {
      of_step("wall time", &StepTime::duration_ns);
      of_step("  kernels", &StepTime::kernel_ns);
      of_step("  communication", &StepTime::communication_ns);
      of_step("  memcpy", &StepTime::copy_ns);
      of_step("  memset", &StepTime::set_ns);
      of_step("  launching", &StepTime::runtime_ns);
      of_step("  data loader", &StepTime::data_loader_ns);
      of_step("  host", &StepTime::cpu_ns);
      of_step("  other", &StepTime::other_ns);
    }
    row("kernels, summed", diff_.a.kernel, diff_.b.kernel);
    row("memcpy and memset, summed", diff_.a.copy, diff_.b.copy);
    table.row({"launches", count_text(diff_.a.launches), count_text(diff_.b.launches), "",
               change_percent(diff_.a.launches, diff_.b.launches)});
    out_ += "\n" + table.render(terminal_);
  }

  std::vector<std::string> parts_of(const Causes& causes, double least) const {
    std::vector<std::string> parts;
    const auto part = [&](double ns, const char* what) {
      if (std::abs(ns) > least) parts.push_back(signed_ns(ns) + " " + what);
    };
    part(causes.count, "launches");
    part(causes.duration, "duration");
    part(causes.shape, "shape");
    part(causes.kernel, "other kernel");
    part(causes.environment, "environment");
    part(causes.gone, "gone");
    part(causes.appeared, "new");
    return parts;
  }

  void causes() {
    const std::vector<std::string> parts = parts_of(diff_.causes, 0);
    if (parts.empty()) return;
    out_ += "\n" + fold(fmt::format("Kernels {} = {}", signed_ns(diff_.change), join(parts, ", ")),
                        "", width());
  }

  template <class Wanted>
  void items(const char* title, Wanted wanted) {
    std::vector<const DiffItem*> chosen;
    for (const DiffItem& item : diff_.items)
      if (wanted(item)) chosen.push_back(&item);
    if (chosen.empty()) return;
    const std::size_t all = chosen.size();
    if (top_ > 0) chosen.resize(std::min(all, static_cast<std::size_t>(top_)));
    table(title, chosen);
    double left = 0;
    std::size_t rest = 0;
    for (const DiffItem& item : diff_.items)
      if (wanted(item) && ++rest > chosen.size()) left += item.change;
    if (all > chosen.size())
      out_ += dim(fmt::format("{:>9}  in the other {}; --top 0 shows all", signed_ns(left),
                              all - chosen.size())) +
              "\n";
  }

  void table(const char* title, const std::vector<const DiffItem*>& chosen) {
    std::vector<std::vector<std::string>> rows;
    const std::vector<std::string> titles = {title, "", "A", "B", "count", "p50 A", "p50 B"};
    std::vector<std::size_t> widths;
    for (const std::string& text : titles) widths.push_back(text.size());
    for (const DiffItem* item : chosen) {
      const bool in_a = item->a.count > 0, in_b = item->b.count > 0;
      std::string count = count_text(in_a ? item->a.count : item->b.count);
      if (in_a && in_b && item->a.count != item->b.count)
        count += " > " + count_text(item->b.count);
      rows.push_back({colored(item->change, item->certain, signed_ns(item->change)),
                      change_percent(item->a.total, item->b.total),
                      in_a ? short_ns(item->a.total) : "-", in_b ? short_ns(item->b.total) : "-",
                      count, in_a ? short_ns(item->a.duration.quantile(0.5)) : "-",
                      in_b ? short_ns(item->b.duration.quantile(0.5)) : "-"});
      for (std::size_t c = 0; c < widths.size(); ++c)
        widths[c] = std::max(widths[c], visible_width(rows.back()[c]));
    }
    std::size_t used = 0;
    for (std::size_t column : widths) used += column + 2;
    const std::size_t room = width() > used + 20 ? width() - used : 20;
    Table table;
    for (const std::string& text : titles) table.column(text, Table::Align::kRight);
    table.column("kernel");
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      std::vector<std::string> lines = wrap_name(clean(chosen[i]->label), room, 2);
      for (const std::string& line : split(fold(clean(details(*chosen[i])), "", room), '\n'))
        if (!line.empty()) lines.push_back(dim(line));
      for (std::size_t line = 0; line < lines.size(); ++line) {
        std::vector<std::string> row =
            line == 0 ? rows[i] : std::vector<std::string>(titles.size());
        row.push_back(lines[line]);
        table.row(std::move(row));
      }
    }
    out_ += "\n" + table.render(terminal_);
  }

  std::string details(const DiffItem& item) const {
    std::vector<std::string> parts;
    std::string problem = item.dtype;
    if (!item.shape.empty()) problem += (problem.empty() ? "" : " ") + item.shape;
    if (!problem.empty()) parts.push_back(problem);
    const std::vector<std::string> causes = parts_of(item.causes, std::abs(item.change) * 0.005);
    if (item.match != Match::kNone && (causes.size() > 1 || item.match == Match::kOpClass))
      parts.push_back(join(causes, ", "));
    else if (item.match != Match::kNone && causes.size() == 1)
      parts.push_back(causes[0].substr(causes[0].rfind(' ') + 1));
    parts.insert(parts.end(), item.why.begin(), item.why.end());
    if (!item.certain) parts.emplace_back("within the launches' spread");
    return join(parts, "; ");
  }

  void copies() {
    std::vector<const DiffItem*> chosen;
    for (const DiffItem& item : diff_.copies)
      if (item.change != 0) chosen.push_back(&item);
    if (!chosen.empty()) table("memcpy, memset", chosen);
    if (!diff_.notes.empty()) out_ += "\n";
  }

  const Diff& diff_;
  const Terminal& terminal_;
  int top_;
  std::string out_;
};

}  // namespace

std::string render_diff(const Diff& diff, const Terminal& terminal, int top) {
  return DiffRenderer(diff, terminal, top).render();
}

}  // namespace purlin::analyze
