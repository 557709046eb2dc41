// SPDX-License-Identifier: Apache-2.0
#include "fleet/backlog/known_times.h"

#include "analyze/kernel_name/kernel_name.h"
#include "base/files.h"
#include "blobs/directory_blobs.h"
#include "cache/entry/entry.h"
#include "cache/share/share.h"
#include "fleet/analysis/problems.h"
#include "fleet/analysis/roofs.h"
#include "model/expression/value.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace purlin::fleet {
namespace {

constexpr std::size_t kMaxKnownRecords = 1'000'000;

// Dimensions in any order, without those that are 1: a batch of one is no batch.
using Extents = std::map<std::string, std::int64_t>;
Extents extents_of(const std::string& text) {
  Extents extents;
  const Result<ProblemShape> shape = parse_shape(text);
  if (!shape.is_ok()) return extents;
  for (const auto& [name, extent] : shape->items())
    if (extent != 1 && name != "read" && name != "write") extents[name] = extent;
  return extents;
}

// The best time of a problem on a GPU, and whether one of the driver is among those there are.
struct BestTime {
  double best_ns = 0;
  bool current = false;
};
using TimesByPlace = std::map<std::pair<std::string, Extents>, BestTime>;

std::string place_of_time(const std::string& what, const std::string& dtype,
                          const std::string& gpu) {
  return what + '\n' + dtype + '\n' + gpu;
}

TimesByPlace times_by_place(const std::vector<MeasuredTime>& measured, const std::string& driver) {
  TimesByPlace times;
  for (const MeasuredTime& one : measured)
    for (const std::string& what : {"op " + one.op, "kernel " + one.kernel}) {
      BestTime& best = times[{place_of_time(what, one.dtype, one.gpu), extents_of(one.problem)}];
      best.best_ns = best.best_ns > 0 ? std::min(best.best_ns, one.best_ns) : one.best_ns;
      best.current = best.current || driver.empty() || one.driver.empty() || one.driver == driver;
    }
  return times;
}

}  // namespace

std::vector<MeasuredTime> KnownTimes::read(Log& log) {
  for (const std::string& cache : list_directory(folder_).value_or({}))
    if (is_directory(join_path(folder_, cache))) read_cache(cache, log);
  std::vector<MeasuredTime> times;
  for (const auto& [record, time] : times_) {
    const auto standing = standings_.find(record);
    if (standing == standings_.end() || standing->second.served) times.push_back(time);
  }
  return times;
}

void KnownTimes::read_cache(const std::string& cache, Log& log) {
  const auto objects = blobs::make_directory_blobs(join_path(folder_, cache));
  cache::Share share(*objects, clock_, 1);
  const auto sink = [this](const std::vector<cache::CacheRecord>& records) {
    for (const cache::CacheRecord& record : records) {
      if (records_.size() >= kMaxKnownRecords || !records_.insert(record.id).second) continue;
      const Result<Json> json = Json::parse(record.payload);
      if (!json.is_ok()) continue;
      if (record.kind == cache::RecordKind::kStatus) {
        if (const Result<cache::EntryStatus> status = cache::status_from_json(*json);
            status.is_ok()) {
          Standing& last = standings_[status->record];
          if (status->at_ns() >= last.at_ns)
            last = {status->at_ns(), cache::is_served(status->state)};
        }
        continue;
      }
      const Result<cache::Entry> entry = cache::entry_from_json(*json);
      if (!entry.is_ok() || !entry->verified || entry->time_ms <= 0) continue;
      times_[record.id] = {entry->key.kernel,   entry->key.op,     entry->key.dtype,
                           entry->key.device,   entry->key.driver, entry->problem.text(),
                           entry->time_ms * 1e6};
    }
    return Status::ok();
  };
  const auto pulled =
      share.pull([this](const std::string& id) { return records_.count(id) > 0; }, sink);
  if (!pulled.is_ok() && pulled.status().code() != Code::kNotFound)
    log.warn("the best times of the cache '{}' are left out: {}", cache, pulled.status().message());
}

std::vector<analysis::Known> known_facts(const std::vector<analysis::Cell>& cells,
                                         const std::vector<MeasuredTime>& measured,
                                         const std::string& driver, std::size_t limit) {
  const std::map<analysis::ProblemKey, analysis::Problem> problems = analysis::problems_of(cells);
  std::vector<const analysis::Problem*> order;
  for (const auto& [key, problem] : problems) order.push_back(&problem);
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->time.total_ns() > b->time.total_ns(); });
  if (order.size() > limit) order.resize(limit);
  const TimesByPlace times = times_by_place(measured, driver);
  std::vector<analysis::Known> facts;
  analysis::RoofReader roofs;
  for (const analysis::Problem* problem : order) {
    const analysis::Cell& cell = *problem->cell;
    const analyze::KernelName& name = roofs.name_of(cell);
    analysis::Known known{cell.kernel, cell.shape, cell.dtype, cell.gpu, {}, {}, false};
    const std::string dtype = cell.dtype.empty() ? std::string(name.dtype) : cell.dtype;
    for (const std::string& what :
         {"kernel " + cell.kernel, "kernel " + name.brief, "op " + std::string(name.op_class)}) {
      const auto found =
          cell.shape.empty()
              ? times.end()
              : times.find({place_of_time(what, dtype, cell.gpu), extents_of(cell.shape)});
      if (found == times.end()) continue;
      known.best_ns = found->second.best_ns;
      known.stale = !found->second.current;
      break;
    }
    const double utilization = known.best_ns ? 0 : roofs.roof_of(cell, problem->time).utilization;
    if (utilization > 0) known.roof_utilization = std::min(utilization, 1.0);
    if (known.best_ns || known.roof_utilization) facts.push_back(std::move(known));
  }
  return facts;
}

}  // namespace purlin::fleet
