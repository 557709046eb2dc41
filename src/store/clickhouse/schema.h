// SPDX-License-Identifier: Apache-2.0
// The tables of a ClickHouse store, in what 18.16 understands; newer servers also sync inserts.
//
// With a cluster, NAME_local is on each server and NAME is Distributed over them: init runs once
// for each server. Failure: see Client; kCorrupt where a newer Purlin made them.
#pragma once

#include "store/clickhouse/client.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::store {

constexpr int kClickhouseSchema = 1;

Status make_clickhouse_tables(Client& client);
// kNotFound without any, kInvalid where they are of an older version.
Status require_clickhouse_schema(Client& client);
// The table that holds the rows on this server.
std::string local_table(const Client& client, const std::string& name);

}  // namespace purlin::store
