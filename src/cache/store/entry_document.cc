// SPDX-License-Identifier: Apache-2.0
#include "cache/store/entry_document.h"

namespace purlin::cache {

Json entry_document(const StoredEntry& stored, bool served) {
  Json entry = to_json(stored.entry);
  entry.set("record", stored.record);
  entry.set("served", served);
  entry.set("state", entry_state_name(stored.state));
  Json statuses = Json::array();
  for (const EntryStatus& status : stored.statuses) statuses.push(to_json(status));
  entry.set("statuses", std::move(statuses));
  return entry;
}

}  // namespace purlin::cache
