// SPDX-License-Identifier: Apache-2.0
#include "guard/report/report.h"

#include "base/output/escaped.h"
#include "base/output/markup.h"
#include "base/text.h"
#include "model/document.h"

namespace purlin::guard {
namespace {

Style style_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return Style::kGreen;
    case Verdict::kImprovement:
      return Style::kCyan;
    case Verdict::kRegression:
    case Verdict::kInvalid:
      return Style::kRed;
    case Verdict::kInconclusive:
      return Style::kYellow;
  }
  return Style::kPlain;
}

double p_value(const ItemResult& result) {
  return result.verdict == Verdict::kImprovement ? result.effect.p_faster : result.effect.p_slower;
}

std::string ratio_text(const Effect& effect) {
  if (effect.pairs == 0) return "-";
  return fmt::format("{:.3f}x [{:.3f}, {:.3f}]", effect.ratio, effect.low, effect.high);
}

std::string title(const ReportItem& item) {
  return item.shape.empty() ? item.kernel : item.kernel + " " + item.shape;
}

// What follows an item's name.
std::string facts(const ReportItem& item) {
  const ItemResult& result = item.result;
  std::string text = fmt::format(": {}", verdict_name(result.verdict));
  if (result.effect.pairs > 0)
    text +=
        fmt::format(", {} of the baseline's time ({} to {}), p = {:.2g}, {}",
                    ratio_text(result.effect), format_ns(result.baseline_ns),
                    format_ns(result.current_ns), p_value(result), counted(result.pairs, "pair"));
  if (!result.cause.empty()) text += "; cause: " + result.cause;
  if (!result.reason.empty()) text += "; " + result.reason;
  return text;
}

// One line on an item, complete without the rest of the report.
std::string sentence(const ReportItem& item) { return title(item) + facts(item); }

Json ratio_json(const Effect& effect) {
  if (effect.pairs == 0) return {};
  return Json::object({{"estimate", effect.ratio},
                       {"low", effect.low},
                       {"high", effect.high},
                       {"confidence", effect.confidence}});
}

Json item_json(const ReportItem& item) {
  const ItemResult& result = item.result;
  Json json = Json::object({{"kernel", item.kernel},
                            {"shape", item.shape},
                            {"variant", item.variant},
                            {"verdict", verdict_name(result.verdict)},
                            {"ratio", ratio_json(result.effect)},
                            {"p_value", result.effect.pairs == 0 ? Json() : Json(p_value(result))},
                            {"pairs", result.pairs},
                            {"cause", result.cause},
                            {"reason", result.reason},
                            {"deciding_pairs", result.effect.pairs},
                            {"baseline_ns", result.baseline_ns},
                            {"current_ns", result.current_ns},
                            {"cycle_ratio", ratio_json(result.cycles)},
                            {"floor", result.floor},
                            {"detectable", result.detectable}});
  if (!item.baseline_config.empty()) json.set("baseline_config", to_json(item.baseline_config));
  if (!item.current_config.empty()) json.set("current_config", to_json(item.current_config));
  if (item.recorded_p50_ns > 0) json.set("recorded_p50_ns", item.recorded_p50_ns);
  if (!item.profile_after.empty())
    json.set("profiles",
             Json::object({{"before", item.profile_before}, {"after", item.profile_after}}));
  json.set("notes", Json::array_of(item.notes));
  return json;
}

std::string counts(const Report& report) {
  std::vector<std::string> parts;
  for (const Verdict verdict : {Verdict::kRegression, Verdict::kInvalid, Verdict::kInconclusive,
                                Verdict::kImprovement, Verdict::kPass}) {
    int count = 0;
    for (const ReportItem& item : report.items) count += item.result.verdict == verdict;
    if (count > 0) parts.push_back(fmt::format("{} {}", count, verdict_name(verdict)));
  }
  return join(parts, ", ");
}

}  // namespace

Verdict Report::verdict() const {
  std::vector<Verdict> verdicts;
  for (const ReportItem& item : items) verdicts.push_back(item.result.verdict);
  return worst_of(verdicts);
}

Report undecided(Report report, const std::string& reason) {
  for (ReportItem& item : report.items) {
    item.result.verdict = Verdict::kInconclusive;
    item.result.reason = reason;
  }
  return report;
}

std::string render_table(const Report& report, const Terminal& terminal) {
  const auto any = [&](auto&& filled) {
    return std::any_of(report.items.begin(), report.items.end(), filled);
  };
  const bool shapes = any([](const ReportItem& item) { return !item.shape.empty(); });
  const bool causes = any([](const ReportItem& item) { return !item.result.cause.empty(); });
  Table table;
  table.column("kernel");
  if (shapes) table.column("shape");
  table.column("verdict");
  for (const char* title : {"baseline", "now", "ratio [95 %]", "p", "pairs"})
    table.column(title, Table::Align::kRight);
  if (causes) table.column("cause");
  for (const ReportItem& item : report.items) {
    const ItemResult& result = item.result;
    const bool measured = result.effect.pairs > 0;
    std::vector<std::string> row = {item.kernel};
    if (shapes) row.push_back(item.shape);
    for (std::string& cell : std::vector<std::string>{
             terminal.paint(style_of(result.verdict), verdict_name(result.verdict)),
             measured ? format_ns(result.baseline_ns) : "-",
             measured ? format_ns(result.current_ns) : "-", ratio_text(result.effect),
             measured ? fmt::format("{:.2g}", p_value(result)) : "-", std::to_string(result.pairs)})
      row.push_back(std::move(cell));
    if (causes) row.push_back(result.cause);
    table.row(std::move(row));
  }
  std::string text = table.render(terminal);
  const auto add = [&](std::string_view line) { text += prose_line(line, terminal, "  "); };
  for (const ReportItem& item : report.items) {
    if (item.result.verdict != Verdict::kPass && !item.result.reason.empty())
      add(fmt::format("{}: {}", title(item), item.result.reason));
    for (const std::string& note : item.notes) add(fmt::format("{}: {}", title(item), note));
  }
  for (const std::string& note : report.notes) add("note: " + note);
  if (report.measurement.neighbours.value_or(0) > 0)
    add(fmt::format("note: the device is shared with {}",
                    counted(*report.measurement.neighbours, "process")));
  if (report.measurement.rejected_pairs > 0)
    add(fmt::format("note: {} rejected and taken again ({})",
                    counted(report.measurement.rejected_pairs, "pair"),
                    join(report.measurement.reasons, "; ")));
  text += fmt::format("{} ({}; {:.1f} s)\n",
                      terminal.paint(style_of(report.verdict()), verdict_name(report.verdict())),
                      counts(report), report.seconds);
  return text;
}

Json to_json(const Report& report) {
  Json document = new_document("purlin.guard/1", report.environment);
  document.set("suite", report.suite);
  document.set("verdict", verdict_name(report.verdict()));
  document.set("exit_code", exit_code(report.verdict()));
  Json items = Json::array();
  for (const ReportItem& item : report.items) items.push(item_json(item));
  document.set("items", std::move(items));
  document.set("notes", Json::array_of(report.notes));
  document.set("seconds", report.seconds);
  document.set("measurement", to_json(report.measurement));
  if (!report.baseline_arm.is_null())
    document.set("arms", Json::array({report.baseline_arm, report.current_arm}));
  return document;
}

std::string render_junit(const Report& report) {
  int failures = 0, errors = 0, skipped = 0;
  std::string cases;
  for (const ReportItem& item : report.items) {
    std::string body;
    const std::string text = markup_escaped(sentence(item));
    const std::string cause = markup_escaped(item.result.cause);
    switch (item.result.verdict) {
      case Verdict::kRegression:
        ++failures;
        body = fmt::format("<failure type=\"regression\" message=\"{}\"/>", text);
        break;
      case Verdict::kInvalid:
        ++errors;
        body = fmt::format("<error type=\"invalid\" message=\"{}\"/>", text);
        break;
      case Verdict::kInconclusive:
        ++skipped;
        body = fmt::format("<skipped message=\"{}\"/>", text);
        break;
      case Verdict::kPass:
      case Verdict::kImprovement:
        body = fmt::format("<system-out>{}</system-out>", text);
        break;
    }
    cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\">{}</testcase>\n",
                         markup_escaped("purlin.guard." + report.suite),
                         markup_escaped(title(item)), item.result.current_ns / 1e9, body);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n{}</testsuite>\n",
      markup_escaped("purlin guard: " + report.suite), report.items.size(), failures, errors,
      skipped, report.seconds, cases);
}

std::string render_markdown(const Report& report) {
  std::string text = fmt::format("### purlin guard {}: {}\n\n{}\n\n", markdown_code(report.suite),
                                 verdict_name(report.verdict()), counts(report));
  text +=
      "| kernel | shape | verdict | ratio [95 %] | p | pairs | cause |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const ReportItem& item : report.items)
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} |\n", markdown_code(item.kernel),
        markdown_code(item.shape), verdict_name(item.result.verdict),
        ratio_text(item.result.effect),
        item.result.effect.pairs > 0 ? fmt::format("{:.2g}", p_value(item.result)) : "-",
        item.result.pairs, markdown_text(item.result.cause));
  for (const ReportItem& item : report.items)
    if (item.result.verdict != Verdict::kPass)
      text += fmt::format("\n- {}{}", markdown_code(title(item)), markdown_text(facts(item)));
  for (const std::string& note : report.notes) text += "\n- " + markdown_text(note);
  return text + "\n";
}

std::string render_annotations(const Report& report) {
  std::string text;
  for (const ReportItem& item : report.items) {
    const Verdict verdict = item.result.verdict;
    if (verdict == Verdict::kPass || verdict == Verdict::kImprovement) continue;
    text += fmt::format("::{} title={}{}::{}\n",
                        verdict == Verdict::kInconclusive ? "warning" : "error",
                        workflow_property("purlin guard: " + item.kernel),
                        item.file.empty() ? "" : ",file=" + workflow_property(item.file),
                        workflow_message(sentence(item)));
  }
  return text;
}

}  // namespace purlin::guard
