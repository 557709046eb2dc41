// SPDX-License-Identifier: Apache-2.0
// The index of a cache from any bytes: as they are, and as rows under a header that fits them, so
// that rows which lie, in no order, are searched too.
#include "cache/store/record_set.h"

#include <cstdlib>
#include <cstring>

using namespace purlin::cache;

namespace {

template <class Row>
std::vector<Row> rows_from(const std::uint8_t* data, std::size_t size) {
  std::vector<Row> rows(size / sizeof(Row));
  if (!rows.empty()) std::memcpy(static_cast<void*>(rows.data()), data, rows.size() * sizeof(Row));
  return rows;
}

void search(const std::shared_ptr<const RowIndex>& index) {
  Catalog catalog;
  catalog.adopt(index);
  std::size_t seen = 0;
  catalog.each_entry([&](const EntryRow& row) {
    if (++seen > 64) return;
    catalog.has(row.record);
    catalog.served(row.record);
    catalog.validated(row.record, row.fields[7], row.fields[8]);
    catalog.each_of_key(row.group, row.key, [](const EntryRow&) {});
    catalog.each_of_group(row.group, [](const EntryRow&) {});
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (auto index = RowIndex::parse({reinterpret_cast<const char*>(data), size}); index.is_ok())
    search(*index);
  auto entries = rows_from<EntryRow>(data, size);
  auto statuses = rows_from<StatusRow>(data, size);
  const std::size_t count = entries.size() + statuses.size();
  const auto index = RowIndex::parse(RowIndex::encode({}, entries, statuses));
  if (!index.is_ok() || (*index)->entries().size() + (*index)->statuses().size() != count)
    std::abort();
  for (const EntryRow& row : (*index)->entries())
    if ((*index)->entry(row.record) == nullptr) std::abort();
  search(*index);
  return 0;
}
