// SPDX-License-Identifier: Apache-2.0
// Finding: something that a person should hear of once: a kernel that became slower, a straggler, a
// node whose records are too thin. Made from the conclusions of fleet/analysis. Pure; cannot fail.
#pragma once

#include "base/json/json.h"
#include "fleet/analysis/coverage.h"
#include "fleet/analysis/slower.h"
#include "fleet/analysis/stragglers.h"

#include <string>
#include <vector>

namespace purlin::fleet {

struct Finding {
  std::string kind;               // "slower", "straggler", "thin"
  std::string kernel, gpu, node;  // "" where it is about none
  std::string title, text;        // one line; some sentences
  std::string link;               // to the history in the server
  std::string command;            // the next one to run, "" for none
  double ratio = 0, lost_gpu_s = 0;
  std::int64_t at_ns = 0;

  // The same for the same thing in each evaluation: an estimate that moves makes no new finding.
  std::string id() const;
};

// Alarms, not suspects. `server`: the URL under which people reach it.
std::vector<Finding> findings_of(const analysis::Slower& slower,
                                 const analysis::Stragglers& stragglers,
                                 const std::vector<analysis::ThinNode>& thin,
                                 const std::string& server, std::int64_t now_ns);

// The history of a kernel on a model of GPU: what an alert and a red item of the guard link to.
std::string history_link(const std::string& server, const std::string& kernel,
                         const std::string& gpu);

}  // namespace purlin::fleet
