// SPDX-License-Identifier: Apache-2.0
// The host's side: calls, ops, ranges, and what is common to all events.
#include "profile/import/chrome/collector.h"

#include "base/hash.h"
#include "base/text.h"
#include "model/problem/problem.h"
#include "profile/import/impossible_times.h"
#include "profile/ops/api_calls.h"

#include <algorithm>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxTracks = 100'000;
constexpr std::size_t kMaxDescribed = 4'000'000;

bool has_part(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What a range is by its name; nothing for an op. PyTorch before 1.12 records steps, the data
// loader and the optimizer as ops.
const RangeKind* range_kind(std::string_view name, bool annotation) {
  static constexpr RangeKind kStep = RangeKind::kStep, kLoader = RangeKind::kDataLoader,
                             kCommunication = RangeKind::kCommunication, kUser = RangeKind::kUser;
  if (starts_with(name, "ProfilerStep")) return &kStep;
  if (starts_with(name, "enumerate(DataLoader") || has_part(name, "DataLoaderIter"))
    return &kLoader;
  if (starts_with(name, "Optimizer.") || starts_with(name, "DistributedDataParallel."))
    return &kUser;
  if (!annotation) return nullptr;
  for (const std::string_view backend : {"nccl:", "rccl:", "gloo:", "ucc:", "mpi:", "xccl:"})
    if (starts_with(name, backend)) return &kCommunication;
  return &kUser;
}

std::uint64_t id_of(std::string_view raw) {
  const std::int64_t value = to_int(raw, 0);
  return value > 0 ? static_cast<std::uint64_t>(value) : kNoId;  // 0: not linked
}

}  // namespace

bool TraceCollector::times_of(const ChromeEvent& event, Times& times) {
  const std::optional<std::int64_t> start = us_to_ns(event[Field::kTime]);
  const std::optional<std::int64_t> duration =
      event.has(Field::kDuration) ? us_to_ns(event[Field::kDuration]) : std::int64_t{0};
  if (!start || !duration) {
    ++out_.bad_times;
    return false;
  }
  if (*duration < 0) {
    ++out_.negative_durations;
    return false;
  }
  times = {*start, *duration};
  out_.first_ns = std::min(out_.first_ns, *start);
  out_.last_ns = std::max(out_.last_ns, *start + *duration);
  return true;
}

void TraceCollector::note_backend(std::string_view category) {
  for (const std::string_view backend : {"xpu", "mtia", "hpu", "privateuse1"})
    if (starts_with(category, backend)) out_.other_backend = backend;
}

// Of device work. Kineto writes zeros where the driver gave no times; without a duration none is
// known.
bool TraceCollector::work_times_of(const ChromeEvent& event, Times& times) {
  if ((event.has(Field::kTime) && !event.has(Field::kDuration)) ||
      (us_to_ns(event[Field::kTime]) == 0 && us_to_ns(event[Field::kDuration]).value_or(0) == 0)) {
    ++out_.untimed_work;
    return false;
  }
  return times_of(event, times);
}

bool TraceCollector::room() {
  if (kept_ >= options_.max_timeline_events) return false;
  ++kept_;
  return true;
}

std::uint32_t TraceCollector::track_of(const ChromeEvent& event) {
  const std::string_view pid = event[Field::kPid], tid = event[Field::kTid];
  const std::uint64_t hash = hash64(pid) * 0x9E3779B97F4A7C15ull ^ hash64(tid);
  const auto next = static_cast<std::uint32_t>(out_.tracks.size());
  if (next >= kMaxTracks) {
    const std::uint32_t known = tracks_.find(hash);
    return known == IdTable::kAbsent ? 0 : known;
  }
  const std::uint32_t known = tracks_.find_or_add(hash, next);
  if (known != IdTable::kAbsent) return known;
  constexpr std::size_t kMaxIdText = 256;
  TraceTrack& track = out_.tracks.emplace_back();
  track.pid = to_text_value(pid, kMaxIdText);
  track.tid = to_text_value(tid, kMaxIdText);
  const std::optional<std::uint64_t> number = to_id(tid);
  track.thread = number && *number < kNone ? static_cast<std::uint32_t>(*number) : ~next;
  return next;
}

std::uint32_t TraceCollector::host_process(TraceTrack& track) {
  if (track.process != kNone) return track.process;
  const auto next = static_cast<std::uint32_t>(out_.processes.size());
  const auto [it, added] = host_processes_.emplace(track.pid, next);
  if (added) {
    ProcessInfo& process = out_.processes.emplace_back();
    process.pid = static_cast<std::int64_t>(to_id(track.pid).value_or(0) & INT64_MAX);
  }
  return track.process = it->second;
}

void TraceCollector::add(const ChromeEvent& event) {
  const char phase = event.phase();
  if (phase == 's' || phase == 'f' || phase == 't') {
    if (unbound_ != nullptr) bind_flow(event);
    return;
  }
  if (event.skipped()) {
    if (category_of(event[Field::kCategory]) == Category::kPython) ++out_.python_frames;
    return;
  }
  unbound_ = nullptr;
  if (phase == 'M') {
    add_metadata(event);
    return;
  }
  if (phase == 'B') {
    if (!pairs_.begin(event)) ++out_.not_understood;
    return;
  }
  if (phase == 'E') {
    const ChromeEvent* const whole = pairs_.end(event);
    if (whole == nullptr)
      ++out_.not_understood;
    else
      add(*whole);
    return;
  }
  // Without a phase but with a duration, as some scripts write them, it is a whole event.
  if (phase != 'X' && (phase != '\0' || !event.has(Field::kDuration))) {
    if (phase == '\0' && !event.has(Field::kName)) return;  // XLA's writer ends the list with {}
    ++out_.not_understood;
    return;
  }
  switch (category_of(event[Field::kCategory])) {
    case Category::kKernel:
      add_kernel(event);
      break;
    case Category::kCopy:
    case Category::kSet:
      add_copy(event, category_of(event[Field::kCategory]) == Category::kSet);
      break;
    case Category::kCounters:
      add_counters(event);
      break;
    case Category::kCall:
      add_call(event);
      break;
    case Category::kOp:
      add_op(event);
      break;
    case Category::kAnnotation: {
      out_.has_kineto = true;
      const std::uint32_t name = out_.names.of_raw(event[Field::kName]);
      add_range(event, name, range_kind(out_.names[name], true));
      break;
    }
    case Category::kOverhead: {
      static constexpr RangeKind kProfiler = RangeKind::kProfiler;
      add_range(event, out_.names.of_raw(event[Field::kName]), &kProfiler);
      break;
    }
    case Category::kSpan:
      add_span(event);
      break;
    case Category::kWait:
      add_wait(event);
      break;
    case Category::kNone:
      add_loose(event);
      break;
    case Category::kSkip:
    case Category::kPython:
      break;
  }
}

// The window that the tool says it recorded.
void TraceCollector::add_span(const ChromeEvent& event) {
  out_.has_kineto = true;
  const std::optional<std::int64_t> start = us_to_ns(event[Field::kTime]);
  const std::optional<std::int64_t> duration = us_to_ns(event[Field::kDuration]);
  if (!start || !duration || *duration < 0) return;
  out_.window_begin_ns = std::min(out_.window_begin_ns, *start);
  out_.window_end_ns = std::max(out_.window_end_ns, *start + *duration);
}

void TraceCollector::add_metadata(const ChromeEvent& event) {
  constexpr std::size_t kMaxTraceName = 1024;
  const std::string_view what = event[Field::kName];
  if (what == "process_name") {
    if (process_names_.size() < kMaxTracks)
      process_names_[to_text_value(event[Field::kPid], kMaxTraceName)] =
          to_text_value(event[Field::kArgName], kMaxTraceName);
  } else if (what == "thread_name") {
    out_.tracks[track_of(event)].thread_name = to_text_value(event[Field::kArgName], kMaxTraceName);
  }
}

void TraceCollector::keep_call(const CallRecord& record) {
  if (!room()) {
    ++out_.left_out_other;
    return;
  }
  out_.calls.push_back(record);
}

// Kineto's "cuda_sync": the wait of a stream for an event of another, or of the host for a stream.
void TraceCollector::add_wait(const ChromeEvent& event) {
  WaitRecord record;
  record.correlation = id_of(event[Field::kCorrelation]);
  const auto stream = [&](Field field) {
    const std::string_view raw = event[field];
    return raw.empty() || raw[0] == '-' ? kNone : stream_of(raw);
  };
  if (event[Field::kName] == "Stream Wait Event") {
    record.holds = stream(Field::kStream);
    record.awaits = stream(Field::kWaitOnStream);
  } else {
    record.awaits = stream(event.has(Field::kWaitOnStream) ? Field::kWaitOnStream : Field::kStream);
  }
  if (record.correlation != kNoId && (record.awaits != kNone || record.holds != kNone) && room())
    out_.waits.push_back(record);
}

void TraceCollector::add_call(const ChromeEvent& event) {
  Times times;
  if (!times_of(event, times)) return;
  out_.has_kineto = true;
  note_backend(event[Field::kCategory]);
  CallRecord record;
  record.call.start_ns = times.start_ns;
  record.call.duration_ns = times.duration_ns;
  record.call.name = out_.names.of_raw(event[Field::kName]);
  if (call_kinds_.size() <= record.call.name) call_kinds_.resize(out_.names.size() * 2, 0);
  std::uint8_t& kind = call_kinds_[record.call.name];
  if (kind == 0) {
    const std::string& name = out_.names[record.call.name];
    kind = static_cast<std::uint8_t>(static_cast<int>(classify_call(name)) + 1);
    out_.host_is_amd = out_.host_is_amd || starts_with(name, "hip");
  }
  record.call.kind = static_cast<CallKind>(kind - 1);
  TraceTrack& track = out_.tracks[track_of(event)];
  record.call.process = host_process(track);
  record.call.thread = track.thread;
  record.correlation = id_of(event[Field::kCorrelation]);
  record.external = id_of(event[Field::kExternalId]);
  const std::string& name = out_.names[record.call.name];
  const bool amd = starts_with(name, "hip");
  // AMD's calls have had one id, by which their kernels know them, under either name.
  if (amd && record.correlation == kNoId) std::swap(record.correlation, record.external);
  if (event.has(Field::kGrid)) {
    TracedKernel spec;
    read_launch(event, spec);
    // These two are called with the number of threads and not of blocks.
    if (name == "hipExtModuleLaunchKernel" || name == "hipHccModuleLaunchKernel")
      for (std::size_t i = 0; i < 3; ++i) {
        const std::uint32_t block = std::max(1u, spec.launch.block[i]);
        spec.launch.grid[i] = spec.launch.grid[i] / block + (spec.launch.grid[i] % block != 0);
      }
    record.spec = intern(spec);
  }
  keep_call(record);
}

// Problem shape and dtype from the inputs that the event records; the same inputs are read once.
void TraceCollector::describe(const ChromeEvent& event, std::uint32_t name, OpRecord& record) {
  const std::string_view dims = event[Field::kInputDims], types = event[Field::kInputTypes],
                         concrete = event[Field::kConcreteInputs];
  if (dims.empty()) return;
  const bool collective = event.has(Field::kCollective);
  record.has_dims = dims.size() > 2 || collective;
  if (!record.has_dims) return;
  out_.ops_with_dims = true;
  std::uint64_t hash = hash64(dims) * 31 + name;
  hash = hash * 0x9E3779B97F4A7C15ull + hash64(types);
  hash = hash * 0x9E3779B97F4A7C15ull + hash64(concrete);
  if (collective) hash = hash * 0x9E3779B97F4A7C15ull + hash64(event[Field::kArgs]);
  const auto next = static_cast<std::uint32_t>(described_.size());
  const std::uint32_t known = described_.size() < kMaxDescribed
                                  ? described_ids_.find_or_add(hash, next)
                                  : described_ids_.find(hash);
  Described described;
  if (known != IdTable::kAbsent) {
    described = described_[known];
  } else {
    const std::string dims_of = to_text_value(dims, dims.size()),
                      types_of = to_text_value(types, types.size()),
                      concrete_of = to_text_value(concrete, concrete.size());
    const std::vector<OpInput> inputs = to_inputs(dims_of, types_of, concrete_of);
    const Problem problem =
        collective ? communication_problem(to_int(event[Field::kElements]),
                                           to_int(event[Field::kOutElements]),
                                           to_int(event[Field::kGroupSize]), event[Field::kDtype])
                   : problem_of(out_.names[name], inputs);
    described.is_problem = !problem.empty();
    described.shape =
        out_.names.of_text(problem.empty() ? dims_text(inputs) : to_text(problem.dimensions));
    // Of an op that no rule knows, rows do not take it as a fact.
    described.dtype = out_.names.of_text(problem.empty() ? std::string(floating_dtype_of(inputs))
                                                         : problem.dtype);
    if (described_.size() < kMaxDescribed) described_.push_back(described);
  }
  record.op.shape = described.shape;
  record.op.dtype = described.dtype;
  record.is_problem = described.is_problem;
}

void TraceCollector::add_op(const ChromeEvent& event) {
  out_.has_kineto = true;
  const std::uint32_t name = out_.names.of_raw(event[Field::kName]);
  if (range_kinds_.size() <= name) range_kinds_.resize(out_.names.size() * 2, 0);
  std::uint8_t& kind = range_kinds_[name];
  constexpr std::uint8_t kIsOp = 1, kIsRange = 2;
  if (kind == 0) kind = range_kind(out_.names[name], false) == nullptr ? kIsOp : kIsRange;
  if (kind == kIsRange) {
    add_range(event, name, range_kind(out_.names[name], false));
    return;
  }
  Times times;
  if (!times_of(event, times)) return;
  if (!room()) {
    ++out_.left_out_other;
    return;
  }
  TraceTrack& track = out_.tracks[track_of(event)];
  OpRecord& record = out_.ops.emplace_back();
  record.op.start_ns = times.start_ns;
  record.op.duration_ns = times.duration_ns;
  record.op.name = name;
  record.op.process = host_process(track);
  record.op.thread = track.thread;
  record.external = id_of(event[Field::kExternalId]);
  describe(event, name, record);
}

void TraceCollector::add_range(const ChromeEvent& event, std::uint32_t name,
                               const RangeKind* kind) {
  Times times;
  if (!times_of(event, times)) return;
  if (!room()) {
    ++out_.left_out_other;
    return;
  }
  TraceTrack& track = out_.tracks[track_of(event)];
  Range& range = out_.ranges.emplace_back();
  range.start_ns = times.start_ns;
  range.duration_ns = times.duration_ns;
  range.name = name;
  range.kind = *kind;
  // The tool's own overhead stands under a process of no number: it belongs to the traced process.
  range.process = track.pid == "-1" ? 0 : host_process(track);
  range.thread = track.thread;
}

// What lies days away from the recording has times of another clock, or none.
void TraceCollector::drop_far_times() {
  if (out_.first_ns > out_.last_ns || out_.last_ns - out_.first_ns <= kFarthestNs) return;
  std::vector<std::int64_t> starts;
  const auto each = [&](auto use) {
    use(out_.kernels, [](const DeviceRecord& record) { return record.activity; });
    use(out_.copies, [](const DeviceRecord& record) { return record.activity; });
    use(out_.calls, [](const CallRecord& record) { return record.call; });
    use(out_.ops, [](const OpRecord& record) { return record.op; });
    use(out_.ranges, [](const Range& range) { return range; });
  };
  each([&](const auto& records, auto event_of) {
    for (const auto& record : records) starts.push_back(event_of(record).start_ns);
  });
  const std::int64_t middle = middle_of(starts);
  out_.first_ns = INT64_MAX;
  out_.last_ns = INT64_MIN;
  each([&](auto& records, auto event_of) {
    out_.far_times += std::erase_if(records, [&](const auto& record) {
      const auto event = event_of(record);
      return is_far(event.start_ns, event.duration_ns, middle);
    });
    for (const auto& record : records) {
      const auto event = event_of(record);
      out_.first_ns = std::min(out_.first_ns, event.start_ns);
      out_.last_ns = std::max(out_.last_ns, event.start_ns + event.duration_ns);
    }
  });
}

Records TraceCollector::finish() {
  resolve();
  out_.not_understood += pairs_.open();  // begins without an end
  drop_far_times();
  for (const DeviceRecord& copy : out_.copies) add_to_row(copy.activity);
  if (out_.processes.empty() && !out_.kernels.empty()) out_.processes.emplace_back();
  for (const auto& [pid, index] : host_processes_) {
    const auto name = process_names_.find(pid);
    if (name != process_names_.end()) out_.processes[index].command = name->second;
  }
  return std::move(out_);
}

}  // namespace purlin::profile
