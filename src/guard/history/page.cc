// SPDX-License-Identifier: Apache-2.0
#include "guard/history/page.h"

#include "base/output/markup.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::guard {
namespace {

constexpr double kChartWidth = 960, kChartHeight = 220;
constexpr double kChartLeft = 80, kChartRight = 20, kChartTop = 16, kChartBottom = 34;
constexpr std::size_t kChartDots = 2000;  // drawn of a long series, evenly

constexpr std::string_view kHistoryStyle = R"(
:root{color-scheme:light dark;--line:#8884;--strong:#1f6feb;--good:#1a7f37;--bad:#cf222e}
body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}
h1{font-size:1.4em}h2{font-size:1.1em;margin:2em 0 0;overflow-wrap:anywhere}p{margin:.2em 0}
svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:currentColor}
.axis{stroke:var(--line)}.level{stroke:var(--strong);fill:none;stroke-width:1.5}.dot{fill:var(--strong)}
.slower{stroke:var(--bad)}.faster{stroke:var(--good)}.slower,.faster{stroke-width:1.5;stroke-dasharray:4 3}
table{border-collapse:collapse;width:100%;font-size:.9em}
td,th{text-align:left;padding:.2em .5em;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
nav li{overflow-wrap:anywhere})";

// Where the points of a series are drawn.
struct Chart {
  double low = 0, high = 1;  // ns
  std::size_t points = 1;

  explicit Chart(const Series& series) : points(series.points.size()) {
    const auto [least, most] =
        std::minmax_element(series.points.begin(), series.points.end(),
                            [](const auto& a, const auto& b) { return a.median_ns < b.median_ns; });
    const double margin =
        std::max((most->median_ns - least->median_ns) * 0.1, most->median_ns * 0.01);
    low = std::max(0.0, least->median_ns - margin);
    high = most->median_ns + margin;
  }
  double x(double point) const {
    const double width = kChartWidth - kChartLeft - kChartRight;
    return kChartLeft + (points < 2 ? width / 2 : width * point / static_cast<double>(points - 1));
  }
  double y(double ns) const {
    return kChartTop + (kChartHeight - kChartTop - kChartBottom) * (high - ns) / (high - low);
  }
};

std::string build_text(const std::string& build, const std::string& recorded) {
  if (build.empty()) return recorded.empty() ? "an unnamed run" : recorded;
  return recorded.empty() ? build : build + " (" + recorded + ")";
}

std::string chart_of(const History& history, const Series& series) {
  const Chart chart(series);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Medians over runs\">",
                  kChartWidth, kChartHeight);
  for (int i = 0; i <= 3; ++i) {
    const double ns = chart.low + (chart.high - chart.low) * i / 3, at = chart.y(ns);
    svg += fmt::format("<path class=\"axis\" d=\"M{} {:.1f}H{}\"/>", kChartLeft, at,
                       kChartWidth - kChartRight);
    svg += svg_text(kChartLeft - 6, at + 4, format_ns(ns), "end");
  }
  const auto environment = [&](std::size_t point) -> const Environment& {
    return history.runs[series.points[point].run].environment;
  };
  svg += svg_text(kChartLeft, kChartHeight - 8,
                  build_text(environment(0).build, environment(0).recorded_at), "start");
  if (const std::size_t last = series.points.size() - 1; last > 0)
    svg += svg_text(kChartWidth - kChartRight, kChartHeight - 8,
                    build_text(environment(last).build, environment(last).recorded_at), "end");
  for (const Annotation& annotation : series.annotations) {
    const double at = chart.x(static_cast<double>(annotation.point) - 0.5);
    svg += fmt::format("<path class=\"{}\" d=\"M{:.1f} {}V{}\"><title>{:.3f}x</title></path>",
                       annotation.change.ratio > 1 ? "slower" : "faster", at, kChartTop,
                       kChartHeight - kChartBottom, annotation.change.ratio);
  }
  const std::size_t step = series.points.size() / kChartDots + 1;
  std::string path, dots;
  for (std::size_t i = 0; i < series.points.size(); i += step) {
    const double x = chart.x(static_cast<double>(i)), y = chart.y(series.points[i].median_ns);
    path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x, y);
    dots += fmt::format(
        "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>{}: "
        "{}</title></circle>",
        x, y, markup_escaped(build_text(environment(i).build, environment(i).recorded_at)),
        format_ns(series.points[i].median_ns));
  }
  return svg + fmt::format("<path class=\"level\" d=\"{}\"/>", path) + dots + "</svg>\n";
}

std::string changes_of(const Series& series, int& number) {
  if (series.annotations.empty()) return "<p>No level moved.</p>\n";
  std::string html =
      "<table><tr><th>#</th><th>ratio</th><th>from</th><th>to</th><th>between</th><th>and</th>"
      "<th>p</th><th>with it changed</th></tr>\n";
  for (const Annotation& one : series.annotations)
    html += fmt::format(
        "<tr><td>{}</td><td>{:.3f}x</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2g}{}</"
        "td>"
        "<td>{}</td></tr>\n",
        ++number, one.change.ratio, format_ns(one.change.before), format_ns(one.change.after),
        markup_escaped(build_text(one.build_before, one.recorded_before)),
        markup_escaped(build_text(one.build_after, one.recorded_after)), one.change.p_value,
        one.stands ? "" : " (does not stand among so many series)",
        markup_escaped(one.environment_change));
  return html + "</table>\n";
}

}  // namespace

std::string render_history_page(const History& history, const std::vector<Series>& series) {
  std::string body = fmt::format(
      "<h1>Kernel times over {}</h1>\n<p>Changes of level are hints. A paired run decides: "
      "<code>purlin guard compare</code>.</p>\n<nav><ol>\n",
      counted(history.runs.size(), "run"));
  for (std::size_t i = 0; i < series.size(); ++i)
    body += fmt::format("<li><a href=\"#s{}\">{}</a>: {}</li>\n", i,
                        markup_escaped(series[i].item.text()),
                        counted(series[i].annotations.size(), "change"));
  body += "</ol></nav>\n";
  int number = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Series& one = series[i];
    body += fmt::format("<h2 id=\"s{}\">{}</h2>\n<p>{}, suite {}, latest {}</p>\n", i,
                        markup_escaped(one.item.text()), markup_escaped(one.device),
                        markup_escaped(one.suite), format_ns(one.points.back().median_ns));
    body += chart_of(history, one) + changes_of(one, number);
  }
  for (const std::string& note : history.notes)
    body += "<p>Note: " + markup_escaped(note) + "</p>\n";
  return static_page("Kernel times", kHistoryStyle, body);
}

}  // namespace purlin::guard
