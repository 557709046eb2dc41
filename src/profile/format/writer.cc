// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "model/document.h"
#include "profile/format/documents.h"
#include "profile/format/events.h"
#include "profile/format/file.h"
#include "profile/format/stall_sites.h"
#include "profile/format/wire.h"

#include <algorithm>
#include <functional>
#include <type_traits>
#include <unordered_map>

namespace purlin::profile {
namespace {

using wire::ChunkType;
using wire::Encoder;

// What a file that is cut short loses at most, at its end.
constexpr std::size_t kRowsPerPeriod = 1 << 10;
constexpr std::size_t kEventsPerPeriod = 1 << 16;
// Bytes held back so that the file is written in large pieces.
constexpr std::size_t kWriteBytes = 4 << 20;

// Takes the file's bytes in order.
using Sink = std::function<Status(std::string_view)>;

// Ids in the order of first use.
class Strings {
 public:
  std::uint32_t id(const std::string& text) {
    const auto [position, added] = ids_.try_emplace(text, static_cast<std::uint32_t>(ids_.size()));
    if (added) fresh_.push_back(&position->first);
    return position->second;
  }
  std::uint32_t optional_id(const std::string& text) { return text.empty() ? 0 : id(text) + 1; }
  // Those that are new since the last call, as a chunk.
  void append_new(std::string& out) {
    if (fresh_.empty()) return;
    Encoder payload;
    payload.varint(fresh_.size());
    for (const std::string* text : fresh_) payload.text(*text);
    fresh_.clear();
    wire::append_chunk(out, ChunkType::kStrings, payload.bytes());
  }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> fresh_;  // keys of ids_, which stay where they are
};

Json meta(const Profile& profile) {
  Json document = new_document("purlin.profile/1", profile.environment);
  document.set("command", profile.command);
  document.set("source", profile.source);
  document.set("wall_ns", profile.wall_ns);
  document.set("exit_code", profile.exit_code);
  document.set("partial", profile.partial);
  if (!profile.labels.empty()) document.set("labels", to_json(profile.labels));
  const Timeline& timeline = profile.timeline;
  if (timeline.begin_ns != 0 || timeline.end_ns != 0 || timeline.left_out != 0)
    document.set("timeline", Json::object({{"begin_ns", timeline.begin_ns},
                                           {"end_ns", timeline.end_ns},
                                           {"left_out", timeline.left_out}}));
  if (profile.data_flow.recorded()) document.set("data_flow", to_json(profile.data_flow));
  Json processes = Json::array();
  for (const ProcessInfo& process : profile.processes) processes.push(to_json(process));
  document.set("processes", std::move(processes));
  return document;
}

wire::KernelDefinition define(const KernelRow& row, Strings& strings) {
  wire::KernelDefinition definition;
  definition.name = strings.id(row.name);
  definition.op = strings.optional_id(row.op);
  definition.shape = strings.optional_id(row.shape);
  definition.device = static_cast<std::uint32_t>(std::max(row.device, 0));
  definition.grid = row.launch.grid;
  definition.block = row.launch.block;
  definition.cluster = row.launch.cluster;
  definition.dynamic_shared_bytes = row.launch.dynamic_shared_bytes;
  definition.static_shared_bytes = row.static_shared_bytes;
  definition.registers = row.registers;
  definition.local_bytes = row.local_bytes;
  return definition;
}

// A count that was added up, as it is written.
std::uint64_t whole(double count) {
  return count >= 1 ? static_cast<std::uint64_t>(std::min(count, 0x1p62)) : 0;
}

// Writes the periods of one file.
class Writer {
 public:
  Writer(const Profile& profile, Sink sink) : profile_(profile), sink_(std::move(sink)) {
    for (const ProcessInfo& process : profile.processes)
      end_ns_ = std::max(end_ns_, process.end_ns);
  }

  // What is needed to make sense of the rest comes first; the timeline, by far the longest, last:
  // in it the few ranges, then what the devices did, then the host.
  Status write() {
    wire::append_header(out_);
    wire::append_chunk(out_, ChunkType::kMeta, meta(profile_).dump());
    wire::append_chunk(out_, ChunkType::kCoverage, to_json(profile_.coverage).dump());
    copies();
    for (std::size_t first = 0; first < profile_.kernels.size(); first += kRowsPerPeriod) {
      if (first > 0) seal(false);
      rows(first, std::min(first + kRowsPerPeriod, profile_.kernels.size()));
    }
    stalls();
    names();
    const Timeline& timeline = profile_.timeline;
    events<wire::RangeEncoder>(ChunkType::kRanges, timeline.ranges);
    if (plain_launches()) {
      launches();
    } else {
      events<wire::ActivityEncoder>(ChunkType::kActivities, timeline.activities);
    }
    events<wire::CallEncoder>(ChunkType::kCalls, timeline.calls);
    events<wire::OpEncoder>(ChunkType::kOps, timeline.ops);
    seal(true);
    flush();
    return failure_;
  }

 private:
  void flush() {
    if (failure_.is_ok()) failure_ = sink_(out_);
    flushed_ += out_.size();
    out_.clear();
  }

  void seal(bool final) {
    const wire::Seal seal = {++sequence_, end_ns_, flushed_ + out_.size(), final};
    wire::append_chunk(out_, ChunkType::kSeal, wire::encode(seal));
    if (out_.size() >= kWriteBytes) flush();
  }

  void copies() {
    Encoder copies;
    copies.varint(profile_.copies.size());
    for (const CopyRow& row : profile_.copies) {
      copies.varint(strings_.id(row.kind));
      copies.varint(static_cast<std::uint64_t>(std::max(row.device, 0)));
      copies.real(row.bytes);
      wire::encode(copies, row.duration);
    }
    strings_.append_new(out_);
    wire::append_chunk(out_, ChunkType::kCopies, copies.bytes());
    if (profile_.waits.empty()) return;
    Encoder waits;
    waits.varint(profile_.waits.size());
    for (const WaitRow& row : profile_.waits) {
      waits.varint(strings_.id(row.kind));
      wire::encode(waits, row.duration);
    }
    strings_.append_new(out_);
    wire::append_chunk(out_, ChunkType::kWaits, waits.bytes());
  }

  void rows(std::size_t first, std::size_t last) {
    Encoder kernels, sketches, details, origins;
    std::size_t of_graphs = 0;
    kernels.varint(last - first);
    sketches.varint(last - first);
    std::size_t detailed = 0;
    for (std::size_t i = first; i < last; ++i) {
      const KernelRow& row = profile_.kernels[i];
      wire::encode(kernels, define(row, strings_));
      sketches.varint(i);
      sketches.fixed64(static_cast<std::uint64_t>(row.first_ns));
      sketches.fixed64(static_cast<std::uint64_t>(row.last_ns));
      wire::encode(sketches, row.duration);
      detailed += detail(details, row, i) ? 1 : 0;
      if (row.origin == LaunchOrigin::kStream) continue;
      ++of_graphs;
      origins.varint(i);
      origins.varint(static_cast<std::uint64_t>(row.origin));
    }
    Encoder counted;
    counted.varint(detailed);
    counted.raw(details.bytes());
    strings_.append_new(out_);
    wire::append_chunk(out_, ChunkType::kKernels, kernels.bytes());
    wire::append_chunk(out_, ChunkType::kSketches, sketches.bytes());
    if (detailed > 0) wire::append_chunk(out_, ChunkType::kDetails, counted.bytes());
    if (of_graphs == 0) return;
    Encoder counted_origins;
    counted_origins.varint(of_graphs);
    counted_origins.raw(origins.bytes());
    wire::append_chunk(out_, ChunkType::kOrigins, counted_origins.bytes());
  }

  // Nothing for a row that has nothing more to tell.
  bool detail(Encoder& out, const KernelRow& row, std::size_t index) {
    const bool own_build = row.build != profile_.environment.build;
    if (row.dtype.empty() && !own_build && row.counters.empty()) return false;
    out.varint(index);
    out.varint(strings_.optional_id(row.dtype));
    out.varint(own_build ? strings_.id(row.build) + 1 : 0);
    out.varint(row.counters.size());
    for (const Counter& counter : row.counters) {
      out.varint(strings_.id(counter.name));
      out.real(counter.value);
      out.real(counter.launches);
    }
    return true;
  }

  // A period for so many sites; what windows were goes with the first.
  void stalls() {
    const SampledStalls& stalls = profile_.stalls;
    if (stalls.empty()) return;
    wire::StallWindows windows = {whole(stalls.windows), whole(stalls.sampled_ns),
                                  stalls.least_period,   stalls.most_period,
                                  whole(stalls.dropped), whole(stalls.untold)};
    wire::StallEncoder encoder;
    const auto end_chunk = [&] {
      strings_.append_new(out_);
      wire::append_chunk(out_, ChunkType::kStallSites, encoder.finish(windows));
      windows = {0, 0, stalls.least_period, stalls.most_period, 0, 0};
    };
    std::size_t sites = 0;
    for (const StallFunction& function : stalls.functions) {
      const wire::StallOwner owner = stall_owner(function);
      encoder.begin(owner);
      for (const StallSite& site : function.sites) {
        if (++sites % kEventsPerPeriod == 0) {
          end_chunk();
          seal(false);
          encoder.begin(owner);
        }
        const std::string& file = stalls.files[site.file];
        encoder.place({site.offset, strings_.optional_id(file), site.line}, site.counts.size());
        // By name, so that a profile that was read is written unchanged.
        std::vector<StallCount> counts = site.counts;
        std::sort(counts.begin(), counts.end(), [&](const StallCount& a, const StallCount& b) {
          return stalls.reasons[a.reason] < stalls.reasons[b.reason];
        });
        for (const StallCount& count : counts)
          encoder.count(strings_.id(stalls.reasons[count.reason]), whole(count.samples));
      }
    }
    end_chunk();
  }

  wire::StallOwner stall_owner(const StallFunction& function) {
    const bool own_build = function.build != profile_.environment.build;
    return {strings_.id(function.name), static_cast<std::uint32_t>(std::max(function.device, 0)),
            own_build ? strings_.id(function.build) + 1 : 0, function.code};
  }

  // The older, shorter form holds kernels that only know their process and stream.
  bool plain_launches() const {
    const std::vector<Activity>& all = profile_.timeline.activities;
    std::size_t turns = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Activity& activity = all[i];
      if (activity.kind != ActivityKind::kKernel || activity.call != kNone || activity.graph != 0 ||
          activity.row >= profile_.kernels.size() ||
          profile_.kernels[activity.row].device != activity.device)
        return false;
      turns += i > 0 && activity.process != all[i - 1].process ? 1 : 0;
    }
    return turns <= all.size() / 64;  // a chunk holds one process
  }

  // In a sorted timeline one device follows the other: a chunk does not reach back in time, so that
  // a reader that wants the beginning of a recording finds it by the chunks' base times.
  template <class Event>
  bool ends_chunk(const std::vector<Event>& all, std::size_t first, std::size_t i) const {
    if (i + 1 == all.size() || (i + 1) % kEventsPerPeriod == 0) return true;
    if constexpr (std::is_same_v<Event, Activity>)
      return all[i + 1].device != all[i].device && all[i + 1].start_ns < all[first].start_ns;
    return false;
  }

  void launches() {
    wire::LaunchEncoder encoder;
    const std::vector<Activity>& all = profile_.timeline.activities;
    std::size_t first = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % kEventsPerPeriod == 0) seal(false);
      encoder.add(all[i].row, all[i].stream, all[i].start_ns, all[i].duration_ns);
      if (!ends_chunk(all, first, i) && all[i + 1].process == all[i].process) continue;
      wire::append_chunk(out_, ChunkType::kLaunches, encoder.finish(all[i].process));
      first = i + 1;
    }
  }

  template <class EventEncoder, class Event>
  void events(ChunkType type, const std::vector<Event>& all) {
    EventEncoder encoder;
    std::size_t first = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % kEventsPerPeriod == 0) seal(false);
      encoder.add(all[i]);
      if (!ends_chunk(all, first, i)) continue;
      wire::append_chunk(out_, type, encoder.finish());
      first = i + 1;
    }
  }

  // In the timeline's order, so that names keep their numbers; 0 is "" and not written.
  void names() {
    const std::vector<std::string>& names = profile_.timeline.names;
    for (std::size_t first = 1; first < names.size(); first += kEventsPerPeriod) {
      const std::size_t last = std::min(first + kEventsPerPeriod, names.size());
      Encoder payload;
      payload.varint(last - first);
      for (std::size_t i = first; i < last; ++i) payload.varint(strings_.id(names[i]));
      strings_.append_new(out_);
      wire::append_chunk(out_, ChunkType::kNames, payload.bytes());
    }
  }

  const Profile& profile_;
  Sink sink_;
  Strings strings_;
  std::string out_;
  std::uint64_t flushed_ = 0;
  Status failure_;
  std::int64_t end_ns_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace

std::string encode_profile(const Profile& profile) {
  std::string bytes;
  (void)Writer(profile, [&](std::string_view piece) {
    bytes += piece;
    return Status::ok();
  }).write();
  return bytes;
}

Status write_profile(const std::string& path, const Profile& profile) {
  PURLIN_ASSIGN(AtomicFile file, AtomicFile::create(path));
  PURLIN_TRY(Writer(profile, [&](std::string_view piece) { return file.append(piece); }).write());
  return file.commit();
}

}  // namespace purlin::profile
