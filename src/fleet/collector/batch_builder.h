// SPDX-License-Identifier: Apache-2.0
// BatchBuilder: what captures added in a period, folded to rows of one hour, kernel, shape, dtype,
// device and run.
//
// Launch shapes, resources and counters of a kernel are left out: the raw profile has them. One
// owner, one thread. Rows are merged, so memory grows with the kernels of a period, not with its
// launches. Rows beyond max_rows are added to "(other kernels)" of their device and run: the sum
// stays exact. Cannot fail.
#pragma once

#include "fleet/collector/place_labels.h"
#include "fleet/collector/raw_spool.h"
#include "profile/format/tail.h"
#include "store/batch.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace purlin::fleet {

struct BatchFacts {
  std::string node;
  std::int64_t begin_ns = 0, end_ns = 0;
  double collector_cpu_ns = 0;
  std::uint64_t collector_rss_bytes = 0;
  store::SpoolFill spool{};
};

class BatchBuilder {
 public:
  explicit BatchBuilder(PlaceLabels& places, std::size_t max_rows = 100'000)
      : places_(places), max_rows_(max_rows) {}
  // `now_ns`: the node's clock, against which times are checked.
  void add(const profile::TailPart& part, std::int64_t now_ns);
  bool empty() const { return rows_.empty() && coverage_.empty(); }
  // The run of a capture, with the labels of its place.
  store::BatchRun describe(const ProcessInfo* process, const std::string& build, int ordinal);
  // All that was added, in batches of bounded size; the builder keeps it until clear(). The first
  // has the pointers of `raws`.
  std::vector<store::Batch> batches(const BatchFacts& facts,
                                    const std::vector<RawCapture>& raws = {}) const;
  void clear();

 private:
  using RowKey = std::tuple<std::int64_t, std::string, std::string, std::string, std::string,
                            std::uint32_t, std::uint32_t>;
  std::uint32_t device_of(const DeviceInfo& device);
  std::uint32_t index_of(store::BatchRun run);
  const std::string& name_of(const std::string& raw);
  void add_row(const KernelRow& row, double measured, std::int64_t hour_ns, std::uint32_t device,
               std::uint32_t run);
  void add_coverage(const profile::TailPart& part, std::int64_t hour_ns, bool bad_time,
                    const std::map<std::uint32_t, double>& busy);

  PlaceLabels& places_;
  const std::size_t max_rows_;
  std::vector<store::BatchDevice> devices_;
  std::vector<store::BatchRun> runs_;
  std::map<RowKey, store::BatchRow> rows_;
  std::map<std::pair<std::int64_t, std::uint32_t>, store::BatchCoverage> coverage_;
  std::unordered_map<std::string, std::string> names_;  // readable, by the recorded one
};

}  // namespace purlin::fleet
