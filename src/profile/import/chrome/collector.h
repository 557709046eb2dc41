// SPDX-License-Identifier: Apache-2.0
// TraceCollector: one event of a Chrome trace after the other into records. Decides by category
// (PyTorch) or, at finish(), by the names of processes and threads (XLA, others) what each is.
// Memory grows with the records kept; beyond the limit, kernels add to sketches only. Not
// thread-safe.
#pragma once

#include "model/profile/sketch_budget.h"
#include "profile/import/chrome/event.h"
#include "profile/import/chrome/records.h"
#include "profile/import/chrome/span_pairs.h"
#include "profile/import/import.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::profile {

class TraceCollector {
 public:
  explicit TraceCollector(const ImportOptions& options)
      : options_(options), overflow_sketches_(options.max_sketch_buckets) {}

  void add(const ChromeEvent& event);
  // Whether the last device work came without a correlation id, so that a flow event that follows
  // may bring it (early AMD traces).
  bool wants_flow() const { return unbound_ != nullptr; }
  Records finish();

 private:
  struct Times {
    std::int64_t start_ns = 0, duration_ns = 0;
  };
  bool times_of(const ChromeEvent& event, Times& times);
  void note_backend(std::string_view category);
  bool work_times_of(const ChromeEvent& event, Times& times);
  bool room();  // for one more record in the timeline
  std::uint32_t track_of(const ChromeEvent& event);
  std::uint32_t host_process(TraceTrack& track);
  std::uint32_t device_of(const ChromeEvent& event);
  std::uint32_t stream_of(std::string_view raw);
  std::uint32_t intern(const TracedKernel& spec);
  std::uint32_t copy_row(std::string_view kind, std::uint32_t device);
  void read_launch(const ChromeEvent& event, TracedKernel& spec);
  void describe(const ChromeEvent& event, std::uint32_t name, OpRecord& op);

  void add_kernel(const ChromeEvent& event);
  void add_copy(const ChromeEvent& event, bool is_set);
  void add_counters(const ChromeEvent& event);
  void add_call(const ChromeEvent& event);
  void add_wait(const ChromeEvent& event);
  void add_op(const ChromeEvent& event);
  void add_range(const ChromeEvent& event, std::uint32_t name, const RangeKind* kind);
  void add_span(const ChromeEvent& event);
  void add_metadata(const ChromeEvent& event);
  void add_loose(const ChromeEvent& event);
  void bind_flow(const ChromeEvent& event);
  DeviceRecord* keep_kernel(const DeviceRecord& record);
  Sketch& overflow_of(std::uint32_t spec);
  std::uint32_t other_spec();
  DeviceRecord* keep_copy(DeviceRecord record, std::string_view kind, std::uint32_t device);
  void add_to_row(const Activity& copy);
  void keep_call(const CallRecord& record);
  void resolve();
  void drop_far_times();

  struct Described {  // what an op's recorded inputs come to
    std::uint32_t shape = 0, dtype = 0;
    bool is_problem = false;
  };

  ImportOptions options_;
  SketchBudget overflow_sketches_;
  std::uint32_t other_spec_ = kNone;
  Records out_;
  IdTable tracks_, specs_, described_ids_, overflow_ids_, streams_, copy_ids_;
  std::vector<Described> described_;
  std::unordered_map<std::int64_t, std::uint32_t> device_ids_;
  std::unordered_map<std::string, std::string> process_names_;  // by the pid's text
  std::unordered_map<std::string, std::uint32_t> host_processes_;
  std::vector<std::uint8_t> call_kinds_;  // by name: CallKind + 1, 0 not looked at
  std::vector<std::uint8_t> range_kinds_;
  SpanPairs pairs_;
  std::size_t kept_ = 0, counter_values_ = 0;
  DeviceRecord* unbound_ = nullptr;  // the last device work, where it has no correlation id
};

}  // namespace purlin::profile
