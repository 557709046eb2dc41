// SPDX-License-Identifier: Apache-2.0
#include "cli/page/entry_document.h"

namespace purlin::cli {

Json entry_document(const cache::StoredEntry& stored, bool served) {
  Json entry = to_json(stored.entry);
  entry.set("record", stored.record);
  entry.set("served", served);
  entry.set("state", cache::entry_state_name(stored.state));
  Json statuses = Json::array();
  for (const cache::EntryStatus& status : stored.statuses) statuses.push(cache::to_json(status));
  entry.set("statuses", std::move(statuses));
  return entry;
}

}  // namespace purlin::cli
