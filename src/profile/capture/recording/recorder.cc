// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/recording/recorder.h"

#include "profile/capture/recording/json_text.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#ifndef PURLIN_VERSION
#error "the build passes PURLIN_VERSION"
#endif

namespace purlin::profile::capture {
namespace {

constexpr std::string_view kOtherKernels = "(other kernels)";
constexpr std::size_t kMaxName = 1 << 16;
// Parts of names of libraries and kernels that multiply, convolve or attend.
constexpr std::string_view kComputing[] = {"gemm",  "gemv",  "nvjet",     "cutlass",
                                           "xmma",  "cudnn", "conv2d",    "conv_depthwise",
                                           "flash", "fmha",  "attention", "triton"};

bool computes(std::string_view name) {
  return std::any_of(std::begin(kComputing), std::end(kComputing), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

wire::KernelDefinition definition_of(const LaunchFacts& facts, std::uint32_t name) {
  wire::KernelDefinition definition;
  definition.name = name;
  definition.device = facts.device;
  definition.grid = facts.grid;
  definition.block = facts.block;
  definition.cluster = facts.cluster;
  definition.dynamic_shared_bytes = facts.dynamic_shared_bytes;
  definition.static_shared_bytes = facts.static_shared_bytes;
  definition.registers = facts.registers;
  definition.local_bytes = facts.local_bytes;
  return definition;
}

}  // namespace

std::size_t Recorder::RowKeyHash::operator()(const RowKey& key) const {
  static_assert(std::has_unique_object_representations_v<RowKey>,
                "keys are hashed and compared as bytes");
  return XXH3_64bits(&key, sizeof key);
}

bool Recorder::RowKeyEqual::operator()(const RowKey& a, const RowKey& b) const {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::size_t Recorder::TextHash::operator()(std::string_view text) const {
  return XXH3_64bits(text.data(), text.size());
}

void Recorder::set_meta(std::string process, std::string devices) {
  const std::lock_guard<std::mutex> lock(mutex_);
  process_ = std::move(process);
  devices_ = std::move(devices);
  meta_changed_ = dirty_ = true;
}

void Recorder::set_devices(std::string devices) {
  const std::lock_guard<std::mutex> lock(mutex_);
  devices_ = std::move(devices);
  meta_changed_ = dirty_ = true;
}

void Recorder::set_build(std::string label) {
  const std::lock_guard<std::mutex> lock(mutex_);
  build_ = std::move(label);
}

void Recorder::count_launches(double launches) {
  const std::lock_guard<std::mutex> lock(mutex_);
  counted_ += launches;
  dirty_ = true;
}

void Recorder::lose_launches(double launches, std::string_view cause, std::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  lost_ += launches;
  add_note(cause, text, launches, 0);
}

void Recorder::note(std::string_view cause, std::string_view text, double count, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  add_note(cause, text, count, seconds);
}

void Recorder::withdraw_note(std::string_view cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto position = notes_.find(cause);
  if (position == notes_.end()) return;
  notes_.erase(position);
  dirty_ = true;
}

void Recorder::add_overhead_ns(double ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  overhead_ns_ += ns;
}

std::size_t Recorder::kernel_names() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return names_.size();
}

void Recorder::set_sampling(const SamplingFacts& facts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sampling_ = facts;
}

Recorder::Spent Recorder::spent() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {sampling_, overhead_ns_};
}

double Recorder::computing_launches() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return computing_;
}

void Recorder::add_pace(const Pace& pace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (paces_.size() >= kMaxPaces) return;
  paces_.push_back(pace);
  meta_changed_ = dirty_ = true;
}

void Recorder::set_one_in(int runs) {
  const std::lock_guard<std::mutex> lock(mutex_);
  one_in_ = runs;
}

void Recorder::add_bytes_written(std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_written_ += bytes;
}

void Recorder::add_note(std::string_view cause, std::string_view text, double count,
                        double seconds) {
  dirty_ = true;
  auto position = notes_.find(cause);
  if (position == notes_.end()) {
    if (notes_.size() >= kMaxNotes) return;
    position = notes_.emplace(cause, Note{}).first;
  }
  position->second.text = text;
  position->second.count += count;
  position->second.seconds += seconds;
}

std::uint32_t Recorder::string_id(std::string_view text) {
  text = text.substr(0, kMaxName);
  const auto known = strings_.find(text);
  if (known != strings_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(strings_.size());
  strings_.emplace(text, id);
  new_strings_.text(text);
  ++new_string_count_;
  return id;
}

std::uint32_t Recorder::define(const RowKey& key) {
  const auto id = static_cast<std::uint32_t>(rows_.size());
  rows_.emplace_back();
  ids_.emplace(key, id);
  shapes_.emplace(shape_of(key.definition), id);
  names_.insert(key.definition.name);
  wire::encode(new_kernels_, key.definition);
  ++new_kernel_count_;
  if (key.definition.origin != 0) {
    new_origins_.varint(id);
    new_origins_.varint(key.definition.origin);
    ++new_origin_count_;
  }
  if (key.dtype == 0) return id;
  new_dtypes_.varint(id);
  new_dtypes_.varint(key.dtype);
  new_dtypes_.varint(0);  // build: the environment's
  new_dtypes_.varint(0);  // counters
  ++new_dtype_count_;
  return id;
}

std::uint32_t Recorder::add_op(std::string_view op, std::string_view shape,
                               std::string_view dtype) {
  const auto id = [&](std::string_view text) { return text.empty() ? 0 : string_id(text) + 1; };
  return host_.add_op({id(op), id(shape), id(dtype)});
}

std::uint32_t Recorder::add_call(const CallFacts& facts) {
  if (!has_room()) return kNone;
  Call call;
  call.name = host_.name(string_id(facts.name));
  call.kind = facts.kind;
  call.thread = facts.thread;
  call.start_ns = facts.start_ns;
  call.duration_ns = facts.duration_ns;
  return host_.add_call(call);
}

void Recorder::add_host_call(const CallFacts& facts) {
  if (every_launch_ || windows_.requested() || windows_.admit_call(facts.start_ns)) add_call(facts);
}

void Recorder::add_range(const RangeFacts& facts) {
  if (!has_room()) return;
  Range range;
  range.name = host_.name(string_id(facts.name));
  range.thread = facts.thread;
  range.start_ns = facts.start_ns;
  range.duration_ns = facts.duration_ns;
  host_.add_range(range);
}

std::uint32_t Recorder::row_of(const LaunchFacts& facts) {
  static_assert(std::has_unique_object_representations_v<LaunchShape>);
  const LaunchShape shape = {facts.grid,
                             facts.block,
                             facts.cluster,
                             facts.dynamic_shared_bytes,
                             facts.static_shared_bytes,
                             facts.registers,
                             facts.local_bytes,
                             facts.device,
                             facts.op,
                             static_cast<std::uint32_t>(facts.origin)};
  const std::uint64_t hash =
      XXH3_64bits_withSeed(&shape, sizeof shape, XXH3_64bits(facts.name.data(), facts.name.size()));
  Recent& recent = recent_[hash % kRecent];
  if (!facts.name.empty() && recent.name == facts.name &&
      std::memcmp(&recent.shape, &shape, sizeof shape) == 0)
    return recent.row;
  recent.shape = shape;
  recent.name = {};  // until it is known that the launch has its own row
  const std::uint32_t row = find_row(facts, recent);
  rows_[row].computes = rows_[row].computes || computes(facts.name);
  return row;
}

Recorder::RowKey Recorder::key_of(const LaunchFacts& facts, std::uint32_t name) const {
  RowKey key;
  key.definition = definition_of(facts, name);
  const HostEvents::OpIds op = host_.op(facts.op);
  key.definition.op = op.op;
  key.definition.shape = op.shape;
  key.definition.origin = static_cast<std::uint32_t>(facts.origin);
  key.dtype = op.dtype;
  return key;
}

std::uint32_t Recorder::find_row(const LaunchFacts& facts, Recent& recent) {
  // A name beyond the cap must not grow the string table either.
  const bool full = rows_.size() >= kMaxKernels;
  const auto name = strings_.find(facts.name.substr(0, kMaxName));
  RowKey key;
  if (name != strings_.end() || !full) {
    key = key_of(facts, name != strings_.end() ? name->second : string_id(facts.name));
    const auto remember = [&](std::uint32_t row) {
      recent.name = strings_.find(facts.name.substr(0, kMaxName))->first;
      return recent.row = row;
    };
    const auto known = ids_.find(key);
    if (known != ids_.end()) return remember(known->second);
    if (facts.op != 0 && rows_.size() >= kMaxKernelsByOp) {
      add_note("op_rows_full",
               "more than 15,000 different kernels, launch shapes and ops: the ops of the rest are "
               "not recorded",
               1, 0);
      LaunchFacts without = facts;
      without.op = 0;
      return row_of(without);
    }
    if (!full) return remember(define(key));
  }
  add_note("kernel_rows_full",
           "more than 20,000 different kernels and launch shapes: the rest is in the row "
           "'(other kernels)'",
           1, 0);
  RowKey other;
  other.definition.name = string_id(kOtherKernels);
  other.definition.device = facts.device;
  const auto known = ids_.find(other);
  return known != ids_.end() ? known->second : define(other);
}

void Recorder::add(const LaunchFacts& facts) {
  if (facts.ended) return add_ended(facts);
  dirty_ = true;
  if (unended_.size() >= kMaxUnended) return lose_unended();
  Unended unended = {facts, std::string(facts.name.substr(0, kMaxName))};
  unended.facts.call = kNone;  // a period's own
  unended_.push_back(std::move(unended));
}

// A launch without a reported end was still made. It is counted with the time of another launch of
// its kernel and launch shape, which is a fair sample of such launches.
void Recorder::settle_unended(bool final) {
  std::vector<Unended> waiting;
  for (Unended& unended : unended_) {
    LaunchFacts& facts = unended.facts;
    facts.name = unended.name;
    facts.duration_ns = duration_of_another(facts);
    if (facts.duration_ns < 0) {
      if (final)
        lose_unended();
      else
        waiting.push_back(std::move(unended));
      continue;
    }
    add_note("estimated_durations",
             "launches that had not ended when their record was read, or whose end CUPTI did not "
             "report (graph nodes at a window's end): counted with the time of another launch of "
             "the kernel",
             1, 0);
    add_ended(facts);
  }
  unended_ = std::move(waiting);
}

void Recorder::lose_unended() {
  lost_ += 1;
  add_note("unfinished_launches",
           "launches that had not ended when their record was read, or whose end CUPTI did not "
           "report, of kernels that were never seen to end",
           1, 0);
}

// -1: none was seen to its end.
std::int64_t Recorder::duration_of_another(const LaunchFacts& facts) const {
  const auto name = strings_.find(facts.name.substr(0, kMaxName));
  if (name == strings_.end()) return -1;
  const RowKey key = key_of(facts, name->second);
  if (const auto row = ids_.find(key); row != ids_.end() && rows_[row->second].duration_ns >= 0)
    return rows_[row->second].duration_ns;
  const auto row = shapes_.find(shape_of(key.definition));  // in any op
  return row != shapes_.end() ? rows_[row->second].duration_ns : -1;
}

void Recorder::add_ended(const LaunchFacts& facts) {
  const std::uint32_t id = row_of(facts);
  Row& row = rows_[id];
  const std::int64_t end = facts.start_ns + facts.duration_ns;
  if (row.added.empty()) {
    touched_.push_back(id);
    row.first_ns = facts.start_ns;
    row.last_ns = end;
  }
  row.first_ns = std::min(row.first_ns, facts.start_ns);
  row.last_ns = std::max(row.last_ns, end);
  row.added.add(static_cast<double>(facts.duration_ns), facts.weight);
  row.duration_ns = facts.duration_ns;
  const double seen = facts.again ? 0 : 1;
  seen_ += seen;
  if (row.computes) computing_ += seen;
  sampled_out_ += facts.weight - seen;
  dirty_ = true;
  if (!in_timeline(facts)) return;
  const std::uint32_t call = call_of(facts);
  if (call == kNone && facts.graph == 0)
    return launches_.add(id, facts.stream, facts.start_ns, facts.duration_ns);
  Activity activity;
  activity.row = id;
  activity.device = static_cast<std::uint16_t>(facts.device);
  activity.stream = facts.stream;
  activity.call = call;
  activity.graph = facts.graph;
  activity.start_ns = facts.start_ns;
  activity.duration_ns = facts.duration_ns;
  timed_.add(activity);
}

template <class Facts>
bool Recorder::in_timeline(const Facts& facts) {
  if (!facts.timed || !has_room()) return false;
  if (every_launch_) return true;
  if (!facts.requested) return windows_.admit(facts.start_ns);
  windows_.request(facts.start_ns);
  return true;
}

// The call that made a launch. Where only its time is known, it is a call named kQueuedCall
// without a duration.
std::uint32_t Recorder::call_of(const LaunchFacts& facts) {
  if (facts.call != kNone || facts.queued_ns <= 0 || facts.queued_ns > facts.start_ns)
    return facts.call;
  return add_call({kQueuedCall, CallKind::kLaunch, kNone, facts.queued_ns, 0});
}

bool Recorder::has_room() {
  if (launches_.size() + timed_.size() + host_.size() < kMaxTimelineBytes) return true;
  add_note("timeline_full",
           "launches, memcpy, memset, calls and ranges missing from the timeline: more than 64 MiB "
           "in one period",
           1, 0);
  return false;
}

void Recorder::add_copy(const CopyFacts& facts) {
  const std::uint32_t kind = string_id(facts.kind);
  const auto [position, added] =
      copy_rows_.try_emplace({kind, facts.device}, static_cast<std::uint32_t>(copies_.size()));
  if (added) copies_.push_back({kind, facts.device, 0, {}});
  CopyTotals& totals = copies_[position->second];
  totals.bytes += static_cast<double>(facts.bytes) * facts.weight;
  totals.added.add(static_cast<double>(facts.duration_ns), facts.weight);
  dirty_ = true;
  if (!in_timeline(facts)) return;
  Activity activity;
  activity.kind =
      facts.kind == "memset" || facts.kind == "fill" ? ActivityKind::kSet : ActivityKind::kCopy;
  activity.row = position->second;
  activity.device = static_cast<std::uint16_t>(facts.device);
  activity.stream = facts.stream;
  activity.bytes = facts.bytes;
  activity.start_ns = facts.start_ns;
  activity.duration_ns = facts.duration_ns;
  activity.call = facts.call;
  timed_.add(activity);
}

// The same key for a launch from each source: the driver's resources of a kernel can differ from
// those in its record, and the counter tier knows no op.
Recorder::RowKey Recorder::shape_of(const wire::KernelDefinition& definition) {
  RowKey key;
  key.definition = definition;
  key.definition.op = key.definition.shape = key.definition.origin = 0;
  key.definition.registers = key.definition.local_bytes = 0;
  return key;
}

void Recorder::add_counters(const LaunchFacts& facts, const std::vector<std::string_view>& names,
                            const std::vector<double>& values) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool full = rows_.size() >= kMaxKernels;
  const auto name = strings_.find(facts.name.substr(0, kMaxName));
  if (name == strings_.end() && full) return;
  RowKey key;
  key.definition =
      definition_of(facts, name != strings_.end() ? name->second : string_id(facts.name));
  const auto known = shapes_.find(shape_of(key.definition));
  // In the row '(other kernels)' means over different kernels would have no meaning.
  if (known == shapes_.end() && full) return;
  const std::uint32_t row = known != shapes_.end() ? known->second : define(key);
  for (std::size_t i = 0; i < names.size(); ++i) counters_.add(row, string_id(names[i]), values[i]);
  dirty_ = true;
}

void Recorder::add_wait(const WaitFacts& facts) {
  waits_[string_id(facts.kind)].add(static_cast<double>(facts.duration_ns), facts.weight);
  dirty_ = true;
}

void Recorder::append_waits(std::string& out) {
  if (waits_.empty()) return;
  wire::Encoder waits;
  waits.varint(waits_.size());
  for (const auto& [kind, sketch] : waits_) {
    waits.varint(kind);
    wire::encode(waits, sketch);
  }
  waits_.clear();
  wire::append_chunk(out, wire::ChunkType::kWaits, waits.bytes());
}

void Recorder::append_rows(std::string& out) {
  if (new_string_count_ > 0) {
    wire::Encoder strings;
    strings.varint(new_string_count_);
    strings.raw(new_strings_.bytes());
    wire::append_chunk(out, wire::ChunkType::kStrings, strings.bytes());
  }
  if (new_kernel_count_ > 0) {
    wire::Encoder kernels;
    kernels.varint(new_kernel_count_);
    kernels.raw(new_kernels_.bytes());
    wire::append_chunk(out, wire::ChunkType::kKernels, kernels.bytes());
  }
  if (new_dtype_count_ > 0) {
    wire::Encoder dtypes;
    dtypes.varint(new_dtype_count_);
    dtypes.raw(new_dtypes_.bytes());
    wire::append_chunk(out, wire::ChunkType::kDetails, dtypes.bytes());
  }
  if (const std::string counters = counters_.take(); !counters.empty())
    wire::append_chunk(out, wire::ChunkType::kDetails, counters);
  if (new_origin_count_ > 0) {
    wire::Encoder origins;
    origins.varint(new_origin_count_);
    origins.raw(new_origins_.bytes());
    wire::append_chunk(out, wire::ChunkType::kOrigins, origins.bytes());
  }
  new_strings_.clear();
  new_kernels_.clear();
  new_dtypes_.clear();
  new_origins_.clear();
  new_string_count_ = new_kernel_count_ = new_dtype_count_ = new_origin_count_ = 0;
  if (touched_.empty()) return;
  wire::Encoder sketches;
  sketches.varint(touched_.size());
  for (const std::uint32_t id : touched_) {
    Row& row = rows_[id];
    sketches.varint(id);
    sketches.fixed64(static_cast<std::uint64_t>(row.first_ns));
    sketches.fixed64(static_cast<std::uint64_t>(row.last_ns));
    wire::encode(sketches, row.added);
    row.added = Sketch();
  }
  touched_.clear();
  wire::append_chunk(out, wire::ChunkType::kSketches, sketches.bytes());
}

// In the order of their places, which the reader relies on.
void Recorder::append_copies(std::string& out) {
  wire::Encoder rows;
  std::size_t touched = 0;
  for (CopyTotals& totals : copies_) {
    if (totals.added.empty() && !copies_again_) continue;
    ++touched;
    rows.varint(totals.kind);
    rows.varint(totals.device);
    rows.real(std::exchange(totals.bytes, 0));
    wire::encode(rows, totals.added);
    totals.added = Sketch();
  }
  copies_again_ = false;
  if (touched == 0) return;
  wire::Encoder copies;
  copies.varint(touched);
  copies.raw(rows.bytes());
  wire::append_chunk(out, wire::ChunkType::kCopies, copies.bytes());
}

std::string Recorder::coverage() const {
  std::string notes;
  for (const auto& [cause, now] : notes_) {
    Note note = now;
    if (const auto before = before_.notes.find(cause); before != before_.notes.end()) {
      note.count -= before->second.count;
      note.seconds -= before->second.seconds;
      const bool counts = now.count > 0 || now.seconds > 0;
      if (counts && note.count <= 0 && note.seconds <= 0) continue;
    }
    if (!notes.empty()) notes += ',';
    notes += JsonText()
                 .text("cause", cause)
                 .text("text", note.text)
                 .real("count", note.count)
                 .real("seconds", note.seconds)
                 .finish();
  }
  JsonText json;
  const SamplingFacts& earlier = before_.sampling;
  json.real("launches_seen", seen_ - before_.seen)
      .real("launches_counted", counted_ - before_.counted)
      .real("launches_lost", lost_ - before_.lost)
      .real("launches_sampled_out", sampled_out_ - before_.sampled_out)
      .real("overhead_ns", overhead_ns_ - before_.overhead_ns)
      .integer("bytes_written", static_cast<std::int64_t>(bytes_written_ - before_.bytes_written));
  if (sampling_.budget > 0)
    json.raw("sampling",
             JsonText()
                 .real("budget", sampling_.budget)
                 .real("governed_ns", sampling_.governed_ns - earlier.governed_ns)
                 .real("recorded_ns", sampling_.recorded_ns - earlier.recorded_ns)
                 .real("windows", sampling_.windows - earlier.windows)
                 .real("total_ns", sampling_.total_ns - earlier.total_ns)
                 .real("total_variance", sampling_.total_variance - earlier.total_variance)
                 .real("unsure_ns", std::max(0.0, sampling_.unsure_ns - earlier.unsure_ns))
                 .raw("waits", sampling_.waits ? "true" : "false")
                 .real("counted_windows", sampling_.counted_windows - earlier.counted_windows)
                 .real("timed_windows", sampling_.timed_windows - earlier.timed_windows)
                 .real("presence", sampling_.presence)
                 .real("hidden_ns", sampling_.hidden_ns - earlier.hidden_ns)
                 .integer("one_in", one_in_)
                 .finish());
  return json.raw("notes", '[' + notes + ']').finish();
}

void Recorder::update_meta() {
  const std::int64_t from_ns = every_launch_ ? 0 : windows_.from_ns();
  const bool requested = every_launch_ || windows_.requested();
  meta_changed_ = meta_changed_ || from_ns != timeline_from_ns_ || requested != timeline_requested_;
  timeline_from_ns_ = from_ns;
  timeline_requested_ = requested;
}

// With the facts of its timeline.
std::string Recorder::process_document() const {
  std::string process = process_;
  if (process.size() < 2) return process;
  process.pop_back();
  if (timeline_from_ns_ != 0)
    process += ",\"timeline_from_ns\":" + std::to_string(timeline_from_ns_);
  if (timeline_requested_) process += ",\"timeline_requested\":true";
  std::string paces;
  for (const Pace& pace : paces_)
    paces += (paces.empty() ? "" : ",") +
             JsonText().real("calls", pace.calls).real("ns", pace.ns).finish();
  if (!paces.empty()) process += ",\"paces\":[" + paces + ']';
  return process + '}';
}

std::string Recorder::drain(std::uint64_t offset, std::int64_t wall_ns, bool final) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!dirty_ && !final) return "";
  settle_unended(final);
  return period(offset, wall_ns, final);
}

std::string Recorder::end_file(std::uint64_t offset, std::int64_t wall_ns, std::string process) {
  const std::lock_guard<std::mutex> lock(mutex_);
  settle_unended(false);
  std::string out = period(offset, wall_ns, true);
  begin_file(std::move(process));
  return out;
}

// The reader knows copies by their order in the file.
void Recorder::begin_file(std::string process) {
  process_ = std::move(process);
  before_ = {seen_, sampled_out_, counted_, lost_, overhead_ns_, bytes_written_, sampling_, notes_};
  sequence_ = 0;
  copies_again_ = !copies_.empty();
  meta_changed_ = dirty_ = true;
  host_.begin_file();
}

std::string Recorder::period(std::uint64_t offset, std::int64_t wall_ns, bool final) {
  std::string out;
  update_meta();
  if (offset == 0) wire::append_header(out);
  if (meta_changed_)
    wire::append_chunk(
        out, wire::ChunkType::kMeta,
        JsonText()
            .text("schema", "purlin.profile/1")
            .text("tool_version", PURLIN_VERSION)
            .raw("processes", '[' + process_document() + ']')
            .raw("environment", JsonText().raw("devices", devices_).text("build", build_).finish())
            .finish());
  meta_changed_ = dirty_ = false;
  std::string stalls;  // made first: it brings strings
  if (!stalls_.empty())
    stalls = stalls_.drain([&](std::string_view text) { return string_id(text); });
  append_rows(out);
  append_copies(out);
  append_waits(out);
  if (!stalls.empty()) wire::append_chunk(out, wire::ChunkType::kStallSites, stalls);
  host_.append(out);
  if (launches_.count() > 0)
    wire::append_chunk(out, wire::ChunkType::kLaunches, launches_.finish(0));
  if (timed_.count() > 0) wire::append_chunk(out, wire::ChunkType::kActivities, timed_.finish());
  wire::append_chunk(out, wire::ChunkType::kCoverage, coverage());
  wire::append_chunk(out, wire::ChunkType::kSeal,
                     wire::encode(wire::Seal{++sequence_, wall_ns, offset + out.size(), final}));
  return out;
}

}  // namespace purlin::profile::capture
