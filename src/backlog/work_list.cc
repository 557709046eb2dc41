// SPDX-License-Identifier: Apache-2.0
#include "backlog/work_list.h"

#include "base/files.h"
#include "model/document.h"

#include <algorithm>

namespace purlin::backlog {
namespace {

constexpr std::string_view kWorkListSchema = "purlin.worklist/1";
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

Json to_json(const WorkRow& row) {
  return Json::object({{"key", cache::to_json(row.key)},
                       {"entry", row.entry},
                       {"shape", row.shape},
                       {"spec", row.spec},
                       {"misses", row.misses},
                       {"hits", row.hits},
                       {"stale", row.stale},
                       {"error", row.error},
                       {"last_seen", row.last_seen}});
}

// A value that is not a count is 0. The limit keeps sums from overflowing.
std::uint64_t count_of(const Json& json) {
  return static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(json.as_int(), 0, std::int64_t{1} << 56));
}

Result<WorkRow> row_from_json(const Json& json) {
  WorkRow row;
  PURLIN_ASSIGN(row.key, cache::key_from_json(json["key"]));
  row.entry = json["entry"].as_string();
  row.shape = json["shape"].as_string();
  row.spec = json["spec"].as_string();
  row.misses = count_of(json["misses"]);
  row.hits = count_of(json["hits"]);
  row.stale = count_of(json["stale"]);
  row.error = count_of(json["error"]);
  row.last_seen = json["last_seen"].as_string();
  return row;
}

// The limit that a reader applies too.
void keep_bounded(std::uint64_t& count) { count = std::min(count, std::uint64_t{1} << 56); }

}  // namespace

std::string WorkList::path(const std::string& cache_directory) {
  return join_path(cache_directory, "worklist.json");
}

void WorkList::add(const WorkRow& row) {
  if (row.weight() == 0) return;
  const std::string id = row.id();
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    WorkRow& held = rows_[found->second];
    const std::uint64_t misses = held.misses, hits = held.hits, stale = held.stale,
                        error = held.error;
    const std::string spec = held.spec;
    if (row.last_seen >= held.last_seen) held = row;
    held.misses = misses + row.misses;
    held.hits = hits + row.hits;
    held.stale = stale + row.stale;
    held.error = error + row.error;
    for (std::uint64_t* count : {&held.misses, &held.hits, &held.stale, &held.error})
      keep_bounded(*count);
    if (held.spec.empty()) held.spec = spec.empty() ? row.spec : spec;
    return;
  }
  if (rows_.size() < kMaxRows) {
    by_id_[id] = rows_.size();
    rows_.push_back(row);
    return;
  }
  const auto lightest =
      std::min_element(rows_.begin(), rows_.end(),
                       [](const WorkRow& a, const WorkRow& b) { return a.weight() < b.weight(); });
  by_id_.erase(lightest->id());
  by_id_[id] = static_cast<std::size_t>(lightest - rows_.begin());
  const std::uint64_t inherited = lightest->weight();
  *lightest = row;
  lightest->error += inherited;
  keep_bounded(lightest->error);
}

Json WorkList::document() const {
  std::vector<const WorkRow*> ordered;
  for (const WorkRow& row : rows_) ordered.push_back(&row);
  std::stable_sort(ordered.begin(), ordered.end(), [](const WorkRow* a, const WorkRow* b) {
    return a->launches() > b->launches();
  });
  Json rows = Json::array();
  for (const WorkRow* row : ordered) rows.push(to_json(*row));
  Json document = new_document(kWorkListSchema, host_environment());
  document.set("rows", std::move(rows));
  return document;
}

Result<WorkList> WorkList::from_document(const Json& document) {
  if (document["schema"].as_string() != kWorkListSchema)
    return error(Code::kCorrupt,
                 "schema '{}' where '{}' was expected; a newer Purlin may have "
                 "written it",
                 document["schema"].as_string(), kWorkListSchema);
  if (!document["rows"].is_array())
    return error(Code::kCorrupt, "'rows' is not a list; remove the file to start again");
  WorkList list;
  for (const Json& item : document["rows"].items()) {
    // A row without a usable key is left out, and the others stay.
    if (const Result<WorkRow> row = row_from_json(item); row.is_ok()) list.add(*row);
  }
  return list;
}

Result<WorkList> WorkList::read(const std::string& cache_directory) {
  const std::string file = path(cache_directory);
  if (!file_exists(file)) return WorkList();
  PURLIN_ASSIGN(const std::string text, read_file(file, kMaxBytes));
  const Result<Json> document = Json::parse(text, {kMaxBytes, 16});
  if (!document.is_ok())
    return error(Code::kCorrupt, "{}: {}; remove it to start again", file,
                 document.status().message());
  Result<WorkList> list = from_document(*document);
  return list.is_ok() ? std::move(list) : list.status().with_context(file);
}

Status WorkList::merge_into(const std::string& cache_directory, const std::vector<WorkRow>& rows) {
  if (rows.empty()) return Status::ok();
  PURLIN_TRY(make_directories_durably(cache_directory));
  const std::string file = path(cache_directory);
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(file + ".lock"));
  PURLIN_ASSIGN(WorkList list, read(cache_directory));
  for (const WorkRow& row : rows) list.add(row);
  return write_atomic(file, list.document().dump(1) + "\n");
}

std::map<std::string, std::uint64_t> hot_entries(const WorkList& list) {
  std::map<std::string, std::uint64_t> launches;
  for (const WorkRow& row : list.rows())
    if (!row.entry.empty()) launches[row.entry] += row.launches();
  return launches;
}

}  // namespace purlin::backlog
