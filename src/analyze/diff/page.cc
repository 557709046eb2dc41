// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff/page.h"

#include "analyze/text/layout.h"
#include "base/markup.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

constexpr std::size_t kNameLimit = 400;  // characters: those of templates run to thousands
constexpr double kBarWidth = 100;        // of the drawing's units

constexpr std::string_view kDiffStyle = R"(
:root{color-scheme:light dark;--line:#8884;--good:#1a7f37;--bad:#cf222e}
body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2em auto;padding:0 1em}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}
table{border-collapse:collapse;width:100%;font-size:.9em}
td,th{text-align:right;padding:.2em .5em;border-bottom:1px solid var(--line);vertical-align:top}
td:first-child,th:first-child,td.text,th.text{text-align:left;overflow-wrap:anywhere}
td.text{font-size:.9em}svg{width:100px;height:12px}.more{fill:var(--bad)}.less{fill:var(--good)}
.unsure{opacity:.45}small{display:block;opacity:.7})";

std::string signed_time(double ns) { return (ns < 0 ? "−" : "+") + short_ns(std::abs(ns)); }

std::string side_row(const char* title, const DiffTotals& side) {
  return fmt::format(
      "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td "
      "class=\"text\">{}</td>"
      "<td>{}</td><td>{}</td></tr>\n",
      title, markup_escaped(side.path), markup_escaped(side.build),
      markup_escaped(join(side.devices, ", ")), short_ns(side.kernel), short_ns(side.copy));
}

std::string cause_rows(const Causes& causes) {
  const std::pair<const char*, double> all[] = {{"more or fewer launches", causes.count},
                                                {"longer or shorter launches", causes.duration},
                                                {"other shapes", causes.shape},
                                                {"other kernels", causes.kernel},
                                                {"GPU, driver or clock", causes.environment},
                                                {"gone", causes.gone},
                                                {"new", causes.appeared}};
  std::string html;
  for (const auto& [title, ns] : all)
    if (ns != 0) html += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", title, signed_time(ns));
  return html;
}

// From the middle: to the right for more time, to the left for less.
std::string bar(double change, double most) {
  const double width = most > 0 ? kBarWidth / 2 * std::min(1.0, std::abs(change) / most) : 0;
  return fmt::format(
      "<svg viewBox=\"0 0 {} 12\" aria-hidden=\"true\"><rect class=\"{}\" x=\"{:.1f}\" y=\"1\" "
      "width=\"{:.1f}\" height=\"10\"/></svg>",
      kBarWidth, change > 0 ? "more" : "less", change > 0 ? kBarWidth / 2 : kBarWidth / 2 - width,
      width);
}

std::string items_table(const std::vector<DiffItem>& items, int rows) {
  const std::size_t shown =
      rows > 0 ? std::min(items.size(), static_cast<std::size_t>(rows)) : items.size();
  double most = 0;
  for (const DiffItem& item : items) most = std::max(most, std::abs(item.change));
  std::string html =
      "<table><tr><th>kernel</th><th>before</th><th>after</th><th>change</th><th></th>"
      "<th>launches</th><th class=\"text\">why</th></tr>\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const DiffItem& item = items[i];
    html += fmt::format(
        "<tr{}><td>{}<small>{}</small></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{} → {}</td><td class=\"text\">{}</td></tr>\n",
        item.certain ? "" : " class=\"unsure\"",
        markup_escaped(elide_middle(item.label.empty() ? item.name : item.label, kNameLimit)),
        markup_escaped(item.shape), short_ns(item.a.total), short_ns(item.b.total),
        signed_time(item.change), bar(item.change, most), format_count(item.a.count),
        format_count(item.b.count), markup_escaped(join(item.why, "; ")));
  }
  html += "</table>\n";
  if (shown < items.size())
    html += fmt::format("<p>{} more: see <code>--json</code> or <code>--csv</code>.</p>\n",
                        items.size() - shown);
  return html;
}

}  // namespace

std::string render_diff_page(const Diff& diff, int rows) {
  const std::string unit = diff.per_step ? "step" : "run";
  std::string body = fmt::format(
      "<h1>Kernel time per {}: {}</h1>\n<table><tr><th></th><th class=\"text\">file</th>"
      "<th class=\"text\">build</th><th class=\"text\">device</th><th>kernels</th><th>copies</th>"
      "</tr>\n{}{}</table>\n",
      unit, signed_time(diff.change), side_row("before", diff.a), side_row("after", diff.b));
  if (const std::string causes = cause_rows(diff.causes); !causes.empty())
    body +=
        "<h2>Causes</h2>\n<table><tr><th>cause</th><th>change</th></tr>\n" + causes + "</table>\n";
  body += "<h2>Kernels</h2>\n<p>Pale rows are within the spread between launches.</p>\n" +
          items_table(diff.items, rows);
  if (!diff.copies.empty()) body += "<h2>Copies</h2>\n" + items_table(diff.copies, rows);
  for (const std::string& note : diff.notes) body += "<p>Note: " + markup_escaped(note) + "</p>\n";
  return static_page("Diff of two profiles", kDiffStyle, body);
}

}  // namespace purlin::analyze
