// SPDX-License-Identifier: Apache-2.0
#include "guard/history/history.h"

#include "base/files.h"
#include "base/json/json_lines.h"
#include "base/text.h"
#include "guard/gate/samples.h"
#include "guard/gate/signed_rank.h"
#include "model/document.h"

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <unistd.h>

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxHistoryBytes = std::size_t{512} << 20;
constexpr std::size_t kMaxRuns = 100000;
constexpr std::size_t kMaxRunItems = 10000;
constexpr std::size_t kMaxProcesses = 10000;

// A process is a number, or an object that has its median as time_ns (baselines, run documents).
Result<HistoryRun> run_from_json(const Json& json) {
  HistoryRun run;
  run.environment = environment_from_json(json["environment"]);
  run.suite = json["suite"].as_string();
  if (json["items"].items().size() > kMaxRunItems)
    return error(Code::kInvalid, "a run with more than {} items", kMaxRunItems);
  for (const Json& entry : json["items"].items()) {
    HistoryItem item;
    item.item.kernel = entry["kernel"].as_string();
    item.item.shape = entry["shape"].as_string();
    item.item.variant = entry["variant"].as_string();
    if (item.item.variant.empty()) item.item.variant = entry["request"].as_string();
    if (entry["processes"].items().size() > kMaxProcesses)
      return error(Code::kInvalid, "an item with more than {} processes", kMaxProcesses);
    for (const Json& process : entry["processes"].items()) {
      const double ns = process.is_number() ? process.as_double() : process["time_ns"].as_double();
      if (is_time(ns)) item.processes_ns.push_back(ns);
    }
    // An item that failed in this run has no point in its series.
    if (!item.item.kernel.empty() && !item.processes_ns.empty())
      run.items.push_back(std::move(item));
  }
  if (run.environment.recorded_at.empty())
    run.environment.recorded_at = json["recorded_at"].as_string();
  return run;
}

Status load_lines(const std::string& path, std::string_view text, History* history) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    const bool last = end == std::string_view::npos;
    text.remove_prefix(last ? text.size() : end + 1);
    ++number;
    if (line.empty()) continue;
    const Result<Json> json = Json::parse(line);
    if (!json.is_ok()) {
      // A torn line of a killed writer. It is the last one; in copies it may be anywhere.
      history->notes.push_back(fmt::format("{}:{} is torn and was skipped", path, number));
      continue;
    }
    PURLIN_TRY(
        check_schema(*json, "purlin.history", 1).with_context(fmt::format("{}:{}", path, number)));
    Result<HistoryRun> run = run_from_json(*json);
    if (!run.is_ok()) return run.status().with_context(fmt::format("{}:{}", path, number));
    history->runs.push_back(std::move(*run));
    if (history->runs.size() > kMaxRuns)
      return error(Code::kInvalid, "{}:{}: more than {} runs", path, number, kMaxRuns);
  }
  return Status::ok();
}

Status read_runs(const std::string& path, std::string_view text, History* history) {
  const std::string_view first = trim(text.substr(0, text.find('\n')));
  // A document is one object over many lines; a history is one object a line.
  if (const Result<Json> line = Json::parse(first);
      line.is_ok() && (*line)["schema"].as_string().rfind("purlin.history/", 0) == 0)
    return load_lines(path, text, history);
  const Result<Json> document = Json::parse(text);
  if (!document.is_ok()) {
    if (text.find("\"purlin.history/") != std::string_view::npos)
      return load_lines(path, text, history);
    return error(Code::kInvalid, "'{}' is no history, baseline or guard-run document: {}", path,
                 document.status().message());
  }
  const std::string& schema = (*document)["schema"].as_string();
  if (schema != "purlin.baseline/1" && schema != "purlin.guard-run/1")
    return error(Code::kInvalid,
                 "'{}' is a '{}'; a history is made of purlin.history/1 lines, baselines and "
                 "guard-run documents",
                 path, schema);
  Result<HistoryRun> run = run_from_json(*document);
  if (!run.is_ok()) return run.status().with_context(path);
  history->runs.push_back(std::move(*run));
  return Status::ok();
}

Status load_file(const std::string& path, History* history) {
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxHistoryBytes));
  return read_runs(path, text, history);
}

const DeviceInfo& device_of(const HistoryRun& run) {
  static const DeviceInfo none;
  return run.environment.devices.empty() ? none : run.environment.devices.front();
}

std::string environment_change(const HistoryRun& before, const HistoryRun& after) {
  const DeviceInfo &a = device_of(before), &b = device_of(after);
  std::vector<std::string> changes;
  const auto compare = [&](std::string_view what, const std::string& from, const std::string& to) {
    if (from != to && !from.empty() && !to.empty())
      changes.push_back(fmt::format("{} {} -> {}", what, from, to));
  };
  compare("driver", a.driver, b.driver);
  compare("toolkit", a.toolkit, b.toolkit);
  compare("device", a.uuid, b.uuid);
  compare("host kernel", before.environment.host_kernel, after.environment.host_kernel);
  compare("host CPU", before.environment.host_cpu, after.environment.host_cpu);
  return join(changes, ", ");
}

std::string sparkline(const Series& series, std::size_t width, bool utf8) {
  static const char* const kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const char* const kPlain[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const char* const* levels = utf8 ? kBlocks : kPlain;
  const std::size_t first = series.points.size() > width ? series.points.size() - width : 0;
  double low = series.points[first].median_ns, high = low;
  for (std::size_t i = first; i < series.points.size(); ++i) {
    low = std::min(low, series.points[i].median_ns);
    high = std::max(high, series.points[i].median_ns);
  }
  // A flat series is drawn flat: at least 5 % of its level is the full height.
  const double span = std::max(high - low, 0.05 * low);
  std::string line;
  for (std::size_t i = first; i < series.points.size(); ++i)
    line += levels[std::min<std::size_t>(
        7, static_cast<std::size_t>(8 * (series.points[i].median_ns - low) / span))];
  return line;
}

std::string shown_build(const std::string& build, const std::string& recorded) {
  return build.empty() ? recorded : build;
}

}  // namespace

Json to_json(const HistoryRun& run) {
  Json json = new_document("purlin.history/1", run.environment);
  json.set("suite", run.suite);
  Json items = Json::array();
  for (const HistoryItem& item : run.items)
    items.push(Json::object({{"kernel", item.item.kernel},
                             {"shape", item.item.shape},
                             {"variant", item.item.variant},
                             {"processes", Json::array_of(item.processes_ns)}}));
  json.set("items", std::move(items));
  return json;
}

Status append_history(const std::string& path, const HistoryRun& run) {
  // Writers wait for one another. This one removes a torn line of a killed writer.
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(path + ".lock"));
  PURLIN_ASSIGN(JsonLines file, JsonLines::open(path));
  return file.append(to_json(run));
}

Result<History> parse_history(std::string_view text, const std::string& path) {
  History history;
  PURLIN_TRY(read_runs(path, text, &history));
  return history;
}

Result<History> load_history(const std::vector<std::string>& paths) {
  History history;
  for (const std::string& path : paths) {
    if (!is_directory(path)) {
      if (!file_exists(path)) return error(Code::kNotFound, "there is no file '{}'", path);
      PURLIN_TRY(load_file(path, &history));
      continue;
    }
    PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(path));
    for (const std::string& name : names)
      if (ends_with(name, ".json") || ends_with(name, ".jsonl"))
        PURLIN_TRY(load_file(join_path(path, name), &history));
  }
  // RFC 3339 in UTC sorts as text.
  std::stable_sort(history.runs.begin(), history.runs.end(),
                   [](const HistoryRun& a, const HistoryRun& b) {
                     return a.environment.recorded_at < b.environment.recorded_at;
                   });
  return history;
}

std::vector<Series> analyse_history(const History& history, const HistoryOptions& options) {
  std::map<std::tuple<std::string, std::string, Item>, Series> by_key;
  for (std::size_t i = 0; i < history.runs.size(); ++i) {
    const HistoryRun& run = history.runs[i];
    const DeviceInfo& device = device_of(run);
    for (const HistoryItem& item : run.items) {
      if (item.item.text().find(options.filter) == std::string::npos) continue;
      Series& series = by_key[{run.suite, device.name + device.arch, item.item}];
      series.suite = run.suite;
      series.item = item.item;
      series.device = device.name;
      series.points.push_back(
          {i, median_of(item.processes_ns), static_cast<int>(item.processes_ns.size())});
    }
  }
  std::vector<Series> all;
  std::vector<double> p_values;
  for (auto& [key, series] : by_key) {
    std::vector<double> values;
    for (const SeriesPoint& point : series.points) values.push_back(point.median_ns);
    for (const ChangePoint& change : find_change_points(values, options.change_points)) {
      const HistoryRun& before = history.runs[series.points[change.index - 1].run];
      const HistoryRun& after = history.runs[series.points[change.index].run];
      series.annotations.push_back({change.index, change, false, environment_change(before, after),
                                    before.environment.build, after.environment.build,
                                    before.environment.recorded_at, after.environment.recorded_at});
      p_values.push_back(change.p_value);
    }
    // A series without a change was tested too.
    if (series.annotations.empty()) p_values.push_back(1);
    all.push_back(std::move(series));
  }
  const std::vector<bool> stands = benjamini_hochberg(p_values, options.false_discovery_rate);
  std::size_t at = 0;
  for (Series& series : all) {
    for (Annotation& annotation : series.annotations) annotation.stands = stands[at++];
    if (series.annotations.empty()) ++at;
  }
  return all;
}

std::string render_history(const History& history, const std::vector<Series>& series,
                           const Terminal& terminal) {
  Table table;
  table.column("kernel");
  table.column("device");
  table.column("runs", Table::Align::kRight);
  table.column("first", Table::Align::kRight);
  table.column("latest", Table::Align::kRight);
  table.column("history");
  table.column("changes", Table::Align::kRight);
  for (const Series& one : series)
    table.row({one.item.text(), one.device, std::to_string(one.points.size()),
               format_ns(one.points.front().median_ns), format_ns(one.points.back().median_ns),
               sparkline(one, 24, terminal.utf8()), std::to_string(one.annotations.size())});
  std::string text = table.render(terminal);
  int number = 0;
  for (const Series& one : series)
    for (const Annotation& annotation : one.annotations) {
      const ChangePoint& change = annotation.change;
      const Style style = change.ratio > 1 ? Style::kRed : Style::kGreen;
      text += fmt::format(
          "{:>3}. {}: {} from {} to {}, between {} and {} (p = {:.2g}{})\n", ++number,
          one.item.text(), terminal.paint(style, fmt::format("{:.3f}x", change.ratio)),
          format_ns(change.before), format_ns(change.after),
          shown_build(annotation.build_before, annotation.recorded_before),
          shown_build(annotation.build_after, annotation.recorded_after), change.p_value,
          annotation.stands ? "" : "; does not stand among so many series");
      text += "     " +
              (annotation.environment_change.empty()
                   ? "no recorded part of the environment changed with it"
                   : "with it changed: " + annotation.environment_change) +
              "\n";
    }
  for (const std::string& note : history.notes) text += "  note: " + note + "\n";
  if (number == 0) text += "no level moved\n";
  return text;
}

Json history_document(const History& history, const std::vector<Series>& series) {
  const Environment environment =
      history.runs.empty() ? Environment{} : history.runs.back().environment;
  Json document = new_document("purlin.guard-history/1", environment);
  document.set("runs", history.runs.size());
  Json list = Json::array();
  int number = 0;
  for (const Series& one : series) {
    Json points = Json::array();
    for (const SeriesPoint& point : one.points) {
      const Environment& at = history.runs[point.run].environment;
      points.push(Json::object({{"build", at.build},
                                {"recorded_at", at.recorded_at},
                                {"p50_ns", point.median_ns},
                                {"processes", point.processes}}));
    }
    Json annotations = Json::array();
    for (const Annotation& annotation : one.annotations)
      annotations.push(Json::object({{"number", ++number},
                                     {"point", annotation.point},
                                     {"ratio", annotation.change.ratio},
                                     {"before_ns", annotation.change.before},
                                     {"after_ns", annotation.change.after},
                                     {"p_value", annotation.change.p_value},
                                     {"stands", annotation.stands},
                                     {"build_before", annotation.build_before},
                                     {"build_after", annotation.build_after},
                                     {"recorded_before", annotation.recorded_before},
                                     {"recorded_after", annotation.recorded_after},
                                     {"environment_change", annotation.environment_change}}));
    list.push(Json::object({{"suite", one.suite},
                            {"kernel", one.item.kernel},
                            {"shape", one.item.shape},
                            {"variant", one.item.variant},
                            {"device", one.device},
                            {"points", std::move(points)},
                            {"annotations", std::move(annotations)}}));
  }
  document.set("series", std::move(list));
  document.set("notes", Json::array_of(history.notes));
  return document;
}

}  // namespace purlin::guard
