// SPDX-License-Identifier: Apache-2.0
// Timeline analysis and exports of whatever a file may hold: records taken from the input as they
// come, times and indices included.
#include "analyze/timeline/timeline.h"
#include "base/json/json.h"
#include "profile/export/export.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace purlin;

namespace {

class TimelineBytes {
 public:
  TimelineBytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  template <class T>
  T take() {
    T value{};
    const std::size_t n = std::min(sizeof(T), size_);
    std::memcpy(&value, data_, n);
    data_ += n;
    size_ -= n;
    return value;
  }
  // Small numbers mostly, so that records meet; sometimes any.
  std::int64_t time() {
    return take<std::uint8_t>() < 250 ? take<std::uint16_t>() : take<std::int64_t>();
  }
  std::uint32_t index() {
    return take<std::uint8_t>() < 240 ? take<std::uint8_t>() % 8 : take<std::uint32_t>();
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  TimelineBytes input(data, size);
  Profile profile;
  profile.environment.devices.resize(2);
  profile.processes.resize(2);
  profile.kernels.resize(4);
  const char* const kNames[] = {"gemm", "_Z4reluPf", "ncclDevKernel_AllReduce", "\xff\"\n"};
  for (std::size_t i = 0; i < 4; ++i) profile.kernels[i].name = kNames[i];
  profile.copies.resize(2);
  profile.copies[0].kind = "d2h";
  Timeline& timeline = profile.timeline;
  timeline.names = {"", "cudaMemcpy", "step 1", "step 2", "cudaLaunchKernel"};
  while (!input.empty()) {
    const auto what = input.take<std::uint8_t>();
    if (what % 4 == 0) {
      Call call;
      call.start_ns = input.time();
      call.duration_ns = input.time();
      call.name = input.index();
      call.process = input.index();
      call.op = input.index();
      call.kind = static_cast<CallKind>(what / 4 % 6);
      timeline.calls.push_back(call);
    } else if (what % 4 == 1) {
      Range range;
      range.start_ns = input.time();
      range.duration_ns = input.time();
      range.name = input.index();
      range.process = input.index();
      range.kind = static_cast<RangeKind>(what / 4 % 5);
      timeline.ranges.push_back(range);
    } else if (what % 8 == 2) {
      Op op;
      op.start_ns = input.time();
      op.duration_ns = input.time();
      op.parent = input.index();
      op.shape = input.index();
      timeline.ops.push_back(op);
    } else {
      Activity activity;
      activity.start_ns = input.time();
      activity.duration_ns = input.time();
      activity.row = input.index();
      activity.process = input.index();
      activity.stream = input.index();
      activity.call = input.index();
      activity.graph = input.index();
      activity.device = static_cast<std::uint16_t>(input.index());
      activity.kind = static_cast<ActivityKind>(what / 8 % 3);
      timeline.activities.push_back(activity);
    }
  }
  sort_timeline(timeline);
  const analyze::TimelineAnalysis analysis = analyze::analyze_timeline(profile);
  for (const analyze::DeviceTime& time : analysis.devices) {
    std::int64_t sum = time.compute_ns + time.exposed_communication_ns + time.exposed_copy_ns;
    for (const std::int64_t cause : time.idle_ns) sum += cause;
    if (sum != time.span_ns) std::abort();  // every nanosecond once
  }
  if (to_json(analysis).dump().empty()) std::abort();
  const auto ignore = [](std::string_view) -> Status { return {}; };
  const std::uint64_t events = timeline.activities.size() + timeline.calls.size() +
                               timeline.ops.size() + timeline.ranges.size();
  for (const auto write : {profile::export_chrome, profile::export_perfetto, profile::export_csv}) {
    const auto counts = write(profile, ignore);
    if (counts.is_ok() && write != profile::export_csv && counts->events != events) std::abort();
  }
  return 0;
}
