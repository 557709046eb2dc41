// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/schema.h"

namespace purlin::store {
namespace {

struct Table {
  const char* name;
  const char* columns;
  const char* engine;     // a MergeTree's prefix
  const char* arguments;  // of the engine
  const char* partition;  // "" for none
  const char* order;
  const char* shard;  // which server a row is on: all rows of a batch on one
};

#define PURLIN_ROLLUP                                                                        \
  "kernel UInt64, problem UInt64, platform UInt64, build UInt64, job UInt64, unit UInt64, "  \
  "hour UInt32, generation UInt64, node UInt64, launches Float64, recorded Float64, sum_ns " \
  "Float64, bucketsMap Nested(bucket Int32, weight Float64)"
#define PURLIN_ROLLUP_ORDER "kernel, problem, platform, build, job, unit, hour, generation, node"

// Kernel 0: a row names a batch. Kernel 1: coverage. docs/formats/store.md
constexpr Table kTables[] = {
    {"dict", "kind UInt8, id UInt64, f1 String, f2 String, f3 String, f4 String", "Replacing", "",
     "", "kind, id", "id"},
    {"hours", PURLIN_ROLLUP, "Summing", "", "intDiv(hour, 24)", PURLIN_ROLLUP_ORDER, "node"},
    {"days", PURLIN_ROLLUP, "Summing", "", "intDiv(hour, 744)", PURLIN_ROLLUP_ORDER, "kernel"},
    {"months", PURLIN_ROLLUP, "Summing", "", "intDiv(hour, 8784)", PURLIN_ROLLUP_ORDER, "kernel"},
    {"folds", "level UInt8, hour UInt32, generation UInt64, revision UInt64", "Replacing",
     "generation", "", "level, hour", "hour"},
    {"source",
     "id UInt64, day UInt32, node String, boot String, tool_version String, begin_ns Int64, "
     "end_ns Int64, received_ns Int64, skew_ns Int64, sequence UInt64, rss_bytes UInt64, shed "
     "String",
     "Replacing", "sequence", "", "id, day", "id"},
    {"raw",
     "sha256 String, bytes UInt64, begin_ns Int64, end_ns Int64, kind String, kernel String, node "
     "String, build String, job String, keep_until_ns Int64, kept_for String, gone UInt8, version "
     "UInt64",
     "Replacing", "version", "", "sha256", "cityHash64(sha256)"},
    {"guard",
     "id String, time_ns Int64, suite String, verdict String, build String, model String, kernels "
     "Array(String), document String",
     "Replacing", "", "", "id", "cityHash64(id)"},
    {"quarantine",
     "hash String, node String, boot String, skew_ns Int64, batch String, gone UInt8, version "
     "UInt64",
     "Replacing", "version", "", "hash", "cityHash64(hash)"},
    {"too_old", "node String, boot String, hash String", "Replacing", "", "", "node, boot, hash",
     "cityHash64(node)"},
    {"meta", "key String, value Int64, version UInt64", "Replacing", "version", "", "key",
     "cityHash64(key)"},
};

Result<bool> has_macros(Client& client) {
  PURLIN_ASSIGN(const std::int64_t count,
                client.integer("SELECT toInt64(count()) FROM system.macros WHERE macro IN "
                               "('shard', 'replica')"));
  return count == 2;
}

std::string engine_of(const Table& table, const Client& client, bool replicated) {
  std::string arguments = table.arguments;
  if (replicated) {
    const std::string path = fmt::format("'/purlin/{}/{{shard}}/{}', '{{replica}}'",
                                         client.target().database, table.name);
    arguments = arguments.empty() ? path : path + ", " + arguments;
  }
  // An expired partition must not come back after a restart (ClickHouse#8584). Newer servers sync.
  std::string settings = " SETTINGS old_parts_lifetime = 1";
  if (client.is_at_least(21, 1)) settings += ", fsync_after_insert = 1, fsync_part_directory = 1";
  return fmt::format(
      "{}{}MergeTree({}){} ORDER BY ({}){}", replicated ? "Replicated" : "", table.engine,
      arguments,
      *table.partition != '\0' ? fmt::format(" PARTITION BY {}", table.partition) : std::string(),
      table.order, settings);
}

}  // namespace

std::string local_table(const Client& client, const std::string& name) {
  return client.target().cluster.empty() ? name : name + "_local";
}

Status make_clickhouse_tables(Client& client) {
  PURLIN_TRY(client.execute("CREATE DATABASE IF NOT EXISTS {db}"));
  const std::string& cluster = client.target().cluster;
  bool replicated = false;
  if (!cluster.empty()) {
    PURLIN_ASSIGN(replicated, has_macros(client));
  }
  for (const Table& table : kTables) {
    PURLIN_TRY(client.execute(fmt::format("CREATE TABLE IF NOT EXISTS {{db}}.{} ({}) ENGINE = {}",
                                          local_table(client, table.name), table.columns,
                                          engine_of(table, client, replicated))));
    if (cluster.empty()) continue;
    PURLIN_TRY(client.execute(fmt::format(
        "CREATE TABLE IF NOT EXISTS {{db}}.{0} ({1}) ENGINE = Distributed({2}, {{db}}, {0}_local, "
        "{3})",
        table.name, table.columns, cluster, table.shard)));
  }
  // What another replica has written comes a moment later.
  if (replicated) PURLIN_TRY(client.execute("SYSTEM SYNC REPLICA {db}.meta_local"));
  PURLIN_ASSIGN(const std::int64_t version,
                client.integer(fmt::format("SELECT toInt64(max(value)) FROM {{db}}.{} WHERE key = "
                                           "'schema'",
                                           local_table(client, "meta"))));
  if (version > 0) return require_clickhouse_schema(client);
  return client.execute(fmt::format("INSERT INTO {{db}}.{} VALUES ('schema', {}, {})",
                                    local_table(client, "meta"), kClickhouseSchema,
                                    kClickhouseSchema));
}

Status require_clickhouse_schema(Client& client) {
  PURLIN_ASSIGN(const std::int64_t version,
                client.integer(fmt::format("SELECT toInt64(max(value)) FROM {{db}}.{} WHERE key = "
                                           "'schema'",
                                           local_table(client, "meta"))));
  if (version == 0)
    return error(Code::kNotFound, "{}: the database '{}' holds no store; run `purlin store init`",
                 client.target().url, client.target().database);
  if (version > kClickhouseSchema)
    return error(Code::kCorrupt, "{}: the store's schema has version {}, made by a newer Purlin",
                 client.target().url, version);
  if (version < kClickhouseSchema)
    return error(Code::kInvalid,
                 "{}: the store's schema has version {}; run `purlin store migrate`",
                 client.target().url, version);
  return Status::ok();
}

}  // namespace purlin::store
