// SPDX-License-Identifier: Apache-2.0
// History: the measurements of a suite, build after build, and the points where its level moved.
//
// The file is append-only JSON lines, one per measured run (docs/formats/history.md). A run is a
// distribution of per-process medians with its environment and build. Baselines and `guard run
// --json` documents are read as single runs. Appending is safe between processes and survives a
// crash: readers skip a torn last line, and the next writer removes it. A line is synced before
// append_history() returns. Annotations are hints for people and for paired runs, never verdicts.
// Values; pure functions, except for the file. Failure: kInvalid or kCorrupt with file and line.
#pragma once

#include "base/json/json.h"
#include "base/output/terminal.h"
#include "base/status.h"
#include "guard/arms/arm.h"
#include "guard/history/change_points.h"
#include "model/device/device.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::guard {

struct HistoryItem {
  Item item;
  std::vector<double> processes_ns;  // median of each process
};

struct HistoryRun {
  Environment environment;  // with build and recorded_at
  std::string suite;
  std::vector<HistoryItem> items;
};

Json to_json(const HistoryRun& run);
Status append_history(const std::string& path, const HistoryRun& run);

struct History {
  std::vector<HistoryRun> runs;    // by time
  std::vector<std::string> notes;  // skipped lines and files
};
// One file; `path` is for messages.
Result<History> parse_history(std::string_view text, const std::string& path);
// Files, and folders of files.
Result<History> load_history(const std::vector<std::string>& paths);

struct SeriesPoint {
  std::size_t run = 0;  // index into History::runs
  double median_ns = 0;
  int processes = 0;
};

struct Annotation {
  std::size_t point = 0;  // of the series: the first at the new level
  ChangePoint change;
  bool stands = false;  // also after the correction for all tested series
  // The change of the environment between the two runs: "driver 570.86 -> 580.159"; "" = no
  // recorded one.
  std::string environment_change;
  std::string build_before, build_after;
  std::string recorded_before, recorded_after;
};

struct Series {  // one item on one model of device
  std::string suite;
  Item item;
  std::string device;
  std::vector<SeriesPoint> points;
  std::vector<Annotation> annotations;
};

struct HistoryOptions {
  ChangePointOptions change_points;
  double false_discovery_rate = 0.05;  // over all series (Benjamini-Hochberg)
  std::string filter;                  // part of an item's text; "" = all
};
std::vector<Series> analyse_history(const History& history, const HistoryOptions& options);

std::string render_history(const History& history, const std::vector<Series>& series,
                           const Terminal& terminal);
Json history_document(const History& history, const std::vector<Series>& series);

}  // namespace purlin::guard
