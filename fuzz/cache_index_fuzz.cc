// SPDX-License-Identifier: Apache-2.0
// The index of a cache from any bytes: as they are, and as summaries under a header that fits them,
// so that summaries which lie, in no order, are searched too.
#include "cache/store/record_set.h"

#include <cstdlib>
#include <cstring>

using namespace purlin::cache;

namespace {

template <class Summary>
std::vector<Summary> rows_from(const std::uint8_t* data, std::size_t size) {
  std::vector<Summary> summaries(size / sizeof(Summary));
  if (!summaries.empty())
    std::memcpy(static_cast<void*>(summaries.data()), data, summaries.size() * sizeof(Summary));
  return summaries;
}

void search(const std::shared_ptr<const SummaryIndex>& index) {
  RecordSet catalog;
  catalog.adopt(index);
  std::size_t seen = 0;
  catalog.each_entry([&](const EntrySummary& summary) {
    if (++seen > 64) return;
    catalog.has(summary.record);
    catalog.served(summary.record);
    catalog.validated(summary.record, summary.fields[7], summary.fields[8]);
    catalog.each_of_key(summary.group, summary.key, [](const EntrySummary&) {});
    catalog.each_of_group(summary.group, [](const EntrySummary&) {});
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (auto index = SummaryIndex::parse({reinterpret_cast<const char*>(data), size}); index.is_ok())
    search(*index);
  auto entries = rows_from<EntrySummary>(data, size);
  auto statuses = rows_from<StatusSummary>(data, size);
  const std::size_t count = entries.size() + statuses.size();
  const auto index = SummaryIndex::parse(SummaryIndex::encode({}, entries, statuses));
  if (!index.is_ok() || (*index)->entries().size() + (*index)->statuses().size() != count)
    std::abort();
  for (const EntrySummary& summary : (*index)->entries())
    if ((*index)->entry(summary.record) == nullptr) std::abort();
  search(*index);
  return 0;
}
