// SPDX-License-Identifier: Apache-2.0
#include "profile/format/stream.h"

#include "profile/format/events.h"
#include "profile/format/head.h"
#include "profile/format/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

namespace purlin::profile {
namespace {

using wire::ChunkType;

constexpr std::size_t kBatch = 1024;  // activities handed to a visitor at once
constexpr std::size_t kMaxEventChunks = std::size_t{1} << 23;
constexpr std::size_t kMaxEventChunkBytes = std::size_t{512} << 20;
constexpr std::size_t kMaxHeadChunkBytes = std::size_t{1} << 30;

bool holds_events(const Chunk& chunk) {
  return chunk.version == 1 &&
         (chunk.is(ChunkType::kLaunches) || chunk.is(ChunkType::kActivities) ||
          chunk.is(ChunkType::kCalls) || chunk.is(ChunkType::kOps) || chunk.is(ChunkType::kRanges));
}

bool holds_activities(ChunkType type) {
  return type == ChunkType::kLaunches || type == ChunkType::kActivities;
}

// What a worker needs to decode one chunk after the other.
struct Scratch {
  explicit Scratch(std::size_t kernels) : memory(kernels) {}
  std::string buffer;
  wire::LaunchMemory memory;
};

}  // namespace

std::size_t default_workers() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
}

Result<ProfileStream> ProfileStream::open(const std::string& path) {
  PURLIN_ASSIGN(Bytes bytes, Bytes::open(path));
  Result<ProfileStream> stream = start(std::move(bytes));
  // The operating system's errors name the file already.
  if (!stream.is_ok() && stream.status().code() != Code::kIo)
    return stream.status().with_context(path);
  return stream;
}

Result<ProfileStream> ProfileStream::over(std::string_view bytes) {
  return start(Bytes::over(bytes));
}

Result<ProfileStream> ProfileStream::start(Bytes bytes) {
  ProfileStream stream(std::move(bytes));
  PURLIN_TRY(stream.read_head());
  return stream;
}

Status ProfileStream::read_head() {
  std::string buffer;
  const auto size =
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes_.size(), wire::kHeaderBytes));
  PURLIN_ASSIGN(const std::string_view header, bytes_.read(0, size, buffer));
  if (size < wire::kHeaderBytes || header.substr(0, wire::kMagic.size()) != wire::kMagic)
    return error(Code::kInvalid, "not a Purlin profile (it does not start with 'PURLINPF')");
  const int version = wire::Decoder(header.substr(wire::kMagic.size())).fixed16();
  if (version != wire::kFormatVersion)
    return error(Code::kCorrupt,
                 "profile format version {} is not known to this Purlin (it reads version {}); "
                 "use the Purlin that wrote it, or a newer one",
                 version, wire::kFormatVersion);
  PURLIN_ASSIGN(const Sealed sealed, scan(bytes_));
  if (sealed.seals == 0)
    return error(Code::kCorrupt,
                 "no complete period: damaged or cut short before the first seal (offset {})",
                 wire::kHeaderBytes);

  HeadReader head(profile_);
  Chunks chunks(bytes_, sealed.end);
  Chunk chunk;
  while (chunks.next(chunk)) {
    const bool events = holds_events(chunk);
    const bool fits = chunk.length <= (events ? kMaxEventChunkBytes : kMaxHeadChunkBytes);
    if (!fits || (events ? !add_events(chunk, chunks.payload(chunk, 32))
                         : !head.decode(chunk.type, chunk.version, chunks.payload(chunk))))
      return error(Code::kCorrupt, "damaged: chunk of type {} at offset {} makes no sense",
                   chunk.type, chunk.offset);
  }
  PURLIN_TRY(chunks.status());
  if (!head.finish())
    return error(Code::kCorrupt, "damaged: a build label that is too long to be one");
  // Rows may be sealed before their device could be described.
  std::size_t devices = profile_.environment.devices.size();
  for (const KernelRow& row : profile_.kernels)
    devices = std::max(devices, static_cast<std::size_t>(row.device) + 1);
  for (const CopyRow& row : profile_.copies)
    devices = std::max(devices, static_cast<std::size_t>(row.device) + 1);
  for (const StallFunction& function : profile_.stalls.functions)
    devices = std::max(devices, static_cast<std::size_t>(function.device) + 1);
  profile_.environment.devices.resize(devices);
  const bool complete = sealed.last.final && sealed.end == bytes_.size();
  profile_.partial = profile_.partial || !complete;
  // A capture library's file holds one process, whose end is its last seal.
  if (profile_.processes.size() == 1 && profile_.processes[0].exit_seals == 0) {
    ProcessInfo& process = profile_.processes[0];
    process.end_ns = sealed.last.wall_ns;
    process.complete = sealed.last.final;
    process.exit_seals = static_cast<int>(std::min<std::uint64_t>(sealed.seals, 1u << 30));
  }
  return Status::ok();
}

bool ProfileStream::add_events(const Chunk& chunk, std::string_view start) {
  wire::Decoder in(start);
  if (chunk.is(ChunkType::kLaunches)) in.varint32();  // the process
  const auto base_ns = static_cast<std::int64_t>(in.fixed64());
  const std::uint64_t count = in.varint();
  if (in.failed() || count > chunk.length / wire::kMinEventBytes) return false;
  if (count == 0) return true;
  if (events_.size() >= kMaxEventChunks) return false;
  events_.push_back({chunk.payload(), base_ns, chunk.length, static_cast<std::uint32_t>(count),
                     static_cast<ChunkType>(chunk.type)});
  return true;
}

// META may leave processes out, but a few bytes must not make a million of them.
std::size_t ProfileStream::process_bound() const {
  return std::max(profile_.processes.size(), kMaxUnnamedProcesses);
}

std::uint64_t ProfileStream::activities() const {
  std::uint64_t total = 0;
  for (const Events& chunk : events_) total += holds_activities(chunk.type) ? chunk.count : 0;
  return total;
}

Status ProfileStream::damaged(const Events& chunk) const {
  return error(Code::kCorrupt, "damaged: chunk of type {} at offset {} makes no sense",
               static_cast<int>(chunk.type), chunk.payload - wire::kChunkHeaderBytes);
}

template <class Add>
bool ProfileStream::decode_activities(const Events& chunk, std::string_view payload,
                                      wire::LaunchMemory& memory, Add add) const {
  Activity activity;
  if (chunk.type == ChunkType::kLaunches) {
    wire::LaunchDecoder in(payload, memory);
    activity.process = in.process();
    if (activity.process >= process_bound()) return false;
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const wire::Launch launch = in.next();
      if (in.failed()) return false;
      activity.start_ns = launch.start_ns;
      activity.duration_ns = launch.duration_ns;
      activity.row = launch.kernel;
      activity.stream = launch.stream;
      activity.device = static_cast<std::uint16_t>(profile_.kernels[launch.kernel].device);
      if (!add(activity)) return true;
    }
    return !in.failed();
  }
  wire::ActivityDecoder in(payload);
  for (std::size_t i = 0; i < chunk.count; ++i) {
    if (!in.next(activity)) return false;
    const bool kernel = activity.kind == ActivityKind::kKernel;
    const std::size_t rows = kernel ? profile_.kernels.size() : profile_.copies.size();
    if (activity.row >= rows || activity.process >= process_bound() ||
        activity.device >= kMaxDevices)
      return false;
    if (!add(activity)) return true;
  }
  return true;
}

Status ProfileStream::visit(std::size_t workers, const Visit& visit) const {
  std::vector<const Events*> chunks;
  for (const Events& chunk : events_)
    if (holds_activities(chunk.type)) chunks.push_back(&chunk);
  std::vector<std::optional<Scratch>> scratch(workers);
  std::atomic<bool> enough = false;
  return parallel_for(chunks.size(), workers, [&](std::size_t worker, std::size_t i) -> Status {
    if (enough) return Status::ok();
    if (!scratch[worker]) scratch[worker].emplace(profile_.kernels.size());
    Scratch& mine = *scratch[worker];
    const Events& chunk = *chunks[i];
    PURLIN_ASSIGN(const std::string_view payload,
                  bytes_.read(chunk.payload, chunk.length, mine.buffer));
    std::array<Activity, kBatch> batch;
    std::size_t held = 0;
    const auto hand_over = [&] {
      const bool more = visit(worker, std::span(batch.data(), held));
      held = 0;
      if (!more) enough = true;
      return more;
    };
    const bool whole = decode_activities(chunk, payload, mine.memory, [&](const Activity& one) {
      batch[held++] = one;
      return held < kBatch || hand_over();
    });
    if (!whole) return damaged(chunk);
    if (held > 0) hand_over();
    return Status::ok();
  });
}

ProfileStream::Selection ProfileStream::select(std::size_t max_events) const {
  Selection selection;
  std::uint64_t total = 0;
  for (const Events& chunk : events_) total += chunk.count;
  std::int64_t cut_ns = 0;
  if (total > max_events) {
    std::vector<const Events*> by_time;
    for (const Events& chunk : events_) by_time.push_back(&chunk);
    std::stable_sort(by_time.begin(), by_time.end(),
                     [](const Events* a, const Events* b) { return a->base_ns < b->base_ns; });
    std::uint64_t kept = 0;
    for (const Events* chunk : by_time) {
      kept += chunk->count;
      if (kept <= max_events) continue;
      selection.cut = true;
      cut_ns = selection.cut_ns = chunk->base_ns;
      break;
    }
  }
  bool calls_ended = false, ops_ended = false;
  for (const Events& chunk : events_) {
    bool keep = !selection.cut || chunk.base_ns < cut_ns;
    // Calls and ops are pointed at by their number: what follows one that is left out is too.
    if (chunk.type == ChunkType::kCalls) keep = !(calls_ended = calls_ended || !keep);
    if (chunk.type == ChunkType::kOps) keep = !(ops_ended = ops_ended || !keep);
    if (!keep) {
      selection.left_out += holds_activities(chunk.type) ? chunk.count : 0;
      continue;
    }
    std::size_t& count = chunk.type == ChunkType::kCalls    ? selection.calls
                         : chunk.type == ChunkType::kOps    ? selection.ops
                         : chunk.type == ChunkType::kRanges ? selection.ranges
                                                            : selection.activities;
    selection.places.push_back({&chunk, count});
    count += chunk.count;
  }
  return selection;
}

bool ProfileStream::load(const Place& place, std::string_view payload, wire::LaunchMemory& memory) {
  Timeline& timeline = profile_.timeline;
  const std::size_t names = timeline.names.size();
  const std::size_t count = place.chunk->count;
  switch (place.chunk->type) {
    case ChunkType::kCalls: {
      wire::CallDecoder in(payload);
      for (std::size_t i = place.first; i < place.first + count; ++i) {
        Call& call = timeline.calls[i];
        if (!in.next(call) || call.name >= names || call.process >= process_bound()) return false;
      }
      return true;
    }
    case ChunkType::kOps: {
      wire::OpDecoder in(payload);
      for (std::size_t i = place.first; i < place.first + count; ++i) {
        Op& op = timeline.ops[i];
        if (!in.next(op, static_cast<std::uint32_t>(i)) || op.name >= names || op.shape >= names ||
            op.dtype >= names || op.process >= process_bound())
          return false;
      }
      return true;
    }
    case ChunkType::kRanges: {
      wire::RangeDecoder in(payload);
      for (std::size_t i = place.first; i < place.first + count; ++i) {
        Range& range = timeline.ranges[i];
        if (!in.next(range) || range.name >= names || range.process >= process_bound())
          return false;
      }
      return true;
    }
    default:
      break;
  }
  Activity* out = timeline.activities.data() + place.first;
  return decode_activities(*place.chunk, payload, memory, [&](const Activity& activity) {
    *out++ = activity;
    return true;
  });
}

Status ProfileStream::load_timeline(std::size_t max_events, std::size_t workers) {
  const Selection selection = select(std::min<std::size_t>(max_events, kNone));
  Timeline& timeline = profile_.timeline;
  timeline.activities.resize(selection.activities);
  timeline.calls.resize(selection.calls);
  timeline.ops.resize(selection.ops);
  timeline.ranges.resize(selection.ranges);
  timeline.left_out += selection.left_out;
  std::vector<std::optional<Scratch>> scratch(workers);
  PURLIN_TRY(parallel_for(
      selection.places.size(), workers, [&](std::size_t worker, std::size_t i) -> Status {
        if (!scratch[worker]) scratch[worker].emplace(profile_.kernels.size());
        const Place& place = selection.places[i];
        PURLIN_ASSIGN(
            const std::string_view payload,
            bytes_.read(place.chunk->payload, place.chunk->length, scratch[worker]->buffer));
        return load(place, payload, scratch[worker]->memory) ? Status::ok() : damaged(*place.chunk);
      }));
  if (selection.cut) cut_at(selection.cut_ns);
  return mend();
}

// Chunks that are kept reach beyond the time at which the first of the others begins.
void ProfileStream::cut_at(std::int64_t end_ns) {
  Timeline& timeline = profile_.timeline;
  const auto later = [&](const auto& event) { return event.start_ns >= end_ns; };
  timeline.left_out += std::erase_if(timeline.activities, later);
  std::erase_if(timeline.ranges, later);
  while (!timeline.calls.empty() && later(timeline.calls.back())) timeline.calls.pop_back();
  while (!timeline.ops.empty() && later(timeline.ops.back())) timeline.ops.pop_back();
  if (timeline.activities.empty()) return;
  if (timeline.begin_ns == 0 && timeline.end_ns == 0) {
    timeline.begin_ns = end_ns;
    for (const Activity& activity : timeline.activities)
      timeline.begin_ns = std::min(timeline.begin_ns, activity.start_ns);
  }
  timeline.end_ns = end_ns;
}

// Indices into what comes later in the file, or was cut off or left out.
Status ProfileStream::mend() {
  Timeline& timeline = profile_.timeline;
  std::size_t devices = profile_.environment.devices.size(), processes = profile_.processes.size();
  const auto link = [](std::uint32_t& index, std::size_t size) {
    if (index >= size) index = kNone;
  };
  const auto process = [&](std::uint32_t index) {
    processes = std::max(processes, index + std::size_t{1});
  };
  for (Activity& activity : timeline.activities) {
    link(activity.call, timeline.calls.size());
    process(activity.process);
    devices = std::max(devices, activity.device + std::size_t{1});
  }
  for (Call& call : timeline.calls) link(call.op, timeline.ops.size()), process(call.process);
  for (Op& op : timeline.ops) link(op.parent, timeline.ops.size()), process(op.process);
  for (const Range& range : timeline.ranges) process(range.process);
  profile_.environment.devices.resize(devices);
  profile_.processes.resize(processes);
  std::vector<std::int64_t> from_ns;
  for (const ProcessInfo& info : profile_.processes) from_ns.push_back(info.timeline_from_ns);
  if (std::any_of(from_ns.begin(), from_ns.end(), [](std::int64_t from) { return from != 0; }))
    drop_before(timeline, from_ns);
  return Status::ok();
}

Status ProfileStream::fold_launches(std::size_t workers) {
  std::vector<bool> wanted;
  for (const KernelRow& row : profile_.kernels) wanted.push_back(row.duration.empty());
  const bool any = std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  if (!any || activities() == 0) return Status::ok();

  struct Folded {
    Sketch duration;
    std::int64_t first_ns = 0, last_ns = 0;
  };
  struct Share {  // of one worker
    std::vector<Folded> rows;
    std::size_t buckets = 0;
  };
  std::vector<Share> shares(workers);
  std::atomic<bool> too_much = false;
  const std::size_t most = kMaxSketchBuckets / std::max<std::size_t>(workers, 1);
  const auto fold = [&](std::size_t worker, std::span<const Activity> batch) {
    Share& share = shares[worker];
    if (share.rows.empty()) share.rows.resize(wanted.size());
    for (const Activity& activity : batch) {
      if (activity.kind != ActivityKind::kKernel || !wanted[activity.row]) continue;
      Folded& row = share.rows[activity.row];
      const std::int64_t end_ns = activity.start_ns + activity.duration_ns;
      const bool first = row.duration.empty();
      row.first_ns = first ? activity.start_ns : std::min(row.first_ns, activity.start_ns);
      row.last_ns = first ? end_ns : std::max(row.last_ns, end_ns);
      const std::size_t before = row.duration.buckets().size();
      row.duration.add(static_cast<double>(activity.duration_ns));
      share.buckets += row.duration.buckets().size() - before;
    }
    if (share.buckets > most) too_much = true;
    return !too_much;
  };
  PURLIN_TRY(visit(workers, fold));
  if (too_much)
    return error(Code::kCorrupt, "damaged: the durations of {} kernels have an impossible range",
                 wanted.size());
  double folded_launches = 0;
  for (const Share& share : shares)
    for (std::size_t i = 0; i < share.rows.size(); ++i) {
      const Folded& folded = share.rows[i];
      if (folded.duration.empty()) continue;
      KernelRow& row = profile_.kernels[i];
      const bool first = row.duration.empty();
      row.first_ns = first ? folded.first_ns : std::min(row.first_ns, folded.first_ns);
      row.last_ns = first ? folded.last_ns : std::max(row.last_ns, folded.last_ns);
      row.duration.merge(folded.duration);
      folded_launches += folded.duration.count();
    }
  if (profile_.coverage.launches_seen == 0) profile_.coverage.launches_seen = folded_launches;
  return Status::ok();
}

}  // namespace purlin::profile
