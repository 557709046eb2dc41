// SPDX-License-Identifier: Apache-2.0
// MemoryStore: a Store in memory for the tests of the server, which can be down, full or slow. It
// counts each batch once, and answers only the questions that the tests ask. [MT].
#pragma once

#include "store/store.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace purlin::fleet {

struct MemoryFacts {
  std::mutex mutex;
  std::set<std::string> hashes;
  std::map<std::string, double> launches;  // by kernel
  std::vector<store::Batch> batches;
  std::vector<store::GuardResult> guard;
  std::atomic<int> commits{0};
  std::atomic<Code> fails{Code::kOk};  // what writes answer
};

class MemoryReader : public store::Reader {
 public:
  explicit MemoryReader(std::shared_ptr<MemoryFacts> facts) : facts_(std::move(facts)) {}
  Result<std::vector<store::Cell>> cells(const store::Filter& filter,
                                         const std::vector<store::Dimension>& by,
                                         store::Step) override {
    const std::lock_guard lock(facts_->mutex);
    std::vector<store::Cell> cells;
    const std::optional<std::string>& kernel = filter[store::Dimension::kKernel];
    for (const store::Batch& batch : facts_->batches)
      for (const store::BatchRow& row : batch.rows)
        if (!kernel || *kernel == row.kernel)
          cells.push_back({row.hour_ns, values_of(batch, row, by), row.duration, row.recorded});
    return cells;
  }
  Result<store::TopKernels> top(const store::Filter&, std::size_t limit) override {
    const std::lock_guard lock(facts_->mutex);
    store::TopKernels top;
    for (const auto& [kernel, launches] : facts_->launches) {
      top.launches += launches;
      ++top.kernels_in_all;
      if (top.kernels.size() < limit)
        top.kernels.push_back({.kernel = kernel, .launches = launches, .recorded = launches});
    }
    return top;
  }
  Result<std::vector<store::CoverageCell>> coverage(const store::Filter&, store::Step) override {
    const std::lock_guard lock(facts_->mutex);
    std::vector<store::CoverageCell> cells;
    for (const store::Batch& batch : facts_->batches)
      for (const store::BatchCoverage& one : batch.coverage)
        cells.push_back({.begin_ns = one.hour_ns,
                         .node = batch.node,
                         .gpu = batch.devices.at(one.device).uuid,
                         .busy_ns = one.busy_ns,
                         .seen_ns = one.seen_ns,
                         .launches_seen = one.launches_seen,
                         .launches_lost = one.launches_lost});
    return cells;
  }
  Result<std::vector<store::NodeState>> nodes() override {
    const std::lock_guard lock(facts_->mutex);
    std::map<std::string, store::NodeState> nodes;
    for (const store::Batch& batch : facts_->batches) {
      store::NodeState& node = nodes[batch.node];
      node.node = batch.node;
      ++node.batches;
      node.skew_ns = batch.skew_ns;
    }
    std::vector<store::NodeState> all;
    for (auto& [name, node] : nodes) all.push_back(std::move(node));
    return all;
  }
  Result<std::vector<std::string>> values(store::Dimension, const store::Filter&) override {
    return std::vector<std::string>{};
  }
  Result<std::vector<store::RawInfo>> raws(const store::Filter&) override {
    const std::lock_guard lock(facts_->mutex);
    std::vector<store::RawInfo> raws;
    for (const store::Batch& batch : facts_->batches)
      for (const store::RawPointer& raw : batch.raws)
        raws.push_back({raw, batch.node, batch.runs.at(raw.run).build, "", 0, ""});
    return raws;
  }
  Result<std::vector<store::GuardResult>> guard_history(const std::string&, std::size_t) override {
    const std::lock_guard lock(facts_->mutex);
    return facts_->guard;
  }

 private:
  static std::vector<std::string> values_of(const store::Batch& batch, const store::BatchRow& row,
                                            const std::vector<store::Dimension>& by) {
    std::vector<std::string> values;
    for (const store::Dimension dimension : by) {
      using store::Dimension;
      values.push_back(dimension == Dimension::kKernel  ? row.kernel
                       : dimension == Dimension::kRole  ? row.role
                       : dimension == Dimension::kShape ? row.shape
                       : dimension == Dimension::kDtype ? row.dtype
                       : dimension == Dimension::kNode  ? batch.node
                       : dimension == Dimension::kBuild ? batch.runs.at(row.run).build
                       : dimension == Dimension::kModel ? batch.devices.at(row.device).model
                                                        : std::string());
    }
    return values;
  }
  const std::shared_ptr<MemoryFacts> facts_;
};

class MemoryStore : public store::Store {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryFacts> facts)
      : facts_(std::move(facts)), reader_(facts_) {}
  std::vector<Result<store::Ingest>> ingest_many(
      const std::vector<store::HashedBatch>& batches) override {
    const Code fails = facts_->fails.load();
    facts_->commits.fetch_add(1);
    std::vector<Result<store::Ingest>> answers;
    const std::lock_guard lock(facts_->mutex);
    for (const store::HashedBatch& one : batches) {
      if (fails != Code::kOk) {
        answers.push_back(Status(fails, "as the test says"));
      } else if (!facts_->hashes.insert(one.hash).second) {
        answers.push_back(store::Ingest::kDuplicate);
      } else {
        for (const store::BatchRow& row : one.batch.rows)
          facts_->launches[row.kernel] += row.duration.count();
        facts_->batches.push_back(one.batch);
        answers.push_back(store::Ingest::kStored);
      }
    }
    return answers;
  }
  Status put_guard(const store::GuardResult& result) override {
    if (const Code fails = facts_->fails.load(); fails != Code::kOk) return {fails, "down"};
    const std::lock_guard lock(facts_->mutex);
    facts_->guard.push_back(result);
    return Status::ok();
  }
  Status keep_raw(const std::string&, std::int64_t, const std::string&) override {
    return Status::ok();
  }
  Status forget_raw(const std::string&) override { return Status::ok(); }
  Status expire(std::int64_t) override { return Status::ok(); }
  Status compact() override { return Status::ok(); }
  Result<store::StoreCheck> check() override { return store::StoreCheck{.engine = "memory"}; }
  Result<std::uint64_t> release(const std::string&) override { return std::uint64_t{0}; }
  Result<std::unique_ptr<store::Reader>> reader() override {
    return std::unique_ptr<store::Reader>(std::make_unique<MemoryReader>(facts_));
  }
  Result<std::vector<store::Cell>> cells(const store::Filter& filter,
                                         const std::vector<store::Dimension>& by,
                                         store::Step step) override {
    return reader_.cells(filter, by, step);
  }
  Result<store::TopKernels> top(const store::Filter& filter, std::size_t limit) override {
    return reader_.top(filter, limit);
  }
  Result<std::vector<store::CoverageCell>> coverage(const store::Filter& filter,
                                                    store::Step step) override {
    return reader_.coverage(filter, step);
  }
  Result<std::vector<store::NodeState>> nodes() override { return reader_.nodes(); }
  Result<std::vector<std::string>> values(store::Dimension dimension,
                                          const store::Filter& filter) override {
    return reader_.values(dimension, filter);
  }
  Result<std::vector<store::RawInfo>> raws(const store::Filter& filter) override {
    return reader_.raws(filter);
  }
  Result<std::vector<store::GuardResult>> guard_history(const std::string& kernel,
                                                        std::size_t limit) override {
    return reader_.guard_history(kernel, limit);
  }

 private:
  const std::shared_ptr<MemoryFacts> facts_;
  MemoryReader reader_;
};

}  // namespace purlin::fleet
