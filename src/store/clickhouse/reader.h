// SPDX-License-Identifier: Apache-2.0
// ClickhouseReader: questions to a ClickHouse store. See store/store.h; failure: see Client.
#pragma once

#include "store/clickhouse/client.h"
#include "store/clickhouse/dictionary.h"
#include "store/grouping.h"
#include "store/plan.h"
#include "store/store.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace purlin::store {

class ClickhouseReader : public Reader {
 public:
  explicit ClickhouseReader(Client client) : client_(std::move(client)) {}

  Result<std::vector<Cell>> cells(const Filter& filter, const std::vector<Dimension>& by,
                                  Step step) override;
  Result<TopKernels> top(const Filter& filter, std::size_t limit) override;
  Result<std::vector<CoverageCell>> coverage(const Filter& filter, Step step) override;
  Result<std::vector<NodeState>> nodes() override;
  Result<std::vector<std::string>> values(Dimension dimension, const Filter& filter) override;
  Result<std::vector<RawInfo>> raws(const Filter& filter) override;
  Result<std::vector<GuardResult>> guard_history(const std::string& kernel,
                                                 std::size_t limit) override;

  // The generation and revision of the fold of a slot.
  struct Fold {
    std::uint64_t generation = 0, revision = 0;
  };
  using Folds = std::map<std::pair<Level, std::int64_t>, Fold>;  // by level and slot's begin
  Result<Folds> folds();
  // The number of batches of each day that has hours, from the horizon on.
  Result<std::map<std::int64_t, std::uint64_t>> days();
  Result<std::int64_t> horizon_ns();
  Client& client() { return client_; }

 private:
  struct Source {
    Level level;
    std::string where;  // " WHERE …"
  };
  Result<std::vector<Source>> sources(const Filter& filter, Step step, bool per_gpu);
  Status add_rows(const Source& source, const Filter& filter, Grouping& grouping, bool sketches,
                  const std::string& more);
  Status group_rows(const std::string& rows, const Source& source, Grouping& grouping,
                    bool sketches);

  Client client_;
  Dictionary dictionary_;
};

// The columns of raw, in the order of the schema, as SQL and from RowBinary.
RawInfo read_raw(profile::wire::Decoder& in);

}  // namespace purlin::store
