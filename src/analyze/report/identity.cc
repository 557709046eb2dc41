// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/identity.h"

#include "analyze/report/selection.h"
#include "base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace purlin::analyze {

std::string profile_id(const Profile& profile) {
  // Merging does not keep the order of rows, so they are sorted first.
  std::vector<std::string> rows;
  for (const KernelRow& row : profile.kernels)
    rows.push_back(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", row.name, to_text(row.launch), row.shape,
                               row.device, row.duration.count(), row.duration.total_ns()));
  std::sort(rows.begin(), rows.end());
  std::vector<std::string> processes;
  for (const ProcessInfo& process : profile.processes)
    processes.push_back(fmt::format("{} {} {}", process.pid, process.start_ns, process.command));
  std::sort(processes.begin(), processes.end());
  FieldHasher hasher;
  hasher.add(profile.source).add(profile.command).add(profile.environment.recorded_at);
  for (const auto* list : {&processes, &rows})
    for (const std::string& text : *list) hasher.add(text);
  return hasher.hex().substr(0, 16);
}

std::string row_id(const KernelStat& kernel, GroupBy group_by) {
  return FieldHasher().add(row_key(kernel, group_by)).hex().substr(0, 12);
}

}  // namespace purlin::analyze
