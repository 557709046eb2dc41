// SPDX-License-Identifier: Apache-2.0
// Recorder: aggregates launches into one sketch per (kernel, launch shape, op, device, origin) as
// they complete, each with the weight that corrects for sampling. It returns the bytes of each
// period. It runs inside the user's program, so its memory is bounded: at most kMaxKernels rows,
// then one row "(other kernels)" per device, and at most kMaxTimelineBytes of timeline between two
// seals. Records beyond that are counted.
//
// Owned by a CaptureSession. [MT] every method; only std::bad_alloc is thrown, which the libraries
// catch at their C boundary.
#pragma once

#include "profile/capture/recording/counter_sums.h"
#include "profile/capture/recording/host_events.h"
#include "profile/capture/recording/stall_log.h"
#include "profile/capture/recording/timeline_windows.h"
#include "profile/format/events.h"
#include "profile/format/wire.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace purlin::profile::capture {

// The reach of the recording: COVERAGE's `sampling`.
struct SamplingFacts {
  double budget = 0;  // 0: nothing governs.
  double governed_ns = 0, recorded_ns = 0, windows = 0;
  double total_ns = 0, total_variance = 0;        // Of all kernels' time.
  bool waits = false;                             // The host's are recorded, too.
  double counted_windows = 0, timed_windows = 0;  // Weighed by their launches, by time.
  double presence = 0;        // Overhead of CUPTI's presence, as a share of the program's time.
  double hidden_ns = 0;       // Of the estimated overhead, while the program waited for a device.
  double copies = 0;          // Overhead of memcpy records between windows, as a share likewise.
  bool partly = false;        // The budget did not allow every launch.
  bool launch_bound = false;  // It did not allow windows either.
  double unsure_ns = 0;       // Of the total: what weights by time may be off in addition.
};

struct LaunchFacts {
  std::string_view name;
  // The block is all zero if the driver chose it unseen; the grid is then in work-items.
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0, static_shared_bytes = 0;
  std::uint32_t registers = 0, local_bytes = 0;
  std::uint32_t device = 0, stream = 0;
  std::int64_t start_ns = 0, duration_ns = 0;  // Wall clock.
  std::uint32_t op = 0;                        // From Recorder::add_op.
  std::uint32_t call = kNone;                  // From Recorder::add_call, for a timeline.
  std::int64_t queued_ns = 0;  // The host made the launch then; 0: not known. Wall clock.
  std::uint32_t graph = 0;     // The graph of a node; 0 = none.
  double weight = 1;           // Launches that this one represents.
  bool timed = true;           // Its times are right, and no launch around it is left out.
  bool requested = false;      // The user requested the window that it belongs to.
  bool ended = true;           // False: its duration is not known.
  bool again = false;          // It was added before, and represents `weight` more launches.
  LaunchOrigin origin = LaunchOrigin::kStream;
};

struct CopyFacts {
  std::string_view kind;  // "h2d", …, "memset", "fill"
  std::uint32_t device = 0, stream = 0;
  std::uint64_t bytes = 0;
  std::int64_t start_ns = 0, duration_ns = 0;  // wall clock
  std::uint32_t call = kNone;
  double weight = 1;
  bool timed = true, requested = false;
};

// Of the host, for a timeline: calls that launch or wait, ranges that the program marked.
struct CallFacts {
  std::string_view name;
  CallKind kind = CallKind::kOther;
  std::uint32_t thread = 0;  // as the system numbers it
  std::int64_t start_ns = 0, duration_ns = 0;
};

struct RangeFacts {
  std::string_view name;
  std::uint32_t thread = 0;  // kNone: it may have ended on another than it began on
  std::int64_t start_ns = 0, duration_ns = 0;
};

struct WaitFacts {
  std::string_view kind;  // "stream", "event", "context": what the host waited for
  std::int64_t start_ns = 0, duration_ns = 0;
  double weight = 1;
};

class Recorder {
 public:
  static constexpr std::size_t kMaxKernels = 20'000;
  static constexpr std::size_t kMaxKernelsByOp = 15'000;  // beyond, rows do not differ by op
  static constexpr std::size_t kMaxTimelineBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMaxNotes = 100;
  static constexpr std::size_t kMaxUnended = 4096;
  static constexpr std::size_t kMaxPaces = 64;
  static constexpr std::size_t kRecent = 4096;  // a power of two

  // Takes the lock once for many records.
  class Batch {
   public:
    explicit Batch(Recorder& recorder) : recorder_(recorder), lock_(recorder.mutex_) {}
    void launch(const LaunchFacts& facts) { recorder_.add(facts); }
    void copy(const CopyFacts& facts) { recorder_.add_copy(facts); }
    // The op of launches: texts as captured (docs/formats/profile.md), "" = not known. Each op is
    // added once; numbers from 1.
    std::uint32_t add_op(std::string_view op, std::string_view shape, std::string_view dtype) {
      return recorder_.add_op(op, shape, dtype);
    }
    // kNone where there is no timeline, or no room in it.
    std::uint32_t add_call(const CallFacts& facts) { return recorder_.add_call(facts); }
    // A call that launched no known work.
    void host_call(const CallFacts& facts) { recorder_.add_host_call(facts); }
    void range(const RangeFacts& facts) { recorder_.add_range(facts); }
    void wait(const WaitFacts& facts) { recorder_.add_wait(facts); }

   private:
    Recorder& recorder_;
    std::lock_guard<std::mutex> lock_;
  };

  // Takes the lock once for what was sampled.
  class StallBatch {
   public:
    explicit StallBatch(Recorder& recorder) : recorder_(recorder), lock_(recorder.mutex_) {
      recorder.dirty_ = true;
    }
    StallLog* operator->() { return &recorder_.stalls_; }

   private:
    Recorder& recorder_;
    std::lock_guard<std::mutex> lock_;
  };

  // `every_launch`: the timeline is of the whole run. Otherwise it is of requested windows, or,
  // where none was requested, of the last TimelineWindows.
  explicit Recorder(bool every_launch) : every_launch_(every_launch) {}

  // The JSON of META; it is written with the next period. `devices` is a JSON array.
  void set_meta(std::string process, std::string devices);
  void set_devices(std::string devices);
  void set_build(std::string label);     // PURLIN_BUILD_LABEL, before the first seal
  void count_launches(double launches);  // made by the program, whether recorded or not
  void lose_launches(double launches, std::string_view cause, std::string_view text);
  // Adds to a note of the same cause.
  void note(std::string_view cause, std::string_view text, double count = 0, double seconds = 0);
  void withdraw_note(std::string_view cause);  // it is no longer true
  // The hardware counters of one launch: they are added to the row of such launches. REQUIRES: as
  // many names as values.
  void add_counters(const LaunchFacts& facts, const std::vector<std::string_view>& names,
                    const std::vector<double>& values);
  void add_overhead_ns(double ns);
  void set_sampling(const SamplingFacts& facts);
  struct Spent {
    SamplingFacts sampling;
    double overhead_ns = 0;
  };
  Spent spent();
  // Kernels of different names that were recorded so far.
  std::size_t kernel_names();
  // Launches so far of kernels that multiply, convolve or attend, by their names. A program that
  // loads a model or its data makes none.
  double computing_launches();
  void add_pace(const Pace& pace);
  void set_one_in(int runs);  // one run in so many holds the budget
  void add_bytes_written(std::size_t bytes);

  // The chunks of the period that ends now, closed by a seal for a file of `offset` bytes. Empty
  // when nothing happened, unless this is the final one or the first.
  std::string drain(std::uint64_t offset, std::int64_t wall_ns, bool final);
  // The last period of a file that another one continues: with its definitions, the same ids go on.
  // `process`: of the next file's META. Coverage counts from there.
  std::string end_file(std::uint64_t offset, std::int64_t wall_ns, std::string process);

 private:
  struct Row {
    Sketch added;  // since the last drain
    std::int64_t first_ns = 0, last_ns = 0;
    std::int64_t duration_ns = -1;  // of its last launch
    bool computes = false;
  };
  struct Unended {  // a launch, until it is known what others of its kernel take
    LaunchFacts facts;
    std::string name;
  };
  struct CopyTotals {
    std::uint32_t kind = 0, device = 0;
    double bytes = 0;
    Sketch added;
  };
  struct Note {
    std::string text;
    double count = 0, seconds = 0;
  };
  struct Counts {  // since the start of the process
    double seen = 0, sampled_out = 0, counted = 0, lost = 0, overhead_ns = 0;
    std::uint64_t bytes_written = 0;
    SamplingFacts sampling;
    std::map<std::string, Note, std::less<>> notes;
  };
  struct RowKey {
    wire::KernelDefinition definition;
    std::uint32_t dtype = 0;  // a text's id + 1; 0 = not known
  };
  struct RowKeyHash {
    std::size_t operator()(const RowKey& key) const;
  };
  struct RowKeyEqual {
    bool operator()(const RowKey& a, const RowKey& b) const;
  };
  // The fields by which rows differ, and the row of a recent launch with these fields. Most
  // launches are like one of a few hundred, and a row's key takes three lookups.
  struct LaunchShape {
    std::array<std::uint32_t, 3> grid, block, cluster;
    std::uint32_t dynamic_shared_bytes, static_shared_bytes, registers, local_bytes;
    std::uint32_t device, op, origin;
  };
  struct Recent {
    std::string_view name;  // a key of strings_; empty: none
    LaunchShape shape = {};
    std::uint32_t row = 0;
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const;
  };

  void add(const LaunchFacts& facts);
  void add_ended(const LaunchFacts& facts);
  void settle_unended(bool final);
  void lose_unended();
  std::int64_t duration_of_another(const LaunchFacts& facts) const;
  void add_copy(const CopyFacts& facts);
  std::uint32_t add_op(std::string_view op, std::string_view shape, std::string_view dtype);
  std::uint32_t add_call(const CallFacts& facts);
  void add_host_call(const CallFacts& facts);
  void add_range(const RangeFacts& facts);
  void add_wait(const WaitFacts& facts);
  bool has_room();
  template <class Facts>
  bool in_timeline(const Facts& facts);
  std::uint32_t call_of(const LaunchFacts& facts);
  void update_meta();
  void add_note(std::string_view cause, std::string_view text, double count, double seconds);
  RowKey key_of(const LaunchFacts& facts, std::uint32_t name) const;
  static RowKey shape_of(const wire::KernelDefinition& definition);
  std::uint32_t row_of(const LaunchFacts& facts);
  std::uint32_t find_row(const LaunchFacts& facts, Recent& recent);
  std::uint32_t define(const RowKey& key);
  std::uint32_t string_id(std::string_view text);
  std::string period(std::uint64_t offset, std::int64_t wall_ns, bool final);
  void begin_file(std::string process);
  void append_rows(std::string& out);
  void append_copies(std::string& out);
  void append_waits(std::string& out);
  std::string coverage() const;
  std::string process_document() const;

  std::mutex mutex_;
  const bool every_launch_;
  TimelineWindows windows_;
  // As META says.
  std::int64_t timeline_from_ns_ = 0;
  bool timeline_requested_ = false;
  bool dirty_ = true;
  std::uint64_t sequence_ = 0;
  std::string process_, devices_, build_;
  std::vector<Pace> paces_;
  bool meta_changed_ = false;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> strings_;
  std::unordered_map<RowKey, std::uint32_t, RowKeyHash, RowKeyEqual> ids_;
  std::unordered_map<RowKey, std::uint32_t, RowKeyHash, RowKeyEqual> shapes_;  // the first of each
  std::unordered_set<std::uint32_t> names_;                                    // of kernels
  std::vector<Recent> recent_{kRecent};
  std::vector<Row> rows_;
  std::vector<std::uint32_t> touched_;  // rows that changed since the last drain
  std::vector<Unended> unended_;
  CounterSums counters_;
  wire::Encoder new_strings_, new_kernels_, new_dtypes_, new_origins_;
  std::size_t new_string_count_ = 0, new_kernel_count_ = 0, new_dtype_count_ = 0,
              new_origin_count_ = 0;
  // Their places are the rows that the timeline's copies name.
  std::vector<CopyTotals> copies_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> copy_rows_;  // (kind, device)
  std::map<std::uint32_t, Sketch> waits_;  // by kind, since the last drain
  StallLog stalls_;
  wire::LaunchEncoder launches_;
  wire::ActivityEncoder timed_;  // copies, and launches whose call is known
  HostEvents host_;
  std::map<std::string, Note, std::less<>> notes_;
  double seen_ = 0, sampled_out_ = 0, counted_ = 0, lost_ = 0, overhead_ns_ = 0;
  double computing_ = 0;
  SamplingFacts sampling_;
  int one_in_ = 0;
  std::uint64_t bytes_written_ = 0;
  Counts before_;  // of the files that this one continues
  bool copies_again_ = false;
};

}  // namespace purlin::profile::capture
