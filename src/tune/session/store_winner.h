// SPDX-License-Identifier: Apache-2.0
// store_winner: puts a session's winner into a cache and says which entry of its key is then in
// use.
//
// Times of two sessions differ by the state of the machine as well. An entry of a config that the
// finals found slower than the winner gives way, also where it has the lower time.
// Not thread-safe for one store. Failure: that of Store::put; the winner is then not stored.
#pragma once

#include "base/status.h"
#include "cache/store/store.h"
#include "tune/session/session.h"

#include <string>

namespace purlin::tune {

struct StoredWinner {
  cache::Put put;
  std::string displaced;  // the record of the entry that gave way; "" = none
  std::string kept_why;   // where another entry stays in use: how it is better
};
Result<StoredWinner> store_winner(cache::Store& store, const cache::Entry& entry,
                                  const SessionResult& result);

}  // namespace purlin::tune
