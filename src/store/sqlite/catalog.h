// SPDX-License-Identifier: Apache-2.0
// Catalog: what an SQLite store keeps next to rows: raw profiles, guard results, quarantine, the
// horizon before which hours are removed.
//
// One thread. What a call changed is durable when it returns. Failure: see Database.
#pragma once

#include "store/sqlite/database.h"
#include "store/store.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace purlin::store {

class Catalog {
 public:
  static Result<Catalog> open(const std::string& path, Database::Mode mode);

  Result<std::int64_t> horizon_ns();
  Status set_horizon(std::int64_t ns);  // never moves back

  // In one transaction: what a group of batches leaves here.
  struct Arrival {
    const HashedBatch* batch = nullptr;
    bool quarantined = false, too_old = false;
  };
  Status add(const std::vector<Arrival>& arrivals);
  // Batches in quarantine, of a node or, where it is "", of all; with their skews.
  Result<std::vector<HashedBatch>> quarantined(const std::string& node);
  Status leave_quarantine(const std::string& hash);
  Result<bool> is_quarantined(const std::string& hash);

  Status put_guard(const GuardResult& result);
  Result<std::vector<GuardResult>> guard_history(const std::string& kernel, std::size_t limit);

  Result<std::vector<RawInfo>> raws(const Filter& filter);
  Status keep_raw(const std::string& sha256, std::int64_t until_ns, const std::string& why);
  Status forget_raw(const std::string& sha256);

  // Adds what of a node is here.
  Status add_to(std::vector<NodeState>& nodes);
  Status check(StoreCheck& result);

 private:
  explicit Catalog(Database database) : database_(std::move(database)) {}
  Status add_raws(const Batch& batch);
  Database database_;
};

}  // namespace purlin::store
