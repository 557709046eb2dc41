// SPDX-License-Identifier: Apache-2.0
// What a session found, as a document (docs/formats/session.md) and as text for a person.
// Thread-safety: pure functions over their arguments.
#pragma once

#include "base/json/json.h"
#include "base/output/terminal.h"
#include "model/document.h"
#include "model/spec/spec.h"
#include "tune/records/prior_runs.h"
#include "tune/session/session.h"

#include <optional>
#include <string>

namespace purlin::tune {

struct ReportInput {
  const Space& space;
  const SessionResult& result;
  const DeviceInfo& device;
  const KernelSpec* spec = nullptr;  // nullptr for a recording
  ProblemShape problem;
  std::string kernel;         // name, for people
  std::string strategy;       // as asked for
  std::string strategy_used;  // what "auto" chose
  bool confirmed = false;     // the cache's winner was measured again, and nothing was searched
  std::uint64_t seed = 1;
  Budget budget;
  measure::Policy policy;
  Objective objective = Objective::kTime;
  std::vector<PriorSource> transfer_sources;  // what the strategy was given to start from
  std::optional<TransferOutcome> transfer;    // none: it started from nothing
  double space_s = 0;                         // time to build the space
  std::string counters_problem;               // Evaluator::counters_problem
  std::string session_directory;              // "" = none
  std::string stored_directory, stored_key;   // "" = not stored
};

// The document `purlin tune --json` prints.
Json report_document(const ReportInput& input, const Environment& environment);
// The table of the fastest `top` configs with the default, and a summary of failures.
std::string report_text(const ReportInput& input, const Terminal& terminal, std::size_t top = 10);
// Why nothing worked: the most frequent kind of failure with its first message.
Status nothing_worked(const SessionResult& result);

}  // namespace purlin::tune
