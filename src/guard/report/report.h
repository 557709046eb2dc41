// SPDX-License-Identifier: Apache-2.0
// Report: the verdicts of a gate, for people (a table), programs (purlin.guard/1), CI systems
// (JUnit, GitHub annotations) and reviewers (Markdown). docs/formats/guard.md describes the
// document.
//
// Thread-safety: pure functions over a value.
#pragma once

#include "base/json/json.h"
#include "base/output/terminal.h"
#include "guard/arms/pairs.h"
#include "guard/gate/gate.h"
#include "model/device/device.h"
#include "model/expression/value.h"

#include <string>
#include <vector>

namespace purlin::guard {

struct ReportItem {
  std::string kernel;
  std::string shape;    // "M=512,N=512", "" where not known
  std::string variant;  // separates items of equal kernel and shape, such as the requested config
  ItemResult result;
  Config baseline_config, current_config;
  std::string file;  // where the kernel's spec is, for annotations; "" = not known
  // Profiles of it under both arms, taken on a regression; "" = none.
  std::string profile_before, profile_after;
  double recorded_p50_ns = 0;  // in the baseline file; 0 = none
  std::vector<std::string> notes;
};

struct Report {
  std::string suite;
  Environment environment;
  std::vector<ReportItem> items;
  std::vector<std::string> notes;  // about the whole
  double seconds = 0;
  PairsRecord measurement;         // numbers of started, rejected and replayed pairs
  Json baseline_arm, current_arm;  // as Arm::record(); null without arms

  Verdict verdict() const;
};

// Sets one reason for all items without a verdict: they are inconclusive.
Report undecided(Report report, const std::string& reason);

std::string render_table(const Report& report, const Terminal& terminal);
Json to_json(const Report& report);
std::string render_junit(const Report& report);
std::string render_markdown(const Report& report);
// `::error …` lines for a GitHub job; none for passed items.
std::string render_annotations(const Report& report);

}  // namespace purlin::guard
