// SPDX-License-Identifier: Apache-2.0
// From a fleet's cells to the shared backlog, and to a guard suite: kernels that are hot in
// production enter both without a person. Pure; cannot fail.
#pragma once

#include "backlog/leases.h"
#include "fleet/analysis/rank.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::fleet {

// `toolkit` and `driver`: those that the fleet has most, so that a bump makes new tasks.
std::vector<backlog::Leases::Put> fleet_tasks(const std::vector<analysis::TuneTask>& tasks,
                                              const std::string& toolkit,
                                              const std::string& driver);

// Tasks by state, and the GPU time that tuning took today, for Prometheus; "" where the file fails.
std::string backlog_metrics(backlog::Leases& leases, std::int64_t now_ns);

// A suite for `purlin guard check` (docs/formats/suite.md): the hottest kernels that a spec
// computes. Lines for the others are comments with the reason.
struct SuggestedItem {
  std::string spec;   // path
  std::string shape;  // "M=512,N=512"
  std::string kernel;
  double share = 0;        // of the fleet's GPU time
  std::string left_out{};  // why it has no spec; "" = it has one
};
std::string suggested_suite(const std::string& name, const std::string& since,
                            const std::vector<SuggestedItem>& items);

}  // namespace purlin::fleet
