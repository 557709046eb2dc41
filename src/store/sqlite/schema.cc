// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/schema.h"

namespace purlin::store {
namespace {

// Texts are found by their hash, so that each is in the file once. docs/formats/store.md
constexpr const char* kPeriodTables = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
CREATE TABLE dict(id INTEGER PRIMARY KEY, kind INTEGER, hash INTEGER, text TEXT);
CREATE INDEX dict_hash ON dict(hash);
CREATE TABLE series(id INTEGER PRIMARY KEY, kernel INTEGER, problem INTEGER, platform INTEGER,
  build INTEGER, job INTEGER, unit INTEGER);
CREATE UNIQUE INDEX series_key ON series(kernel, problem, platform, build, job, unit);
CREATE TABLE rollup(slot INTEGER, series INTEGER, launches REAL, recorded REAL, sum_ns REAL,
  sketch BLOB, PRIMARY KEY(slot, series)) WITHOUT ROWID;
CREATE TABLE coverage(slot INTEGER, platform INTEGER, unit INTEGER, why INTEGER, busy_ns REAL,
  seen_ns REAL, seen REAL, lost REAL, sampled_out REAL, overhead_ns REAL, bad_timestamps REAL,
  PRIMARY KEY(slot, platform, unit, why)) WITHOUT ROWID;
CREATE TABLE source(id INTEGER PRIMARY KEY, node TEXT, boot TEXT, tool_version TEXT,
  first_begin_ns INTEGER, last_end_ns INTEGER, received_ns INTEGER, skew_ns INTEGER,
  first_sequence INTEGER, last_sequence INTEGER, batches INTEGER, cpu_ns REAL, rss_bytes INTEGER,
  shed TEXT, UNIQUE(node, boot));
CREATE TABLE batch(source INTEGER, sequence INTEGER, hash BLOB, home INTEGER,
  PRIMARY KEY(source, sequence, hash)) WITHOUT ROWID;
CREATE TABLE folded(slot INTEGER PRIMARY KEY, revision INTEGER);
)sql";

constexpr const char* kCatalogTables = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
CREATE TABLE raw(sha256 TEXT PRIMARY KEY, bytes INTEGER, begin_ns INTEGER, end_ns INTEGER,
  kind TEXT, kernel TEXT, node TEXT, build TEXT, job TEXT, keep_until_ns INTEGER DEFAULT 0,
  kept_for TEXT DEFAULT '') WITHOUT ROWID;
CREATE INDEX raw_begin ON raw(begin_ns);
CREATE TABLE guard(id TEXT PRIMARY KEY, time_ns INTEGER, suite TEXT, verdict TEXT, build TEXT,
  model TEXT, document TEXT);
CREATE TABLE guard_kernel(kernel TEXT, id TEXT, PRIMARY KEY(kernel, id)) WITHOUT ROWID;
CREATE TABLE quarantine(hash TEXT PRIMARY KEY, node TEXT, boot TEXT, skew_ns INTEGER,
  batch BLOB);
CREATE TABLE too_old(node TEXT, boot TEXT, batches INTEGER, PRIMARY KEY(node, boot)) WITHOUT ROWID;
)sql";

}  // namespace

const SchemaSteps& period_schema() {
  static const SchemaSteps steps = {kPeriodTables};
  return steps;
}

const SchemaSteps& catalog_schema() {
  static const SchemaSteps steps = {kCatalogTables};
  return steps;
}

Result<int> schema_version(Database& database) {
  PURLIN_ASSIGN(const std::int64_t version, database.integer("PRAGMA user_version"));
  return static_cast<int>(version);
}

Status check_schema_version(Database& database, const SchemaSteps& steps) {
  PURLIN_ASSIGN(const int version, schema_version(database));
  const int wanted = static_cast<int>(steps.size());
  if (version > wanted || version < 0)
    return error(Code::kCorrupt,
                 "{}: its schema has version {}, written by a newer Purlin; update this one",
                 database.path(), version);
  if (version < wanted)
    return error(Code::kInvalid, "{}: its schema has version {}; run `purlin store migrate`",
                 database.path(), version);
  return Status::ok();
}

Result<int> take_steps(Database& database, const SchemaSteps& steps) {
  PURLIN_ASSIGN(const int version, schema_version(database));
  const int wanted = static_cast<int>(steps.size());
  if (version > wanted || version < 0) return check_schema_version(database, steps);
  for (int step = version; step < wanted; ++step) {
    PURLIN_ASSIGN(Transaction transaction, Transaction::begin(database));
    PURLIN_TRY(database.execute(steps[static_cast<std::size_t>(step)]));
    PURLIN_TRY(database.execute(fmt::format("PRAGMA user_version = {}", step + 1).c_str()));
    PURLIN_TRY(transaction.commit());
  }
  return wanted - version;
}

Status require_schema(Database& database, const SchemaSteps& steps) {
  PURLIN_ASSIGN(const int version, schema_version(database));
  return version == 0 ? take_steps(database, steps).status()
                      : check_schema_version(database, steps);
}

}  // namespace purlin::store
