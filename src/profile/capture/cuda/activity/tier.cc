// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/tier.h"

#include <dlfcn.h>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr CUpti_ActivityKind kKernels = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
constexpr CUpti_ActivityKind kCopies[] = {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

// The expensive kind: it makes every call that waits or may wait slower, in addition to its record.
constexpr CUpti_ActivityKind kWaits = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;

}  // namespace

Tier::Opened ActivityTier::open(const Window&) {
  open_ = true;
  attribution_.open();  // before the kinds: every launch that is recorded has its call recorded
  CUptiResult result = CUPTI_SUCCESS;
  if (options_.host_calls && !attribution_.writes_calls()) host_calls_.open();
  if (options_.copies && !copies_on_) {
    copies_on_ = true;
    for (const CUpti_ActivityKind kind : kCopies)
      if (result == CUPTI_SUCCESS) result = cupti_.enable(kind);
  }
  begin_launch_times();
  if (result == CUPTI_SUCCESS) result = cupti_.enable(kKernels);
  if (options_.waits && result == CUPTI_SUCCESS) result = cupti_.enable(kWaits);
  if (result == CUPTI_SUCCESS) return Opened::kYes;
  leave();
  recorder_.note("cupti_refused", "CUDA is not captured: CUPTI answered " + cupti_.text_of(result) +
                                      "; another profiler may hold it, or the driver may be "
                                      "older than " +
                                      cupti_.path);
  return Opened::kNever;
}

// The time at which the host made a launch: it has no overhead that could be measured
// (bench/results/cupti_calls_cost.md). Without it the timeline has no cause of idle time.
void ActivityTier::begin_launch_times() {
  if (launch_times_ != LaunchTimes::kNotYet || cupti_.latency_timestamps == nullptr) return;
  launch_times_ = LaunchTimes::kOn;
  cupti_.latency_timestamps(1);
}

// With launch times, CUPTI 13.0 has stopped PyTorch programs for good: in the launch for which its
// three buffers of 50,000 kernels each are full (bench/results/cupti_launch_times.md). So they end
// long before that, and before another client records.
void ActivityTier::end_launch_times() {
  if (launch_times_ != LaunchTimes::kOn) return;
  launch_times_ = LaunchTimes::kOver;
  cupti_.latency_timestamps(0);
}

void ActivityTier::yield() {
  host_calls_.yield();
  end_launch_times();
}

void ActivityTier::close() {
  if (!open_) return;
  cupti_.disable(kKernels);
  recorded_until_ns_ = monotonic_ns();  // the calls below may wait as long
  if (options_.waits) cupti_.disable(kWaits);
  attribution_.close();
  host_calls_.close();
  open_ = false;
}

void ActivityTier::leave() {
  close();
  end_launch_times();
  if (!std::exchange(copies_on_, false)) return;
  for (const CUpti_ActivityKind kind : kCopies) cupti_.disable(kind);
}

// Finds the number of launches after the last window: a driver call without effect has the next id
// in its record. At the end only, because the kind makes every later call of the program slower.
void ActivityTier::ask_last_id() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (driver == nullptr) return;
  const auto get_version =
      reinterpret_cast<decltype(&cuDriverGetVersion)>(::dlsym(driver, "cuDriverGetVersion"));
  if (get_version != nullptr && cupti_.enable(CUPTI_ACTIVITY_KIND_DRIVER) == CUPTI_SUCCESS) {
    aggregator_.await_last_id();
    int version = 0;
    get_version(&version);
    cupti_.disable(CUPTI_ACTIVITY_KIND_DRIVER);
  }
  ::dlclose(driver);
}

void ActivityTier::collect(bool final) {
  host_calls_.collect();  // before the flush: the timeline's windows are full by launches
  if (final && aggregator_.wants_last_id()) ask_last_id();
  if (aggregator_.recorded_many() && launch_times_ == LaunchTimes::kOn) {
    end_launch_times();
    recorder_.note(
        "launch_times_end",
        "the times at which the host made launches are those of the first 60,000 records "
        "or so: CUPTI 13.0 stops programs in which it keeps more of them");
  }
  const CUptiResult result = cupti_.flush_all(final ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  if (final && result != CUPTI_SUCCESS)
    recorder_.note("flush_refused", "at exit CUPTI did not return its last records, but answered " +
                                        cupti_.text_of(result));
  attribution_.collect(final);
  if (open_ && !final) attribution_.open();  // the program may have begun to name ranges
  if (attribution_.writes_calls()) host_calls_.close();
}

std::int64_t ActivityTier::take_cost_ns() {
  return aggregator_.take_cost_ns() + host_calls_.take_cost_ns();
}

}  // namespace purlin::profile::capture::cuda
