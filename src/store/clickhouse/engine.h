// SPDX-License-Identifier: Apache-2.0
// ClickhouseStore: the Store over ClickHouse's HTTP interface. Its parts are in ingest.cc,
// pointers.cc (raw profiles, guard results), retention.cc (days, months, expiry) and check.cc.
//
// See store/store.h; failure: see Client.
#pragma once

#include "store/arrival.h"
#include "store/clickhouse/client.h"
#include "store/clickhouse/dictionary.h"
#include "store/clickhouse/reader.h"
#include "store/clickhouse/rollup_rows.h"
#include "store/clickhouse/store.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace purlin::store {

class ClickhouseStore : public Store {
 public:
  ClickhouseStore(Client client, std::string target, StoreOptions options)
      : reader_(std::move(client)), target_(std::move(target)), options_(std::move(options)) {}

  std::vector<Result<Ingest>> ingest_many(const std::vector<HashedBatch>& batches) override;
  Status put_guard(const GuardResult& result) override;
  Status keep_raw(const std::string& sha256, std::int64_t until_ns,
                  const std::string& why) override;
  Status forget_raw(const std::string& sha256) override;
  Status expire(std::int64_t before_ns) override;
  Status compact() override;
  Result<StoreCheck> check() override;
  Result<std::uint64_t> release(const std::string& node) override;
  Result<std::unique_ptr<Reader>> reader() override {
    return open_clickhouse_reader(target_, options_);
  }
  Result<std::vector<Cell>> cells(const Filter& filter, const std::vector<Dimension>& by,
                                  Step step) override {
    return reader_.cells(filter, by, step);
  }
  Result<TopKernels> top(const Filter& filter, std::size_t limit) override {
    return reader_.top(filter, limit);
  }
  Result<std::vector<CoverageCell>> coverage(const Filter& filter, Step step) override {
    return reader_.coverage(filter, step);
  }
  Result<std::vector<NodeState>> nodes() override { return reader_.nodes(); }
  Result<std::vector<std::string>> values(Dimension dimension, const Filter& filter) override {
    return reader_.values(dimension, filter);
  }
  Result<std::vector<RawInfo>> raws(const Filter& filter) override { return reader_.raws(filter); }
  Result<std::vector<GuardResult>> guard_history(const std::string& kernel,
                                                 std::size_t limit) override {
    return reader_.guard_history(kernel, limit);
  }

 private:
  struct Item {
    const HashedBatch* batch = nullptr;
    Admission admission;
    BatchName name;
    BatchLabels labels;
    Status status;
    Ingest outcome = Ingest::kDuplicate;
    bool waits_for(std::int64_t day) const {
      return admission.counts() && status.is_ok() && admission.days.count(day) > 0;
    }
  };
  Client& client() { return reader_.client(); }
  std::uint64_t next_version();
  Result<std::vector<HashedBatch>> quarantined(const std::string& node);
  Status sort_out(const std::vector<HashedBatch>& batches, std::vector<Item>& items);
  Status keep_apart(const std::vector<const HashedBatch*>& wrong_clocks,
                    const std::vector<const HashedBatch*>& too_old);
  Status add_raws(const std::vector<HashedBatch>& batches);
  Status put_raw(const RawInfo& info, bool gone);
  Result<std::set<BatchName>> known(const std::vector<Item>& items, std::int64_t day);
  Status add_day(std::int64_t day, std::vector<Item>& items);
  Status add_sources(const std::vector<Item>& items);
  Status fold_slot(Level level, std::int64_t slot_ns, std::uint64_t revision,
                   const std::string& where);
  Status fold_days(std::int64_t until_ns);

  ClickhouseReader reader_;
  Dictionary dictionary_;
  const std::string target_;
  const StoreOptions options_;
  std::uint64_t last_version_ = 0;
};

}  // namespace purlin::store
