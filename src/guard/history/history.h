// SPDX-License-Identifier: Apache-2.0
// History: what a suite measured, build after build, and where its level moved.
//
// The file is append-only JSON lines, one per measured run (docs/formats/history.md); a run is a
// distribution of per-process medians with its environment and build. Baselines and `guard run
// --json` documents are read as single runs. Appending is safe between processes, survives a crash
// (a torn last line is skipped by readers and cut off by the next writer) and is synced before it
// returns. Annotations are hints for people and for paired runs, never verdicts. Values; pure
// functions but for the file. Failure: kInvalid or kCorrupt naming file and line.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "base/terminal.h"
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
  Environment environment;  // build and recorded_at say which code and when
  std::string suite;
  std::vector<HistoryItem> items;
};

Json to_json(const HistoryRun& run);
Status append_history(const std::string& path, const HistoryRun& run);

struct History {
  std::vector<HistoryRun> runs;    // by time
  std::vector<std::string> notes;  // what was skipped
};
// Files and folders of them.
// One file; `path` is for messages.
Result<History> parse_history(std::string_view text, const std::string& path);
Result<History> load_history(const std::vector<std::string>& paths);

struct SeriesPoint {
  std::size_t run = 0;  // index into History::runs
  double median_ns = 0;
  int processes = 0;
};

struct Annotation {
  std::size_t point = 0;  // of the series: the first at the new level
  ChangePoint change;
  bool stands = false;  // also when all series tested are taken into account
  // What else changed between the two runs: "driver 570.86 -> 580.159"; "" = nothing that is
  // recorded, so the code did it or nothing visible.
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
