// SPDX-License-Identifier: Apache-2.0
// store_winner: puts a session's winner into a cache and says which entry of its key is then in
// use. `purlin tune` and the programs that tune their own kernels store by it.
//
// Times of two sessions differ by the state of the machine as well. An entry of a config that the
// finals found slower than the winner gives way, also where it has the lower time. It stays where
// its outputs were verified and those of the winner were not.
// Not thread-safe for one store. Failure: that of the store; after one of put(), the winner is not
// stored.
#pragma once

#include "base/status.h"
#include "cache/store/store.h"
#include "tune/session/session.h"

#include <string>
#include <vector>

namespace purlin::tune {

struct StoredWinner {
  cache::Put put;
  std::vector<std::string> displaced;  // the records of the entries that gave way
  std::string kept_why;                // where another entry stays in use: how it is better

  // For a log, a line each; empty: the winner is in use, and nothing gave way.
  std::vector<std::string> notes() const;
};
Result<StoredWinner> store_winner(cache::Store& store, const cache::Entry& entry,
                                  const SessionResult& result);

}  // namespace purlin::tune
