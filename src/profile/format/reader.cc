// SPDX-License-Identifier: Apache-2.0
// Two passes: the first follows chunk headers and checksums to the last seal; the second decodes
// what that seal covers. A checksum that fails ends the first pass and is never an error by itself:
// it is what a killed writer leaves behind.
#include "base/files.h"
#include "profile/format/documents.h"
#include "profile/format/events.h"
#include "profile/format/file.h"
#include "profile/format/merge.h"
#include "profile/format/wire.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace purlin::profile {
namespace {

using wire::ChunkType;

constexpr std::size_t kMaxFileBytes = std::size_t{4} << 30;
constexpr std::size_t kMaxDevices = 4096;
constexpr std::size_t kMaxProcesses = 1 << 20;
constexpr std::size_t kMaxCounters = 10'000;                      // of one row
constexpr std::size_t kMaxRowTextBytes = std::size_t{512} << 20;  // rows and names share texts
constexpr std::size_t kMaxSketchBuckets = std::size_t{64} << 20;  // 512 MB over a whole file

struct Chunk {
  std::size_t offset = 0;
  std::uint16_t type = 0, version = 0;
  std::string_view payload;
};

struct Scan {
  std::vector<Chunk> chunks;  // up to and with the last seal
  std::uint64_t seals = 0;
  wire::Seal last;
  std::size_t end = 0;  // where the last seal ends
};

std::optional<Chunk> chunk_at(std::string_view bytes, std::size_t offset) {
  if (bytes.size() - offset < wire::kChunkHeaderBytes) return std::nullopt;
  wire::Decoder header(bytes.substr(offset, wire::kChunkHeaderBytes));
  Chunk chunk;
  chunk.offset = offset;
  chunk.type = header.fixed16();
  chunk.version = header.fixed16();
  const std::size_t length = header.fixed32();
  const std::uint64_t sum = header.fixed64();
  if (length > bytes.size() - offset - wire::kChunkHeaderBytes) return std::nullopt;
  chunk.payload = bytes.substr(offset + wire::kChunkHeaderBytes, length);
  if (wire::checksum(chunk.type, chunk.version, chunk.payload) != sum) return std::nullopt;
  return chunk;
}

Scan scan(std::string_view bytes) {
  Scan result;
  std::vector<Chunk> chunks;
  std::size_t sealed = 0;
  std::size_t offset = wire::kHeaderBytes;
  while (const std::optional<Chunk> chunk = chunk_at(bytes, offset)) {
    chunks.push_back(*chunk);
    offset += wire::kChunkHeaderBytes + chunk->payload.size();
    wire::Seal seal;
    if (chunk->type != static_cast<std::uint16_t>(ChunkType::kSeal)) continue;
    // The offset guards against a seal that was copied from elsewhere.
    if (!wire::decode(chunk->payload, seal) || seal.offset != chunk->offset) break;
    ++result.seals;
    result.last = seal;
    result.end = offset;
    sealed = chunks.size();
  }
  chunks.resize(sealed);
  result.chunks = std::move(chunks);
  return result;
}

class Reader {
 public:
  Result<Profile> read(std::string_view bytes);

 private:
  bool decode_chunk(const Chunk& chunk);
  bool meta(std::string_view payload);
  bool strings(wire::Decoder in);
  bool kernels(wire::Decoder in);
  bool sketches(wire::Decoder in);
  bool copies(wire::Decoder in);
  bool launches(std::string_view payload);
  bool coverage(std::string_view payload);
  bool details(wire::Decoder in);
  bool names(wire::Decoder in);
  bool ranges(std::string_view payload);
  bool activities(std::string_view payload);
  bool calls(std::string_view payload);
  bool ops(std::string_view payload);
  bool mend();
  bool named(std::uint32_t name) const { return name < profile_.timeline.names.size(); }
  const std::string* string(std::uint32_t id) const {
    return id < strings_.size() ? &strings_[id] : nullptr;
  }
  // 0 = none, else id + 1.
  const std::string* optional_string(std::uint32_t id) const {
    static const std::string none;
    return id == 0 ? &none : string(id - 1);
  }

  Profile profile_;
  std::vector<std::string> strings_;
  std::vector<bool> own_build_;  // of rows: told by the row, not by the environment
  std::map<std::pair<std::string, int>, std::size_t> copy_rows_;
  std::size_t budget_ = kMaxSketchBuckets, text_budget_ = kMaxRowTextBytes;
  std::size_t unknown_chunks_ = 0;
};

bool Reader::meta(std::string_view payload) {
  const Result<Json> parsed = Json::parse(payload);
  if (!parsed.is_ok() || (*parsed)["schema"].as_string() != "purlin.profile/1") return false;
  const Json& json = *parsed;
  if (json.find("environment") != nullptr)
    profile_.environment = environment_from_json(json["environment"]);
  if (json.find("processes") != nullptr) {
    profile_.processes.clear();
    for (const Json& process : json["processes"].items())
      profile_.processes.push_back(process_from_json(process));
  }
  if (json.find("command") != nullptr) profile_.command = json["command"].as_string();
  profile_.wall_ns = json["wall_ns"].as_int(profile_.wall_ns);
  profile_.exit_code = static_cast<int>(json["exit_code"].as_int(profile_.exit_code));
  profile_.partial = json["partial"].as_bool(profile_.partial);
  if (json.find("source") != nullptr) profile_.source = json["source"].as_string();
  const Json& timeline = json["timeline"];
  profile_.timeline.begin_ns = timeline["begin_ns"].as_int(profile_.timeline.begin_ns);
  profile_.timeline.end_ns = timeline["end_ns"].as_int(profile_.timeline.end_ns);
  if (timeline.find("left_out") != nullptr)
    profile_.timeline.left_out =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, timeline["left_out"].as_int()));
  return true;
}

bool Reader::strings(wire::Decoder in) {
  const std::size_t count = in.count();
  for (std::size_t i = 0; i < count && !in.failed(); ++i) strings_.emplace_back(in.text());
  return !in.failed();
}

bool Reader::kernels(wire::Decoder in) {
  const std::size_t count = in.count(wire::kLeastDefinitionBytes);
  for (std::size_t i = 0; i < count; ++i) {
    const wire::KernelDefinition definition = wire::decode_definition(in);
    const std::string* name = string(definition.name);
    const std::string* op = optional_string(definition.op);
    const std::string* shape = optional_string(definition.shape);
    if (in.failed() || name == nullptr || op == nullptr || shape == nullptr) return false;
    const std::size_t text = name->size() + op->size() + shape->size();
    if (text > text_budget_) return false;
    text_budget_ -= text;
    KernelRow row;
    row.name = *name;
    row.op = *op;
    row.shape = *shape;
    row.launch.grid = definition.grid;
    row.launch.block = definition.block;
    row.launch.cluster = definition.cluster;
    row.launch.dynamic_shared_bytes = definition.dynamic_shared_bytes;
    row.static_shared_bytes = definition.static_shared_bytes;
    row.registers = definition.registers;
    row.local_bytes = definition.local_bytes;
    if (definition.device > 1'000'000) return false;
    row.device = static_cast<int>(definition.device);
    profile_.kernels.push_back(std::move(row));
  }
  return !in.failed();
}

bool Reader::sketches(wire::Decoder in) {
  const std::size_t count = in.count(18);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t kernel = in.varint32();
    const auto first = static_cast<std::int64_t>(in.fixed64());
    const auto last = static_cast<std::int64_t>(in.fixed64());
    Sketch sketch;
    if (!wire::decode(in, sketch, budget_) || kernel >= profile_.kernels.size()) return false;
    if (sketch.empty()) continue;
    KernelRow& row = profile_.kernels[kernel];
    row.first_ns = row.duration.empty() ? first : std::min(row.first_ns, first);
    row.last_ns = row.duration.empty() ? last : std::max(row.last_ns, last);
    row.duration.merge(sketch);
  }
  return !in.failed();
}

bool Reader::copies(wire::Decoder in) {
  const std::size_t count = in.count(11);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string* kind = string(in.varint32());
    const std::uint32_t device = in.varint32();
    const double bytes = in.real();
    Sketch sketch;
    if (!wire::decode(in, sketch, budget_) || kind == nullptr || device > 1'000'000 ||
        !(bytes >= 0 && bytes < 1e30))
      return false;
    const auto [position, added] =
        copy_rows_.try_emplace({*kind, static_cast<int>(device)}, profile_.copies.size());
    if (added) profile_.copies.push_back({*kind, static_cast<int>(device), 0, {}});
    CopyRow& row = profile_.copies[position->second];
    row.bytes += bytes;
    row.duration.merge(sketch);
  }
  return !in.failed();
}

bool Reader::launches(std::string_view payload) {
  wire::LaunchDecoder in(payload);
  const std::size_t count = in.count();
  if (in.failed()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const wire::Launch launch = in.next();
    if (in.failed() || launch.kernel >= profile_.kernels.size()) return false;
    Activity activity;
    activity.start_ns = launch.start_ns;
    activity.duration_ns = launch.duration_ns;
    activity.row = launch.kernel;
    activity.process = in.process();
    activity.stream = launch.stream;
    activity.device =
        static_cast<std::uint16_t>(std::min(profile_.kernels[launch.kernel].device, 0xFFFF));
    profile_.timeline.activities.push_back(activity);
  }
  return true;
}

// What a later period says of a row replaces what an earlier one said; counters add.
bool Reader::details(wire::Decoder in) {
  const std::size_t count = in.count(4);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t kernel = in.varint32();
    const std::string* dtype = optional_string(in.varint32());
    const std::uint32_t build_id = in.varint32();
    const std::string* build = optional_string(build_id);
    const std::size_t counters = in.count(17);
    if (in.failed() || kernel >= profile_.kernels.size() || dtype == nullptr || build == nullptr)
      return false;
    KernelRow& row = profile_.kernels[kernel];
    std::size_t text = dtype->size() + build->size();
    if (!dtype->empty()) row.dtype = *dtype;
    if (build_id != 0) {
      row.build = *build;
      own_build_.resize(std::max<std::size_t>(own_build_.size(), kernel + std::size_t{1}));
      own_build_[kernel] = true;
    }
    std::vector<Counter> read;
    for (std::size_t k = 0; k < counters; ++k) {
      const std::string* name = string(in.varint32());
      const double value = in.real(), launches = in.real();
      if (in.failed() || name == nullptr || !std::isfinite(value) || !std::isfinite(launches) ||
          launches < 0)
        return false;
      text += name->size() + sizeof(Counter);
      if (text > text_budget_) return false;
      read.push_back({*name, value, launches});
    }
    if (text > text_budget_ || row.counters.size() + read.size() > kMaxCounters) return false;
    text_budget_ -= text;
    merge_counters(row.counters, read);
  }
  return !in.failed();
}

bool Reader::names(wire::Decoder in) {
  const std::size_t count = in.count();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string* name = string(in.varint32());
    if (in.failed() || name == nullptr || name->size() > text_budget_) return false;
    text_budget_ -= name->size();
    profile_.timeline.names.push_back(*name);
  }
  return !in.failed();
}

bool Reader::ranges(std::string_view payload) {
  wire::RangeDecoder in(payload);
  Range range;
  for (std::size_t i = 0; i < in.count(); ++i) {
    if (!in.next(range) || !named(range.name)) return false;
    profile_.timeline.ranges.push_back(range);
  }
  return !in.failed();
}

bool Reader::activities(std::string_view payload) {
  wire::ActivityDecoder in(payload);
  Activity activity;
  for (std::size_t i = 0; i < in.count(); ++i) {
    if (!in.next(activity)) return false;
    const std::size_t rows =
        activity.kind == ActivityKind::kKernel ? profile_.kernels.size() : profile_.copies.size();
    if (activity.row >= rows) return false;
    profile_.timeline.activities.push_back(activity);
  }
  return !in.failed();
}

bool Reader::calls(std::string_view payload) {
  wire::CallDecoder in(payload);
  Call call;
  for (std::size_t i = 0; i < in.count(); ++i) {
    if (!in.next(call) || !named(call.name)) return false;
    profile_.timeline.calls.push_back(call);
  }
  return !in.failed();
}

bool Reader::ops(std::string_view payload) {
  wire::OpDecoder in(payload);
  std::vector<Op>& ops = profile_.timeline.ops;
  Op op;
  for (std::size_t i = 0; i < in.count(); ++i) {
    if (ops.size() >= kNone || !in.next(op, static_cast<std::uint32_t>(ops.size()))) return false;
    if (!named(op.name) || !named(op.shape) || !named(op.dtype)) return false;
    ops.push_back(op);
  }
  return !in.failed();
}

// Indices into what comes later in the file, or was cut off.
bool Reader::mend() {
  Timeline& timeline = profile_.timeline;
  std::size_t devices = 0, processes = 0;
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
  // Rows may be sealed before their device could be described.
  for (const KernelRow& row : profile_.kernels)
    devices = std::max(devices, static_cast<std::size_t>(row.device) + 1);
  for (const CopyRow& row : profile_.copies)
    devices = std::max(devices, static_cast<std::size_t>(row.device) + 1);
  if (devices > kMaxDevices || processes > kMaxProcesses) return false;
  auto& known = profile_.environment.devices;
  if (known.size() < devices) known.resize(devices);
  if (profile_.processes.size() < processes) profile_.processes.resize(processes);
  const std::string& build = profile_.environment.build;
  if (build.size() > text_budget_ / std::max<std::size_t>(profile_.kernels.size(), 1)) return false;
  own_build_.resize(profile_.kernels.size());
  for (std::size_t i = 0; i < profile_.kernels.size(); ++i)
    if (!own_build_[i]) profile_.kernels[i].build = build;
  return true;
}

bool Reader::coverage(std::string_view payload) {
  const Result<Json> parsed = Json::parse(payload);
  if (!parsed.is_ok()) return false;
  profile_.coverage = coverage_from_json(*parsed);
  return true;
}

bool Reader::decode_chunk(const Chunk& chunk) {
  if (chunk.version != 1) return ++unknown_chunks_, true;
  switch (static_cast<ChunkType>(chunk.type)) {
    case ChunkType::kMeta:
      return meta(chunk.payload);
    case ChunkType::kStrings:
      return strings(wire::Decoder(chunk.payload));
    case ChunkType::kKernels:
      return kernels(wire::Decoder(chunk.payload));
    case ChunkType::kSketches:
      return sketches(wire::Decoder(chunk.payload));
    case ChunkType::kCopies:
      return copies(wire::Decoder(chunk.payload));
    case ChunkType::kLaunches:
      return launches(chunk.payload);
    case ChunkType::kCoverage:
      return coverage(chunk.payload);
    case ChunkType::kSeal:
      return true;
    case ChunkType::kDetails:
      return details(wire::Decoder(chunk.payload));
    case ChunkType::kNames:
      return names(wire::Decoder(chunk.payload));
    case ChunkType::kRanges:
      return ranges(chunk.payload);
    case ChunkType::kActivities:
      return activities(chunk.payload);
    case ChunkType::kCalls:
      return calls(chunk.payload);
    case ChunkType::kOps:
      return ops(chunk.payload);
  }
  ++unknown_chunks_;  // of a newer Purlin: the rest is still good
  return true;
}

Result<Profile> Reader::read(std::string_view bytes) {
  if (bytes.size() < wire::kHeaderBytes || bytes.substr(0, wire::kMagic.size()) != wire::kMagic)
    return error(Code::kInvalid, "not a Purlin profile (it does not start with 'PURLINPF')");
  wire::Decoder header(bytes.substr(wire::kMagic.size(), wire::kHeaderBytes));
  const int version = header.fixed16();
  if (version != wire::kFormatVersion)
    return error(Code::kCorrupt,
                 "profile format version {} is not known to this Purlin (it reads version {}); "
                 "use the Purlin that wrote it, or a newer one",
                 version, wire::kFormatVersion);
  const Scan scanned = scan(bytes);
  if (scanned.seals == 0)
    return error(Code::kCorrupt,
                 "no complete period: damaged or cut short before the first seal (offset {})",
                 wire::kHeaderBytes);
  for (const Chunk& chunk : scanned.chunks)
    if (!decode_chunk(chunk))
      return error(Code::kCorrupt, "damaged: chunk of type {} at offset {} makes no sense",
                   chunk.type, chunk.offset);
  if (!mend())
    return error(Code::kCorrupt,
                 "damaged: it names more than {} devices or {} processes, or has a build label too "
                 "long to be one",
                 kMaxDevices, kMaxProcesses);
  const bool complete = scanned.last.final && scanned.end == bytes.size();
  profile_.partial = profile_.partial || !complete;
  // A capture library's file holds one process, whose end is its last seal.
  if (profile_.processes.size() == 1 && profile_.processes[0].exit_seals == 0) {
    ProcessInfo& process = profile_.processes[0];
    process.end_ns = scanned.last.wall_ns;
    process.complete = scanned.last.final;
    process.exit_seals = static_cast<int>(std::min<std::uint64_t>(scanned.seals, 1u << 30));
  }
  if (unknown_chunks_ > 0)
    profile_.coverage.notes.push_back(
        {"unknown_chunks", "parts written by a newer Purlin were skipped; read it with that one",
         static_cast<double>(unknown_chunks_), 0});
  return std::move(profile_);
}

}  // namespace

Result<Profile> decode_profile(std::string_view bytes) { return Reader().read(bytes); }

Result<Profile> read_profile(const std::string& path) {
  PURLIN_ASSIGN(const std::string bytes, read_file(path, kMaxFileBytes));
  Result<Profile> profile = decode_profile(bytes);
  if (!profile.is_ok()) return profile.status().with_context(path);
  return profile;
}

}  // namespace purlin::profile
