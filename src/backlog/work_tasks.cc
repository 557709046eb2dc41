// SPDX-License-Identifier: Apache-2.0
#include "backlog/work_tasks.h"

#include "base/text.h"
#include "cache/hot/op_index.h"
#include "cache/store/why_missed.h"

#include <algorithm>
#include <map>
#include <memory>

namespace purlin::backlog {

WorkTasks work_tasks(const WorkList& list, const cache::Store& store) {
  // The same lookup as in programs. One index of an op serves all its rows.
  std::map<std::string, std::unique_ptr<cache::OpIndex>> indexes;
  WorkTasks made;
  for (const WorkRow& row : list.rows()) {
    if (row.misses + row.stale == 0) continue;
    const Result<ProblemShape> problem = parse_shape(row.shape);
    if (!problem.is_ok() || problem->items().size() > cache::kMaxDimensions) continue;
    cache::CacheKey op = row.key;
    op.bucket.clear();
    std::vector<std::string> dimensions;
    cache::Extents extents{};
    for (const auto& [name, extent] : problem->items()) {
      extents[dimensions.size()] = extent;
      dimensions.push_back(name);
    }
    std::unique_ptr<cache::OpIndex>& index = indexes[op.id() + join(dimensions, ",")];
    if (index == nullptr) {
      index = std::make_unique<cache::OpIndex>(op, dimensions, true);
      index->update(store);
    }
    const cache::OpIndex::Hit hit = index->find(extents.data());
    const bool transferred = hit.outcome == cache::Outcome::kTransferred;
    if (hit.entry != nullptr && !transferred) continue;  // tuned or validated in the meantime
    if (row.spec.empty() && hit.entry == nullptr) {
      const cache::MissReason why = cache::why_missed({&store, 1}, op, *problem);
      if (!why.has_spec) {
        const std::string line = fmt::format("{}: {}", row.key.kernel, why.text);
        if (std::find(made.left_out.begin(), made.left_out.end(), line) == made.left_out.end())
          made.left_out.push_back(line);
        continue;
      }
    }
    const bool same_model = transferred && !hit.entry->other_model;
    Task task;
    task.key.kind = same_model ? "validate" : "tune";
    task.key.kernel = row.key.kernel;
    task.key.shape = row.shape;
    task.spec = row.spec;
    task.key.device = row.key.device;
    task.key.toolkit = row.key.toolkit;
    task.key.driver = row.key.driver;
    task.queued_at = row.last_seen;
    task.launches = row.misses + row.stale;
    if (same_model) task.launch_ns = hit.entry->time_ms * 1e6;
    task.reason = same_model ? "its winner was measured under another driver or toolkit"
                             : "programs launch it untuned";
    made.tasks.push_back(std::move(task));
  }
  return made;
}

}  // namespace purlin::backlog
