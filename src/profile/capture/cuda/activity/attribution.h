// SPDX-License-Identifier: Apache-2.0
// Attribution: finds the op of each recorded launch, and, for a timeline, the call that made it.
// While the activity tier's window is open it also records the calls that launch (launch_calls.h)
// and logs the program's ranges (range_log.h). ActivityAggregator asks it about each launch.
//
// Owned by Capture. open, close and collect belong to the holder of CUPTI's turn. A Batch may be
// made on any thread, before a Recorder::Batch. It takes no lock that is held while CUPTI is
// called. Without NVTX or --gemm-shapes attribution stays off and has no overhead. Failures are
// notes.
#pragma once

#include "profile/capture/cuda/activity/launch_calls.h"
#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/ranges/correlation.h"
#include "profile/capture/recording/recorder.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::profile::capture::cuda {

enum class OpsMode { kOff, kAuto, kOn };

struct AttributionOptions {
  OpsMode ops = OpsMode::kAuto;  // PURLIN_OPS; auto: once the program names ranges
  bool gemm_shapes = false;      // PURLIN_GEMM_SHAPES=1

  static AttributionOptions from_environment();
};

class Attribution {
 public:
  static constexpr std::size_t kMaxHeld = 65'536;

  Attribution(const Cupti& cupti, Recorder& recorder, const AttributionOptions& options);

  // Around the window of the activity tier: before its kinds are enabled, after they are disabled.
  // open() is also called within the window, because the first range may come late.
  void open();
  void close();
  // After CUPTI's buffers were flushed.
  void collect(bool final);

  // Whether records may belong to calls: then, and only then, a buffer needs a Batch.
  bool active() const { return active_.load(std::memory_order_acquire); }

  // Whether records of calls go to the timeline.
  bool writes_calls() const { return active() && timed(); }

  // Whether the user requested the windows from here on: the timeline then has calls and ranges.
  void keep_times(bool keep);

  class Batch {
   public:
    explicit Batch(Attribution& attribution)
        : attribution_(attribution), lock_(attribution.mutex_) {}
    // Before the first of the others; `recorder` outlives this.
    void begin(Recorder::Batch& recorder);
    void call(const CUpti_ActivityAPI& record);
    // Places a launch, or keeps it until its call is known: then false, and the caller must not use
    // it.
    bool place(LaunchFacts& facts, std::uint32_t correlation);
    void place(CopyFacts& facts, std::uint32_t correlation);

   private:
    Attribution& attribution_;
    const std::lock_guard<std::mutex> lock_;
    Recorder::Batch* recorder_ = nullptr;
  };

 private:
  struct Held {
    LaunchFacts facts;
    std::string name;
    std::uint32_t correlation = 0;
    int age = 0;
  };

  bool wanted();
  void watch_libraries();
  bool timed() const { return keep_times_; }
  void choose_records();
  void write_spans(bool final);
  bool try_place(LaunchFacts& facts, std::uint32_t correlation, Recorder::Batch& recorder);
  std::uint32_t op_of(std::uint32_t context, Recorder::Batch& recorder);
  void release(Recorder::Batch& recorder, bool final);
  Correlation::Ended span_writer(Recorder::Batch& recorder);

  const Cupti& cupti_;
  Recorder& recorder_;
  const AttributionOptions options_;
  RangeLog* const log_;
  CallRecords records_;  // changed by collect(), on the thread of open()
  bool open_ = false, refused_ = false;
  std::atomic<bool> active_ = false, keep_times_ = false;

  std::mutex mutex_;
  Correlation correlation_;
  std::uint64_t launches_ = 0, unplaced_ = 0;  // since the last choose_records()
  std::vector<std::uint32_t> ops_ = {
      0};  // the recorder's number of each context + 1, 0 = not asked
  std::unordered_map<std::string, std::uint32_t> known_ops_;
  std::vector<Held> held_;
  double without_call_ = 0, graph_launches_ = 0;
};

}  // namespace purlin::profile::capture::cuda
