// SPDX-License-Identifier: Apache-2.0
#include "model/profile/profile.h"

namespace purlin {

std::vector<RunLabels> run_labels(const Profile& profile) {
  std::vector<RunLabels> runs;
  for (const ProcessInfo& process : profile.processes) merge_label(runs, process.labels);
  if (runs.empty()) merge_label(runs, profile.labels);
  return runs;
}

}  // namespace purlin
