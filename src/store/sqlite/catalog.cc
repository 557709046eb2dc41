// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/catalog.h"

#include "store/labels.h"
#include "store/sqlite/schema.h"

#include <algorithm>
#include <limits>

namespace purlin::store {
namespace {

constexpr const char* kRawColumns =
    "sha256, bytes, begin_ns, end_ns, kind, kernel, node, build, job, keep_until_ns, kept_for";

RawInfo raw_of(const Statement& row) {
  RawInfo info;
  info.pointer.sha256 = row.text(0);
  info.pointer.bytes = static_cast<std::uint64_t>(row.integer(1));
  info.pointer.begin_ns = row.integer(2), info.pointer.end_ns = row.integer(3);
  info.pointer.kind = row.text(4), info.pointer.kernel = row.text(5);
  info.node = row.text(6), info.build = row.text(7), info.job = row.text(8);
  info.keep_until_ns = row.integer(9), info.kept_for = row.text(10);
  return info;
}

bool asks_for(const std::optional<std::string>& wanted, const std::string& value) {
  return !wanted || *wanted == value;
}

}  // namespace

Result<Catalog> Catalog::open(const std::string& path, Database::Mode mode) {
  PURLIN_ASSIGN(Database database, Database::open(path, mode));
  if (mode == Database::Mode::kWrite) PURLIN_TRY(require_schema(database, catalog_schema()));
  return Catalog(std::move(database));
}

Result<std::int64_t> Catalog::horizon_ns() {
  return database_.integer("SELECT value FROM meta WHERE key = 'horizon_ns'");
}

Status Catalog::set_horizon(std::int64_t ns) {
  PURLIN_ASSIGN(Statement put,
                database_.prepare("INSERT INTO meta VALUES('horizon_ns', ?1) ON CONFLICT DO UPDATE "
                                  "SET value = max(value, ?1)"));
  return put.bind(1, ns).run();
}

Status Catalog::add(const std::vector<Arrival>& arrivals) {
  if (std::none_of(arrivals.begin(), arrivals.end(), [](const Arrival& a) {
        return a.quarantined || a.too_old || !a.batch->batch.raws.empty();
      }))
    return Status::ok();
  PURLIN_ASSIGN(Transaction transaction, Transaction::begin(database_));
  for (const Arrival& arrival : arrivals) {
    const Batch& batch = arrival.batch->batch;
    if (arrival.too_old) {
      PURLIN_ASSIGN(Statement count,
                    database_.prepare("INSERT INTO too_old VALUES(?1, ?2, 1) ON CONFLICT DO UPDATE "
                                      "SET batches = batches + 1"));
      PURLIN_TRY(
          count.bind(1, std::string_view(batch.node)).bind(2, std::string_view(batch.boot)).run());
      continue;
    }
    if (arrival.quarantined) {
      PURLIN_ASSIGN(const std::string bytes, encode(batch));
      PURLIN_ASSIGN(Statement put, database_.prepare("INSERT OR IGNORE INTO quarantine "
                                                     "VALUES(?1, ?2, ?3, ?4, ?5)"));
      PURLIN_TRY(put.bind(1, std::string_view(arrival.batch->hash))
                     .bind(2, std::string_view(batch.node))
                     .bind(3, std::string_view(batch.boot))
                     .bind(4, batch.skew_ns)
                     .bind_blob(5, bytes)
                     .run());
    }
    PURLIN_TRY(add_raws(batch));
  }
  return transaction.commit();
}

Status Catalog::add_raws(const Batch& batch) {
  if (batch.raws.empty()) return Status::ok();
  PURLIN_ASSIGN(
      Statement put,
      database_.prepare("INSERT OR IGNORE INTO raw(sha256, bytes, begin_ns, end_ns, kind, "
                        "kernel, node, build, job) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, "
                        "?8, ?9)"));
  for (const RawPointer& raw : batch.raws) {
    const BatchRun& run = batch.runs[raw.run];
    const std::string job = job_of(run.labels);
    PURLIN_TRY(put.bind(1, std::string_view(raw.sha256))
                   .bind(2, static_cast<std::int64_t>(raw.bytes))
                   .bind(3, raw.begin_ns)
                   .bind(4, raw.end_ns)
                   .bind(5, std::string_view(raw.kind))
                   .bind(6, std::string_view(raw.kernel))
                   .bind(7, std::string_view(batch.node))
                   .bind(8, std::string_view(run.build))
                   .bind(9, std::string_view(job))
                   .run());
  }
  return Status::ok();
}

Result<std::vector<HashedBatch>> Catalog::quarantined(const std::string& node) {
  PURLIN_ASSIGN(Statement rows, database_.prepare("SELECT hash, skew_ns, batch FROM quarantine "
                                                  "WHERE ?1 = '' OR node = ?1 ORDER BY rowid"));
  rows.bind(1, std::string_view(node));
  std::vector<HashedBatch> batches;
  while (true) {
    PURLIN_ASSIGN(const bool found, rows.step());
    if (!found) return batches;
    Result<Batch> batch = decode(rows.blob(2));
    if (!batch.is_ok())
      return error(Code::kCorrupt, "{}: the quarantined batch {} is damaged: {}", database_.path(),
                   rows.text(0), batch.status().message());
    batch->skew_ns = rows.integer(1);
    batches.push_back({std::string(rows.text(0)), std::move(batch).value()});
  }
}

Status Catalog::leave_quarantine(const std::string& hash) {
  PURLIN_ASSIGN(Statement remove, database_.prepare("DELETE FROM quarantine WHERE hash = ?1"));
  return remove.bind(1, std::string_view(hash)).run();
}

Result<bool> Catalog::is_quarantined(const std::string& hash) {
  PURLIN_ASSIGN(Statement find, database_.prepare("SELECT 1 FROM quarantine WHERE hash = ?1"));
  find.bind(1, std::string_view(hash));
  PURLIN_ASSIGN(const bool found, find.step());
  return found;
}

Status Catalog::put_guard(const GuardResult& result) {
  PURLIN_ASSIGN(Transaction transaction, Transaction::begin(database_));
  PURLIN_ASSIGN(Statement put, database_.prepare("INSERT OR IGNORE INTO guard VALUES(?1, ?2, ?3, "
                                                 "?4, ?5, ?6, ?7)"));
  PURLIN_TRY(put.bind(1, std::string_view(result.id))
                 .bind(2, result.time_ns)
                 .bind(3, std::string_view(result.suite))
                 .bind(4, std::string_view(result.verdict))
                 .bind(5, std::string_view(result.build))
                 .bind(6, std::string_view(result.model))
                 .bind(7, std::string_view(result.document))
                 .run());
  PURLIN_ASSIGN(Statement add,
                database_.prepare("INSERT OR IGNORE INTO guard_kernel VALUES(?1, ?2)"));
  for (const std::string& kernel : result.kernels)
    PURLIN_TRY(add.bind(1, std::string_view(kernel)).bind(2, std::string_view(result.id)).run());
  return transaction.commit();
}

Result<std::vector<GuardResult>> Catalog::guard_history(const std::string& kernel,
                                                        std::size_t limit) {
  PURLIN_ASSIGN(Statement rows,
                database_.prepare("SELECT id, time_ns, suite, verdict, build, model, document FROM "
                                  "guard WHERE ?1 = '' OR id IN (SELECT id FROM guard_kernel WHERE "
                                  "kernel = ?1) ORDER BY time_ns DESC, id LIMIT ?2"));
  const auto most = std::min<std::size_t>(limit, std::numeric_limits<std::int32_t>::max());
  rows.bind(1, std::string_view(kernel)).bind(2, static_cast<std::int64_t>(most));
  PURLIN_ASSIGN(Statement kernels, database_.prepare("SELECT kernel FROM guard_kernel WHERE id = ?1"
                                                     " ORDER BY kernel"));
  std::vector<GuardResult> results;
  while (true) {
    PURLIN_ASSIGN(const bool found, rows.step());
    if (!found) break;
    GuardResult& result = results.emplace_back();
    result.id = rows.text(0), result.time_ns = rows.integer(1), result.suite = rows.text(2);
    result.verdict = rows.text(3), result.build = rows.text(4), result.model = rows.text(5);
    result.document = rows.text(6);
    kernels.bind(1, std::string_view(result.id));
    while (true) {
      PURLIN_ASSIGN(const bool more, kernels.step());
      if (!more) break;
      result.kernels.emplace_back(kernels.text(0));
    }
  }
  return results;
}

Result<std::vector<RawInfo>> Catalog::raws(const Filter& filter) {
  PURLIN_ASSIGN(Statement rows, database_.prepare(fmt::format(
                                    "SELECT {} FROM raw WHERE begin_ns >= ?1 AND begin_ns "
                                    "< ?2 ORDER BY begin_ns DESC, sha256",
                                    kRawColumns)));
  rows.bind(1, filter.begin_ns)
      .bind(2, filter.end_ns > 0 ? filter.end_ns : std::numeric_limits<std::int64_t>::max());
  std::vector<RawInfo> raws;
  while (true) {
    PURLIN_ASSIGN(const bool found, rows.step());
    if (!found) return raws;
    RawInfo info = raw_of(rows);
    if (asks_for(filter[Dimension::kNode], info.node) &&
        asks_for(filter[Dimension::kBuild], info.build) &&
        asks_for(filter[Dimension::kJob], info.job) &&
        asks_for(filter[Dimension::kKernel], info.pointer.kernel))
      raws.push_back(std::move(info));
  }
}

Status Catalog::keep_raw(const std::string& sha256, std::int64_t until_ns, const std::string& why) {
  PURLIN_ASSIGN(Statement keep,
                database_.prepare("UPDATE raw SET keep_until_ns = max(keep_until_ns, ?2), kept_for "
                                  "= ?3 WHERE sha256 = ?1 RETURNING 1"));
  keep.bind(1, std::string_view(sha256)).bind(2, until_ns).bind(3, std::string_view(why));
  PURLIN_ASSIGN(const bool found, keep.step());
  PURLIN_TRY(found ? keep.run() : Status::ok());
  return found ? Status::ok() : error(Code::kNotFound, "no raw profile has the address {}", sha256);
}

Status Catalog::forget_raw(const std::string& sha256) {
  PURLIN_ASSIGN(Statement remove, database_.prepare("DELETE FROM raw WHERE sha256 = ?1"));
  return remove.bind(1, std::string_view(sha256)).run();
}

Status Catalog::add_to(std::vector<NodeState>& nodes) {
  const auto state_of = [&](std::string_view node, std::string_view boot) -> NodeState& {
    for (NodeState& state : nodes)
      if (state.node == node && state.boot == boot) return state;
    nodes.emplace_back();
    nodes.back().node = node, nodes.back().boot = boot;
    return nodes.back();
  };
  PURLIN_ASSIGN(Statement old, database_.prepare("SELECT node, boot, batches FROM too_old"));
  while (true) {
    PURLIN_ASSIGN(const bool found, old.step());
    if (!found) break;
    state_of(old.text(0), old.text(1)).too_old = static_cast<std::uint64_t>(old.integer(2));
  }
  PURLIN_ASSIGN(Statement kept, database_.prepare("SELECT node, boot, count(*), max(skew_ns) FROM "
                                                  "quarantine GROUP BY node, boot"));
  while (true) {
    PURLIN_ASSIGN(const bool found, kept.step());
    if (!found) return Status::ok();
    NodeState& state = state_of(kept.text(0), kept.text(1));
    state.quarantined = static_cast<std::uint64_t>(kept.integer(2));
    if (state.batches == 0) state.skew_ns = kept.integer(3);
  }
}

Status Catalog::check(StoreCheck& result) {
  PURLIN_ASSIGN(Statement pages, database_.prepare("PRAGMA integrity_check(8)"));
  while (true) {
    PURLIN_ASSIGN(const bool found, pages.step());
    if (!found) break;
    if (pages.text(0) != "ok")
      result.findings.push_back({database_.path(), std::string(pages.text(0)), true});
  }
  PURLIN_ASSIGN(const std::int64_t kept, database_.integer("SELECT count(*) FROM quarantine"));
  if (kept > 0)
    result.findings.push_back(
        {database_.path(),
         fmt::format("{} batches are in quarantine: the clocks of their nodes are wrong", kept),
         false});
  return Status::ok();
}

}  // namespace purlin::store
