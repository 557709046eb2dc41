// SPDX-License-Identifier: Apache-2.0
#include "tune/session/page.h"

#include "base/markup.h"
#include "base/text.h"
#include "model/document.h"
#include "model/evaluation.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::tune {
namespace {

constexpr double kWidth = 960, kLeft = 70, kRight = 20;
constexpr std::size_t kDots = 5000;    // drawn of a long session, evenly
constexpr std::size_t kLines = 300;    // configs in parallel coordinates
constexpr std::size_t kPageRows = 20;  // of the table

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--line:#8884;--strong:#1f6feb;--good:#1a7f37;--bad:#cf222e}
body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}
svg{width:100%;height:auto;font:12px system-ui,sans-serif}
svg text{fill:currentColor}.axis{stroke:var(--line)}.best{stroke:var(--strong);fill:none;stroke-width:2}
.dot{fill:var(--line)}.fail{fill:var(--bad)}.bar{fill:var(--strong)}
.config{fill:none;stroke:#888;stroke-opacity:.25}.config.top{stroke:var(--good);stroke-opacity:.9;stroke-width:1.5}
table{border-collapse:collapse;width:100%;font-size:.9em}td,th{text-align:right;padding:.2em .5em;border-bottom:1px solid var(--line)}
td:last-child,th:last-child{text-align:left;font-family:ui-monospace,monospace}.scroll{overflow-x:auto})";

struct PageSession {
  std::vector<Evaluation> evaluations;
  // Of those that worked, fastest first by the search: these times compare with each other.
  std::vector<std::pair<Config, double>> times;
  // As purlin::tune::ranking has them, with the times that decide.
  struct Row {
    std::int64_t rank = 0;
    const Evaluation* evaluation = nullptr;
    double time_ms = 0;
    bool searched_only = false;
  };
  std::vector<Row> rows;
  std::vector<Config> winners;  // the winner and its ties
};

Result<PageSession> read(const Json& document) {
  PageSession session;
  for (const Json& json : document["evaluations"].items()) {
    PURLIN_ASSIGN(Evaluation evaluation, evaluation_from_json(json));
    if (const double searched = json["search"]["time_ms"].as_double(); searched > 0)
      evaluation.time_ms = searched;
    if (evaluation.ok() && evaluation.time_ms > 0)
      session.times.emplace_back(evaluation.config, evaluation.time_ms);
    session.evaluations.push_back(std::move(evaluation));
  }
  std::stable_sort(session.times.begin(), session.times.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  std::size_t i = 0;
  for (const Json& json : document["evaluations"].items()) {
    const Evaluation& evaluation = session.evaluations[i++];
    if (json["rank"].as_int() < 1) continue;
    session.rows.push_back({json["rank"].as_int(), &evaluation, json["time_ms"].as_double(),
                            json["from"].as_string() == "search"});
  }
  std::sort(session.rows.begin(), session.rows.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (!session.rows.empty()) session.winners.push_back(session.rows.front().evaluation->config);
  for (const Json& tie : document["ties"].items()) {
    PURLIN_ASSIGN(Config config, config_from_json(tie));
    session.winners.push_back(std::move(config));
  }
  return session;
}

// Every evaluation and the best so far, over their total measuring time; times on a log axis.
std::string convergence(const PageSession& session) {
  constexpr double kHeight = 320, kTop = 10, kBottom = 40;
  const double low = std::log(session.times.front().second);
  const double high = std::max(std::log(session.times.back().second), low + 0.01);
  const double last = std::max(session.evaluations.back().cumulative_cost_s, 1e-9);
  const auto x = [&](double cost_s) { return kLeft + (kWidth - kLeft - kRight) * cost_s / last; };
  const auto y = [&](double time_ms) {
    return kTop + (kHeight - kTop - kBottom) * (high - std::log(time_ms)) / (high - low);
  };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Convergence\">", kWidth, kHeight);
  for (int i = 0; i <= 4; ++i) {
    const double time_ms = std::exp(low + (high - low) * i / 4), at = y(time_ms);
    svg += fmt::format("<path class=\"axis\" d=\"M{} {:.1f}H{}\"/>", kLeft, at, kWidth - kRight);
    svg += svg_text(kLeft - 6, at + 4, format_ns(time_ms * 1e6), "end");
    svg += svg_text(x(last * i / 4), kHeight - kBottom + 18, fmt::format("{:.3g} s", last * i / 4),
                    i == 4 ? "end" : "middle");
  }
  svg += svg_text(kWidth / 2, kHeight - 4, "cost of the evaluations", "middle");
  const std::size_t step = session.evaluations.size() / kDots + 1;
  std::string path;
  double best = 0;
  for (std::size_t i = 0; i < session.evaluations.size(); ++i) {
    const Evaluation& one = session.evaluations[i];
    const double at = x(one.cumulative_cost_s);
    if (one.ok() && (best == 0 || one.time_ms < best)) {
      path += path.empty() ? fmt::format("M{:.1f} {:.1f}", at, y(one.time_ms))
                           : fmt::format("H{:.1f}V{:.1f}", at, y(one.time_ms));
      best = one.time_ms;
    }
    if (i % step != 0) continue;
    svg += fmt::format(
        "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>{}: {}"
        "</title></circle>",
        one.ok() ? "dot" : "fail", at, one.ok() ? y(one.time_ms) : kTop,
        one.ok() ? format_ns(one.time_ms * 1e6) : status_name(one.status),
        markup_escaped(one.config.text()));
  }
  return svg + fmt::format("<path class=\"best\" d=\"{}H{:.1f}\"/></svg>", path, x(last));
}

std::string bars(const std::vector<Importance>& parameters) {
  constexpr double kRow = 24, kNames = 220;
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Parameter importance\">",
                  kWidth, kRow * static_cast<double>(parameters.size()) + 4);
  double y = 2;
  for (const Importance& one : parameters) {
    const double width = (kWidth - kNames - 80) * one.share;
    svg += svg_text(kNames - 8, y + 16, elide_middle(one.parameter, 30), "end");
    svg += fmt::format("<rect class=\"bar\" x=\"{}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"16\"/>",
                       kNames, y + 3, width);
    svg += svg_text(kNames + width + 6, y + 16, fmt::format("{:.0f} %", 100 * one.share), "start");
    y += kRow;
  }
  return svg + "</svg>";
}

bool less(const Value& a, const Value& b) {
  const auto x = to_double(a), y = to_double(b);
  if (x.is_ok() && y.is_ok()) return *x < *y;
  return to_text(a) < to_text(b);
}

// A line for each config, from slow to fast, so that the fast ones are on top.
std::string coordinates(const PageSession& session, const std::vector<Importance>& parameters) {
  constexpr double kHeight = 340, kTop = 30, kBottom = 20;
  std::vector<std::vector<Value>> values;
  std::vector<std::string> names;
  for (const Importance& one : parameters) {
    std::vector<Value> seen;
    for (const auto& [config, time_ms] : session.times)
      if (const Value* value = config.find(one.parameter);
          value != nullptr && std::find(seen.begin(), seen.end(), *value) == seen.end())
        seen.push_back(*value);
    if (seen.size() < 2) continue;
    std::sort(seen.begin(), seen.end(), less);
    values.push_back(std::move(seen));
    names.push_back(one.parameter);
  }
  if (names.size() < 2) return "";
  const double gap = (kWidth - 2 * kLeft) / static_cast<double>(names.size() - 1);
  const auto x = [&](std::size_t axis) { return kLeft + gap * static_cast<double>(axis); };
  const auto y = [&](std::size_t axis, std::size_t value) {
    return kTop + (kHeight - kTop - kBottom) *
                      static_cast<double>(values[axis].size() - 1 - value) /
                      static_cast<double>(values[axis].size() - 1);
  };
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Parallel coordinates\">",
                  kWidth, kHeight);
  const std::size_t step = session.times.size() / kLines + 1;
  for (std::size_t i = session.times.size(); i-- > 0;) {
    if (i % step != 0 && i > 0) continue;
    const auto& [config, time_ms] = session.times[i];
    std::string path;
    for (std::size_t axis = 0; axis < names.size(); ++axis) {
      const Value* value = config.find(names[axis]);
      if (value == nullptr) continue;
      const auto at = std::find(values[axis].begin(), values[axis].end(), *value);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(axis),
                          y(axis, static_cast<std::size_t>(at - values[axis].begin())));
    }
    const bool top =
        std::find(session.winners.begin(), session.winners.end(), config) != session.winners.end();
    svg += fmt::format("<path class=\"config{}\" d=\"{}\"><title>{}: {}</title></path>",
                       top ? " top" : "", path, format_ns(time_ms * 1e6),
                       markup_escaped(config.text()));
  }
  for (std::size_t axis = 0; axis < names.size(); ++axis) {
    svg +=
        fmt::format("<path class=\"axis\" d=\"M{:.1f} {}V{}\"/>", x(axis), kTop, kHeight - kBottom);
    svg += svg_text(x(axis), axis % 2 == 0 ? 12 : 24, elide_middle(names[axis], 22), "middle");
    for (std::size_t value = 0; value < values[axis].size(); ++value)
      svg += svg_text(x(axis) + 4, y(axis, value) + 4,
                      elide_middle(to_text(values[axis][value]), 12), "start");
  }
  return svg + "</svg>";
}

std::string table(const PageSession& session) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>#</th><th>time</th><th>of best</th><th></th>"
      "<th>config</th></tr>";
  const bool finals = !session.rows.empty() && !session.rows.front().searched_only;
  for (std::size_t i = 0; i < std::min(kPageRows, session.rows.size()); ++i) {
    const PageSession::Row& row = session.rows[i];
    const bool is_tie = i > 0 && std::find(session.winners.begin(), session.winners.end(),
                                           row.evaluation->config) != session.winners.end();
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.2f}x</td><td>{}</td><td>{}</td></tr>",
                        row.rank, format_ns(row.time_ms * 1e6),
                        row.time_ms / session.rows.front().time_ms,
                        i == 0                        ? "best"
                        : is_tie                      ? "tie"
                        : finals && row.searched_only ? "search"
                                                      : "",
                        markup_escaped(row.evaluation->config.text()));
  }
  return html + "</table></div>";
}

std::string transfer(const Json& document) {
  const Json& transfer = document["transfer"];
  if (!transfer.is_object()) return "";
  std::string html = fmt::format("<h2>Started from other runs: {}</h2><p>{}</p><ul>",
                                 markup_escaped(transfer["state"].as_string()),
                                 markup_escaped(transfer["why"].as_string()));
  for (const Json& source : transfer["sources"].items())
    html += fmt::format(
        "<li>{} {} {}: {} configs, {} left out</li>", markup_escaped(source["source"].as_string()),
        markup_escaped(source["device"].as_string()), markup_escaped(source["shape"].as_string()),
        source["configs"].as_int(), source["left_out"].as_int());
  return html + "</ul>";
}

}  // namespace

std::vector<Importance> importance_of(const std::vector<std::pair<Config, double>>& times) {
  std::vector<Importance> result;
  if (times.empty()) return result;
  double sum = 0, squares = 0;
  for (const auto& [config, time_ms] : times) {
    sum += std::log(time_ms);
    squares += std::log(time_ms) * std::log(time_ms);
  }
  const double count = static_cast<double>(times.size()), mean = sum / count;
  const double total = squares - count * mean * mean;
  for (const auto& item : times.front().first.items()) {
    std::map<std::string, std::pair<double, double>> groups;  // value -> count, sum
    for (const auto& [config, time_ms] : times)
      if (const Value* value = config.find(item.first)) {
        auto& [members, logs] = groups[to_text(*value)];
        members += 1;
        logs += std::log(time_ms);
      }
    double between = 0;
    for (const auto& [value, group] : groups)
      between += group.first * std::pow(group.second / group.first - mean, 2);
    const double share = groups.size() > 1 && total > 1e-12 ? between / total : 0;
    result.push_back({item.first, std::clamp(share, 0.0, 1.0)});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Importance& a, const Importance& b) { return a.share > b.share; });
  return result;
}

Result<std::string> render_page(const Json& document) {
  if (document["schema"].as_string() == "purlin.tune-set/1")
    return error(Code::kInvalid, "a page is of one problem shape; this has {} results",
                 document["results"].size());
  PURLIN_TRY(check_schema(document, "purlin.tune", 1));
  PURLIN_ASSIGN(const PageSession session, read(document));
  const std::string& kernel = document["kernel"].as_string();
  const std::string title = kernel + " tuned";
  std::string html = fmt::format("<h1>{}</h1>\n", markup_escaped(kernel));
  std::string problem;
  for (const auto& [name, extent] : document["problem"].members())
    problem += fmt::format("{}{}={}", problem.empty() ? "" : ",", name, extent.as_int());
  html += fmt::format(
      "<p>{} {}<br>strategy {}, seed {}, budget {}; {} evaluations of {} valid "
      "configs, {} worked</p>\n",
      markup_escaped(document["device"].as_string()), markup_escaped(problem),
      markup_escaped(document["strategy_used"].as_string()), document["seed"].as_int(),
      markup_escaped(document["budget"].as_string()), session.evaluations.size(),
      document["space"]["valid"].as_int(), session.times.size());
  if (session.times.empty()) return static_page(title, kStyle, html + "<p>No config worked.</p>\n");
  std::vector<Importance> parameters = importance_of(session.times);
  std::erase_if(parameters, [](const Importance& one) { return one.share <= 0; });
  html +=
      "<h2>Convergence</h2>\n<p>The times of the search. The finals, which measure the fastest "
      "again, decide.</p>\n" +
      convergence(session) + "\n";
  html +=
      "<h2>Parameter importance</h2>\n<p>Share of the variance of log time that a parameter "
      "explains on its own, among what was measured.</p>\n" +
      bars(parameters) + "\n";
  html += "<h2>Configs</h2>\n<p>The winner and its ties are green.</p>\n" +
          coordinates(session, parameters) + "\n" + table(session) + "\n";
  return static_page(title, kStyle, html + transfer(document));
}

}  // namespace purlin::tune
