// SPDX-License-Identifier: Apache-2.0
// Dictionary: the texts of entries by their ids. An id is a hash of kind and text, so that servers
// that never met give the same.
//
// Remembers what it has read and written. One thread. Failure: see Client; kCorrupt where a row
// names an entry that is not there.
#pragma once

#include "store/clickhouse/client.h"
#include "store/labels.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace purlin::store {

constexpr std::uint64_t kBatchKernel = 0, kCoverageKernel = 1;  // no kernel has these ids

std::uint64_t entry_id(Kind kind, std::string_view text);
// "kernel", "problem", …: the column of a row.
const char* column_of(Kind kind);
// " AND kernel IN (…)" for what a filter asks of these kinds.
std::string filter_sql(const Client& client, const Filter& filter, const std::vector<Kind>& kinds);

class Dictionary {
 public:
  // Makes sure that they are on the server.
  Status write(Client& client, const std::vector<BatchLabels::Entry>& entries);
  // Makes sure that fields() knows them.
  Status read(Client& client, Kind kind, const std::vector<std::uint64_t>& ids);
  const Fields& fields(std::uint64_t id) const { return known_.at(id); }

 private:
  std::unordered_set<std::uint64_t> written_;
  std::unordered_map<std::uint64_t, Fields> known_;
};

}  // namespace purlin::store
