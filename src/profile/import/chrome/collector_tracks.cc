// SPDX-License-Identifier: Apache-2.0
// Events without a category, as XLA and most others write them: what they are, their track says.
#include "base/text.h"
#include "model/problem/problem.h"
#include "model/profile/copy_kind.h"
#include "profile/import/chrome/collector.h"
#include "profile/ops/api_calls.h"

#include <algorithm>
#include <cctype>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxTrackDevices = 4096;

std::string lower_name(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// What a track holds, by the names of its process and thread.
enum class TrackKind { kUnknown, kWork, kHost, kSkipped };

struct TrackSort {
  TrackKind kind = TrackKind::kUnknown;
  std::uint32_t device = 0;
  bool is_autograd = false;
};

std::uint32_t device_number(std::string_view text) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(to_id(text).value_or(0), kMaxTrackDevices - 1));
}

TrackSort sort_of(const std::string& process, const std::string& thread, bool& is_xla) {
  const std::string name = lower_name(process), lane = lower_name(thread);
  TrackSort sort;
  sort.device = device_number(name.substr(0, name.find(" (")));
  if (name.find("/host:") != std::string::npos) {
    is_xla = true;
    sort.kind = TrackKind::kHost;
  } else if (name.find("/device:") != std::string::npos) {
    is_xla = true;
    const bool gpu_stream = starts_with(lane, "stream") || lane.empty();
    const bool tpu_ops = name.find("tpu") != std::string::npos && lane == "xla ops";
    sort.kind = name.find("custom") == std::string::npos && (gpu_stream || tpu_ops)
                    ? TrackKind::kWork
                    : TrackKind::kSkipped;  // "XLA Ops" and others repeat what the streams say
  } else if (name == "cpu functions") {     // PyTorch's autograd profiler, before Kineto
    sort.kind = TrackKind::kHost;
  } else if (ends_with(name, " functions")) {  // "cuda functions": a thread is a device
    sort.kind = TrackKind::kWork;
    sort.is_autograd = true;
    sort.device = device_number(lane);
  } else if (name.find("gpu") != std::string::npos && name.find("cpu") == std::string::npos) {
    sort.kind = TrackKind::kWork;
  }
  return sort;
}

}  // namespace

void TraceCollector::add_loose(const ChromeEvent& event) {
  const std::string_view name = event[Field::kName];
  if (!name.empty() && name[0] == '$') {  // XLA's Python frames
    ++out_.python_frames;
    return;
  }
  Times times;
  if (!times_of(event, times)) return;
  if (!room()) {
    ++out_.left_out_other;
    return;
  }
  LooseRecord& record = out_.loose.emplace_back();
  record.start_ns = times.start_ns;
  record.duration_ns = times.duration_ns;
  record.name = out_.names.of_raw(name);
  record.track = track_of(event);
  record.is_step = event.has(Field::kStepNumber);
  const std::int64_t correlation = to_int(event[Field::kCorrelation], -1);
  if (correlation > 0) record.correlation = static_cast<std::uint64_t>(correlation);
  if (event.has(Field::kHloOp)) {
    std::string op = to_text_value(event[Field::kHloOp], Names::kMaxNameBytes);
    if (event.has(Field::kHloModule))
      op = to_text_value(event[Field::kHloModule], Names::kMaxNameBytes) + "/" + op;
    record.op = out_.names.of_text(std::move(op));
  }
  if (event.has(Field::kLongName)) {
    const Problem problem =
        problem_of_hlo(to_text_value(event[Field::kLongName], Names::kMaxNameBytes));
    record.shape = out_.names.of_text(to_text(problem.dimensions));
    record.dtype = out_.names.of_text(problem.dtype);
  }
  for (const Field details : {Field::kMemcpyDetails, Field::kMemsetDetails}) {
    if (!event.has(details)) continue;
    const bool is_set = details == Field::kMemsetDetails;
    const std::string text = to_text_value(event[details], 1024);
    record.bytes = to_u64(detail_of(text, is_set ? "num_bytes" : "size"));
    if (record.bytes == 0) record.bytes = to_u64(detail_of(text, "bytes"));
    const std::string source(detail_of(text, "kind_src")), target(detail_of(text, "kind_dst"));
    const bool from_host = source != "device", to_host = target != "device";
    const std::string direction = {from_host ? 'h' : 'd', '2', to_host ? 'h' : 'd'};
    record.copy_name = out_.names.of_text(
        is_set ? "memset" : copy_kind_of(direction, from_host ? source : target));
  }
  TracedKernel spec;
  spec.name = record.name;
  spec.op = record.op;
  spec.shape = record.shape;
  spec.dtype = record.dtype;
  read_launch(event, spec);
  record.spec = intern(spec);
}

// Now that all tracks have their names.
void TraceCollector::resolve() {
  std::vector<TrackSort> sorts(out_.tracks.size());
  for (std::size_t i = 0; i < sorts.size(); ++i) {
    const TraceTrack& track = out_.tracks[i];
    const auto process = process_names_.find(track.pid);
    if (process != process_names_.end())
      sorts[i] = sort_of(process->second, track.thread_name, out_.has_xla);
    else  // some write the process's name in place of its number
      sorts[i] = sort_of(track.pid, track.tid, out_.has_xla);
    out_.has_kineto = out_.has_kineto || sorts[i].is_autograd;
  }
  std::vector<LooseRecord> loose;
  loose.swap(out_.loose);
  kept_ -= std::min(kept_, loose.size());
  std::unordered_map<std::int64_t, std::uint32_t>& ids = device_ids_;
  for (const LooseRecord& from : loose) {
    TraceTrack& track = out_.tracks[from.track];
    const TrackSort& sort = sorts[from.track];
    if (sort.kind == TrackKind::kHost) {
      const std::string& name = out_.names[from.name];
      const bool is_call = starts_with(name, "cu") || starts_with(name, "hip") ||
                           classify_call(name) == CallKind::kLaunch;
      if (from.is_step) {
        Range range{from.start_ns,       from.duration_ns, from.name,
                    host_process(track), track.thread,     RangeKind::kStep};
        out_.ranges.push_back(range);
      } else if (is_call) {
        CallRecord record;
        record.call = {from.start_ns,       from.duration_ns, from.name,
                       host_process(track), track.thread,     kNone,
                       classify_call(name)};
        record.correlation = from.correlation;
        keep_call(record);
      } else {
        OpRecord record;
        record.op = {from.start_ns,
                     from.duration_ns,
                     from.name,
                     host_process(track),
                     track.thread,
                     kNone,
                     0,
                     0};
        if (room()) out_.ops.push_back(record);
      }
      continue;
    }
    if (sort.kind != TrackKind::kWork) {
      if (sort.kind == TrackKind::kUnknown) ++out_.not_understood;
      continue;
    }
    const auto [device, added] =
        ids.emplace(sort.device, static_cast<std::uint32_t>(out_.devices.size()));
    if (added) out_.devices.push_back(sort.device);
    DeviceRecord record;
    record.activity.start_ns = from.start_ns;
    record.activity.duration_ns = from.duration_ns;
    record.activity.bytes = from.bytes;
    record.activity.stream = stream_of(track.tid);
    record.activity.device = static_cast<std::uint16_t>(device->second);
    record.correlation = from.correlation;
    const std::string name = lower_name(out_.names[from.name]);
    const bool named_copy =
        name.find("memcpy") != std::string::npos || name.find("memset") != std::string::npos;
    if (from.copy_name != 0 || named_copy) {
      if (from.bytes == 0) ++out_.copies_without_bytes;
      const std::string kind = from.copy_name != 0 ? out_.names[from.copy_name] : copy_kind(name);
      keep_copy(record, kind, device->second);
      continue;
    }
    TracedKernel spec = out_.specs[from.spec];
    spec.device = device->second;
    record.activity.row = intern(spec);
    keep_kernel(record);
  }
}

}  // namespace purlin::profile
