// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/lookup_metrics.h"

#include "backlog/work_list.h"

namespace purlin::fleet {

std::string lookup_metrics(const std::vector<std::string>& cache_directories) {
  std::uint64_t hits = 0, misses = 0, stale = 0, unreadable = 0;
  for (const std::string& directory : cache_directories) {
    const Result<backlog::WorkList> list = backlog::WorkList::read(directory);
    if (!list.is_ok()) {
      ++unreadable;
      continue;
    }
    for (const backlog::WorkRow& row : list->rows())
      hits += row.hits, misses += row.misses, stale += row.stale;
  }
  return fmt::format(
      "# HELP purlin_config_launches Launches of programs by what the config cache had for them.\n"
      "# TYPE purlin_config_launches gauge\n"
      "purlin_config_launches{{outcome=\"hit\"}} {}\n"
      "purlin_config_launches{{outcome=\"miss\"}} {}\n"
      "purlin_config_launches{{outcome=\"stale\"}} {}\n"
      "# HELP purlin_config_unreadable Work lists that could not be read.\n"
      "# TYPE purlin_config_unreadable gauge\n"
      "purlin_config_unreadable {}\n",
      hits, misses, stale, unreadable);
}

}  // namespace purlin::fleet
