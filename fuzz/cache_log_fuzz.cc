// SPDX-License-Identifier: Apache-2.0
// The cache's log and its entries from any bytes: the scan must account for every byte, a writer
// must be able to go on after it, and what is read as an entry must survive being written again.
// What is read where it lies must be what Json makes of it.
#include "base/json/json_view.h"
#include "cache/entry/entry.h"
#include "cache/store/cache_record.h"
#include "cache/store/record_log.h"
#include "require.h"

#include <cstdlib>

using namespace purlin::cache;

namespace {

void check_entry(std::string_view payload) {
  const auto json = purlin::Json::parse(payload);
  purlin::JsonScan scan;
  if (scan.scan(payload)) {
    require(json.is_ok());
    const Id128 id = Id128::parse(record_id(*json));
    RecordIds ids;
    require(ids.of(scan.root()) == Id128() || ids.of(scan.root()) == id);
    require(!ids.agrees(scan.root(), id) || !ids.agrees(scan.root(), Id128()));
    ConstraintCache constraints;
    const auto view = entry_from_json(scan.root(), EntryParts::kAll, constraints);
    const auto slow = entry_from_json(*json);
    require(!view.is_ok() || (slow.is_ok() && to_json(*view).dump() == to_json(*slow).dump()));
  }
  if (!json.is_ok()) return;
  const auto entry = entry_from_json(*json);
  if (!entry.is_ok()) return;
  const auto copy = entry_from_json(to_json(*entry));
  require(copy.is_ok() && copy->key == entry->key && copy->config == entry->config);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check_entry(bytes);

  std::size_t records = 0;
  const auto count = [&](const Record& record) {
    ++records;
    check_entry(record.payload);
  };
  const Scan scan = scan_records(bytes, 0, true, count);
  require(scan.end <= scan.append_at && scan.append_at <= size);

  // What a writer does next, and what the next reader sees.
  const std::size_t before = records;
  records = 0;
  bytes.resize(scan.append_at);
  bytes += encode_record(1, "the next record");
  const Scan after = scan_records(bytes, 0, true, count);
  require(records == before + 1 && after.end == bytes.size());
  return 0;
}
