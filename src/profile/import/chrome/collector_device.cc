// SPDX-License-Identifier: Apache-2.0
// The device's side: kernels, copies, counters.
#include "base/hash.h"
#include "base/text.h"
#include "model/problem/problem.h"
#include "profile/import/chrome/collector.h"
#include "profile/import/chrome/json_scan.h"
#include "profile/ops/api_calls.h"

#include <algorithm>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxSpecs = 4'000'000;
constexpr std::size_t kMaxTracedDevices = 4096;
constexpr std::size_t kMaxCounterValues = 4'000'000;

double to_figure(std::string_view raw) {
  const std::optional<double> value = to_double(raw);
  return value && *value >= 0 ? *value : kNoFigure;
}

Dim3 dim3_of_list(std::string_view list) {  // "8,1,1"
  return to_dim3("[" + std::string(list.substr(0, 64)) + "]");
}

}  // namespace

std::uint32_t TraceCollector::device_of(const ChromeEvent& event) {
  const std::string_view raw = event[event.has(Field::kDevice) ? Field::kDevice : Field::kPid];
  // "GPU 3" is 3, and -1, which some write where they do not know, the first.
  const std::optional<std::uint64_t> number = to_id(raw);
  const std::int64_t id =
      raw.substr(0, 1) == "-" ? 0 : static_cast<std::int64_t>(number.value_or(0) & INT64_MAX);
  const auto known = device_ids_.find(id);
  if (known != device_ids_.end()) return known->second;
  if (out_.devices.size() >= kMaxTracedDevices) return 0;
  const auto next = static_cast<std::uint32_t>(out_.devices.size());
  device_ids_.emplace(id, next);
  out_.devices.push_back(id);
  return next;
}

// Small numbers unchanged; addresses (AMD's streams) by order of appearance.
std::uint32_t TraceCollector::stream_of(std::string_view raw) {
  constexpr std::uint64_t kMaxPlain = 0x7FFFFFFF;
  constexpr std::uint32_t kFirstOther = 0x80000000u;
  const std::optional<std::uint64_t> id = to_id(raw);
  if (id && *id <= kMaxPlain) return static_cast<std::uint32_t>(*id);
  const auto next = static_cast<std::uint32_t>(streams_.size());
  if (next >= kFirstOther) return kFirstOther;
  const std::uint32_t known = streams_.find_or_add(hash64(raw), next);
  return kFirstOther + (known == IdTable::kAbsent ? next : known);
}

void TraceCollector::read_launch(const ChromeEvent& event, TracedKernel& spec) {
  if (event.has(Field::kGrid)) spec.launch.grid = to_dim3(event[Field::kGrid]);
  if (event.has(Field::kBlock)) spec.launch.block = to_dim3(event[Field::kBlock]);
  if (event.has(Field::kCluster)) spec.launch.cluster = to_dim3(event[Field::kCluster]);
  spec.registers = to_u32(event[Field::kRegisters]);
  // Kineto gives the sum of static and dynamic shared memory; it cannot be told apart.
  spec.launch.dynamic_shared_bytes = to_u32(
      event[event.has(Field::kDynamicShared) ? Field::kDynamicShared : Field::kSharedMemory]);
  spec.static_shared_bytes = to_u32(event[Field::kStaticShared]);
  spec.local_bytes = to_u32(event[Field::kLocalMemory]);
  const std::string_view details = event[Field::kKernelDetails];
  if (details.empty()) return;
  spec.launch.grid = dim3_of_list(detail_of(details, "grid"));
  spec.launch.block = dim3_of_list(detail_of(details, "block"));
  spec.registers = to_u32(detail_of(details, "regs"));
  spec.static_shared_bytes = to_u32(detail_of(details, "static_shared"));
  spec.launch.dynamic_shared_bytes = to_u32(detail_of(details, "dynamic_shared"));
}

std::uint32_t TraceCollector::intern(const TracedKernel& spec) {
  static_assert(std::has_unique_object_representations_v<LaunchShape>);
  std::uint64_t hash = hash64(&spec.launch, sizeof spec.launch);
  const std::uint32_t numbers[] = {spec.name,        spec.registers, spec.static_shared_bytes,
                                   spec.local_bytes, spec.op,        spec.shape,
                                   spec.dtype,       spec.device};
  const double figures[] = {spec.occupancy_pct, spec.blocks_per_sm, spec.warps_per_sm};
  hash = hash * 0x9E3779B97F4A7C15ull + hash64(numbers, sizeof numbers);
  hash = hash * 0x9E3779B97F4A7C15ull + hash64(figures, sizeof figures);
  const auto next = static_cast<std::uint32_t>(out_.specs.size());
  if (next >= kMaxSpecs) {
    const std::uint32_t known = specs_.find(hash);
    return known == IdTable::kAbsent ? other_spec() : known;
  }
  const std::uint32_t known = specs_.find_or_add(hash, next);
  if (known != IdTable::kAbsent) return known;
  out_.specs.push_back(spec);
  return next;
}

DeviceRecord* TraceCollector::keep_kernel(const DeviceRecord& record) {
  if (!room()) {
    ++out_.left_out_kernels;
    const auto duration = static_cast<double>(record.activity.duration_ns);
    if (!overflow_sketches_.add(overflow_of(record.activity.row), duration)) {
      overflow_of(other_spec()).add(duration);
    }
    return nullptr;
  }
  out_.kernels.push_back(record);
  return &out_.kernels.back();
}

// For what is beyond a bound: no kernel may be counted as another.
std::uint32_t TraceCollector::other_spec() {
  if (other_spec_ == kNone) {
    other_spec_ = static_cast<std::uint32_t>(out_.specs.size());
    TracedKernel spec;
    spec.name = out_.names.of_text("(other kernels)");
    out_.specs.push_back(spec);
  }
  return other_spec_;
}

Sketch& TraceCollector::overflow_of(std::uint32_t spec) {
  const auto next = static_cast<std::uint32_t>(out_.overflow.size());
  const std::uint32_t known = overflow_ids_.find_or_add(spec, next);
  if (known != IdTable::kAbsent) return out_.overflow[known].second;
  return out_.overflow.emplace_back(spec, Sketch()).second;
}

void TraceCollector::add_kernel(const ChromeEvent& event) {
  Times times;
  if (!work_times_of(event, times)) return;
  note_backend(event[Field::kCategory]);
  TracedKernel spec;
  spec.name = out_.names.of_raw(event[Field::kName]);
  spec.device = device_of(event);
  read_launch(event, spec);
  spec.occupancy_pct = to_figure(event[Field::kOccupancy]);
  spec.blocks_per_sm = to_figure(event[Field::kBlocksPerSm]);
  spec.warps_per_sm = to_figure(event[Field::kWarpsPerSm]);
  if (event.has(Field::kCollective)) {
    const Problem problem =
        communication_problem(to_int(event[Field::kElements]), to_int(event[Field::kOutElements]),
                              to_int(event[Field::kGroupSize]), event[Field::kDtype]);
    spec.shape = out_.names.of_text(to_text(problem.dimensions));
    spec.dtype = out_.names.of_text(problem.dtype);
  }
  DeviceRecord record;
  Activity& activity = record.activity;
  activity.start_ns = times.start_ns;
  activity.duration_ns = times.duration_ns;
  activity.row = intern(spec);
  activity.stream = stream_of(event[event.has(Field::kStream) ? Field::kStream : Field::kTid]);
  activity.device = static_cast<std::uint16_t>(spec.device);
  activity.graph = to_u32(event[Field::kGraphId]);
  activity.kind = ActivityKind::kKernel;
  const std::int64_t correlation = to_int(event[Field::kCorrelation], -1);
  if (correlation > 0) record.correlation = static_cast<std::uint64_t>(correlation);
  const std::int64_t external = to_int(event[Field::kExternalId], -1);
  if (external > 0) record.external = static_cast<std::uint64_t>(external);
  DeviceRecord* const kept = keep_kernel(record);
  unbound_ = record.correlation == kNoId ? kept : nullptr;
}

// Early traces of AMD GPUs tie device work to its call by flow events alone: the one that follows.
void TraceCollector::bind_flow(const ChromeEvent& event) {
  const std::optional<std::int64_t> time = us_to_ns(event[Field::kTime]);
  const std::int64_t id = to_int(event[Field::kId], -1);
  if (time && id > 0 && *time == unbound_->activity.start_ns) {
    unbound_->correlation = static_cast<std::uint64_t>(id);
    unbound_ = nullptr;
  }
}

std::uint32_t TraceCollector::copy_row(std::string_view kind, std::uint32_t device) {
  const auto next = static_cast<std::uint32_t>(out_.copy_rows.size());
  const std::uint32_t known = copy_ids_.find_or_add(hash64(kind) + device, next);
  if (known != IdTable::kAbsent) return known;
  CopyRow& row = out_.copy_rows.emplace_back();
  row.kind = kind;
  row.device = static_cast<int>(device);
  return next;
}

void TraceCollector::add_to_row(const Activity& copy) {
  CopyRow& row = out_.copy_rows[copy.row];
  row.bytes += static_cast<double>(copy.bytes);
  row.duration.add(static_cast<double>(copy.duration_ns));
}

DeviceRecord* TraceCollector::keep_copy(DeviceRecord record, std::string_view kind,
                                        std::uint32_t device) {
  record.activity.row = copy_row(kind, device);
  record.activity.device = static_cast<std::uint16_t>(device);
  record.activity.kind = kind == "memset" ? ActivityKind::kSet : ActivityKind::kCopy;
  if (!room()) {
    ++out_.left_out_copies;
    add_to_row(record.activity);
    return nullptr;
  }
  out_.copies.push_back(record);
  return &out_.copies.back();
}

void TraceCollector::add_copy(const ChromeEvent& event, bool is_set) {
  Times times;
  if (!work_times_of(event, times)) return;
  DeviceRecord record;
  record.activity.start_ns = times.start_ns;
  record.activity.duration_ns = times.duration_ns;
  record.activity.stream =
      stream_of(event[event.has(Field::kStream) ? Field::kStream : Field::kTid]);
  record.activity.graph = to_u32(event[Field::kGraphId]);
  const Field size = event.has(Field::kBytes) ? Field::kBytes : Field::kSize;
  record.activity.bytes = to_u64(event[size]);
  if (!event.has(size)) ++out_.copies_without_bytes;
  const std::int64_t correlation = to_int(event[Field::kCorrelation], -1);
  if (correlation > 0) record.correlation = static_cast<std::uint64_t>(correlation);
  const std::uint32_t name = out_.names.of_raw(event[Field::kName]);
  DeviceRecord* const kept =
      keep_copy(record, is_set ? "memset" : copy_kind(out_.names[name]), device_of(event));
  unbound_ = record.correlation == kNoId ? kept : nullptr;
}

void TraceCollector::add_counters(const ChromeEvent& event) {
  Times times;
  if (!times_of(event, times) || counter_values_ >= kMaxCounterValues) return;
  out_.has_kineto = true;
  CounterRecord record;
  record.start_ns = times.start_ns;
  record.name = out_.names.of_raw(event[Field::kName]);
  // {"dram__bytes.sum": 12, …}: every number is a counter.
  std::string args(event[Field::kArgs]);
  const std::size_t size = args.size();
  args.append(kScanPadding, '\0');
  const char* p = args.data() + std::min<std::size_t>(1, size);
  const char* const end = args.data() + size;
  constexpr std::size_t kMaxCountersPerKernel = 512;
  while (p < end && record.values.size() < kMaxCountersPerKernel) {
    p = skip_space(p);
    if (*p == ',') {
      ++p;
      continue;
    }
    if (*p != '"') break;
    const char* const quote = find_quote(p + 1, end);
    if (quote == nullptr) break;
    const std::string_view key(p + 1, static_cast<std::size_t>(quote - p - 1));
    p = skip_space(quote + 1);
    if (*p == ':') p = skip_space(p + 1);
    const char* const behind = skip_value(p, end);
    if (behind == nullptr || behind == p) break;
    const std::optional<double> value = to_double({p, static_cast<std::size_t>(behind - p)});
    if (value) record.values.emplace_back(out_.names.of_raw(key), *value);
    p = behind;
  }
  counter_values_ += record.values.size() + 1;
  out_.counters.push_back(std::move(record));
}

}  // namespace purlin::profile
