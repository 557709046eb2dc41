// SPDX-License-Identifier: Apache-2.0
#include "cache/store/entry_reader.h"

namespace purlin::cache {

Result<Json> checked_json(std::string_view payload, const Id128& record, const std::string& log,
                          std::uint64_t offset) {
  PURLIN_ASSIGN(Json json, Json::parse(payload));
  if (Id128::parse(record_id(json)) != record)
    return error(Code::kCorrupt, "'{}' holds another record than {} at offset {}", log,
                 record.hex(), offset);
  return json;
}

Result<Entry> EntryReader::read(const EntrySummary& summary) {
  PURLIN_ASSIGN(const std::string_view payload, file_.read(summary.offset));
  if (scan_.scan(payload) && ids_.agrees(scan_.root(), summary.record))
    if (Result<Entry> entry = entry_from_json(scan_.root(), parts_, constraints_); entry.is_ok())
      return entry;
  // Not in the plain form, or not right: what it is then, and what is wrong with it, says Json.
  PURLIN_ASSIGN(const Json json, checked_json(payload, summary.record, log_, summary.offset));
  return entry_from_json(json);
}

}  // namespace purlin::cache
