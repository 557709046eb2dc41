// SPDX-License-Identifier: Apache-2.0
#include "profile/format/head.h"

#include "profile/format/documents.h"
#include "profile/format/merge.h"
#include "profile/format/stall_sites.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace purlin::profile {
namespace {

using wire::ChunkType;

constexpr std::size_t kMaxText = std::size_t{512} << 20;  // of rows and names, which may share it
constexpr std::size_t kMaxRows = std::size_t{1} << 23;
constexpr std::size_t kMaxNames = std::size_t{1} << 25;
constexpr std::size_t kMaxWaitKinds = 64;
constexpr std::size_t kMaxCounters = 20'000;              // of one row
constexpr std::size_t kMaxJson = std::size_t{128} << 20;  // a few hundred thousand processes
constexpr std::size_t kMaxStallReasons = 256;
constexpr std::uint32_t kMaxDeviceIndex = kMaxDevices - 1;

}  // namespace

HeadReader::HeadReader(Profile& profile, std::size_t max_sketch_buckets)
    : profile_(profile),
      max_sketch_buckets_(max_sketch_buckets),
      bucket_budget_(max_sketch_buckets),
      text_budget_(kMaxText) {}

bool HeadReader::meta(std::string_view payload) {
  if (payload.size() > kMaxJson) return false;
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
  if (json.find("labels") != nullptr) profile_.labels = labels_from_json(json["labels"]);
  if (json.find("source") != nullptr) profile_.source = json["source"].as_string();
  if (json.find("data_flow") != nullptr)
    profile_.data_flow = data_flow_from_json(json["data_flow"]);
  const Json& timeline = json["timeline"];
  profile_.timeline.begin_ns = timeline["begin_ns"].as_int(profile_.timeline.begin_ns);
  profile_.timeline.end_ns = timeline["end_ns"].as_int(profile_.timeline.end_ns);
  if (timeline.find("left_out") != nullptr)
    profile_.timeline.left_out =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, timeline["left_out"].as_int()));
  return true;
}

bool HeadReader::take_text(std::size_t bytes) {
  if (bytes > text_budget_) return false;
  text_budget_ -= bytes;
  return true;
}

bool HeadReader::string(std::uint32_t id, std::string_view& text) const {
  if (id >= ends_.size()) return false;
  const std::uint64_t begin = id == 0 ? 0 : ends_[id - 1];
  text = std::string_view(text_).substr(begin, ends_[id] - begin);
  return true;
}

bool HeadReader::optional_string(std::uint32_t id, std::string_view& text) const {
  text = {};
  return id == 0 || string(id - 1, text);
}

bool HeadReader::strings(wire::Decoder in) {
  const std::size_t count = in.count();
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    text_ += in.text();
    ends_.push_back(text_.size());
  }
  return !in.failed();
}

bool HeadReader::kernels(wire::Decoder in) {
  const std::size_t count = in.count(wire::kMinDefinitionBytes);
  for (std::size_t i = 0; i < count; ++i) {
    const wire::KernelDefinition definition = wire::decode_definition(in);
    std::string_view name, op, shape;
    if (in.failed() || !string(definition.name, name) || !optional_string(definition.op, op) ||
        !optional_string(definition.shape, shape) || definition.device > kMaxDeviceIndex ||
        profile_.kernels.size() >= kMaxRows || !take_text(name.size() + op.size() + shape.size()))
      return false;
    KernelRow& row = profile_.kernels.emplace_back();
    row.name = name;
    row.op = op;
    row.shape = shape;
    row.launch.grid = definition.grid;
    row.launch.block = definition.block;
    row.launch.cluster = definition.cluster;
    row.launch.dynamic_shared_bytes = definition.dynamic_shared_bytes;
    row.static_shared_bytes = definition.static_shared_bytes;
    row.registers = definition.registers;
    row.local_bytes = definition.local_bytes;
    row.device = static_cast<int>(definition.device);
  }
  return !in.failed();
}

// Of two far apart the sum spans what lies between: that is of the budget, too.
bool HeadReader::merge(Sketch& into, const Sketch& from) {
  const std::size_t before = into.buckets().size() + from.buckets().size();
  into.merge(from);
  const std::size_t after = into.buckets().size();
  const std::size_t spanned = after > before ? after - before : 0;
  if (spanned > bucket_budget_) return false;
  bucket_budget_ -= spanned;
  return true;
}

bool HeadReader::sketches(wire::Decoder in, std::uint16_t version) {
  const std::size_t count = in.count(18);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t kernel = in.varint32();
    const auto first = static_cast<std::int64_t>(in.fixed64());
    const auto last = static_cast<std::int64_t>(in.fixed64());
    Sketch sketch;
    if (!wire::decode(in, sketch, bucket_budget_, version) || kernel >= profile_.kernels.size())
      return false;
    if (sketch.empty()) continue;
    KernelRow& row = profile_.kernels[kernel];
    row.first_ns = row.duration.empty() ? first : std::min(row.first_ns, first);
    row.last_ns = row.duration.empty() ? last : std::max(row.last_ns, last);
    if (!merge(row.duration, sketch)) return false;
  }
  return !in.failed();
}

bool HeadReader::copies(wire::Decoder in, std::uint16_t version) {
  const std::size_t count = in.count(11);
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view kind;
    const bool named = string(in.varint32(), kind);
    const std::uint32_t device = in.varint32();
    const double bytes = in.real();
    Sketch sketch;
    if (!wire::decode(in, sketch, bucket_budget_, version) || !named || device > kMaxDeviceIndex ||
        !(bytes >= 0 && bytes < 1e30))
      return false;
    const auto [position, added] = copy_rows_.try_emplace(
        {std::string(kind), static_cast<int>(device)}, profile_.copies.size());
    if (added) {
      if (!take_text(2 * kind.size())) return false;
      profile_.copies.push_back({std::string(kind), static_cast<int>(device), 0, {}});
    }
    CopyRow& row = profile_.copies[position->second];
    row.bytes += bytes;
    if (!merge(row.duration, sketch)) return false;
  }
  return !in.failed();
}

bool HeadReader::origins(wire::Decoder in) {
  const std::size_t count = in.count(2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t kernel = in.varint32(), origin = in.varint32();
    if (in.failed() || kernel >= profile_.kernels.size()) return false;
    // One that a newer Purlin tells apart is not one of ours.
    if (origin == 1) profile_.kernels[kernel].origin = LaunchOrigin::kGraph;
  }
  return !in.failed();
}

bool HeadReader::waits(wire::Decoder in, std::uint16_t version) {
  const std::size_t count = in.count(2);
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view kind;
    const bool named = string(in.varint32(), kind);
    Sketch sketch;
    if (!wire::decode(in, sketch, bucket_budget_, version) || !named) return false;
    const auto known = std::find_if(profile_.waits.begin(), profile_.waits.end(),
                                    [&](const WaitRow& row) { return row.kind == kind; });
    if (known == profile_.waits.end()) {
      if (profile_.waits.size() >= kMaxWaitKinds || !take_text(kind.size())) return false;
      profile_.waits.push_back({std::string(kind), std::move(sketch)});
    } else if (!merge(known->duration, sketch)) {
      return false;
    }
  }
  return !in.failed();
}

// The details of a row in a later period replace earlier ones; counters add.
bool HeadReader::details(wire::Decoder in) {
  const std::size_t count = in.count(4);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t kernel = in.varint32();
    std::string_view dtype, build;
    const bool typed = optional_string(in.varint32(), dtype);
    const std::uint32_t build_id = in.varint32();
    const std::size_t counters = in.count(17);
    if (in.failed() || kernel >= profile_.kernels.size() || !typed ||
        !optional_string(build_id, build) || !take_text(dtype.size() + build.size()))
      return false;
    KernelRow& row = profile_.kernels[kernel];
    if (!dtype.empty()) row.dtype = dtype;
    if (build_id != 0) {
      row.build = build;
      own_build_.resize(std::max<std::size_t>(own_build_.size(), kernel + std::size_t{1}));
      own_build_[kernel] = true;
    }
    if (row.counters.size() + counters > kMaxCounters) return false;
    std::vector<Counter> read;
    for (std::size_t k = 0; k < counters; ++k) {
      std::string_view name;
      const bool named = string(in.varint32(), name);
      const double value = in.real(), launches = in.real();
      if (in.failed() || !named || !std::isfinite(value) || !std::isfinite(launches) ||
          launches < 0 || !take_text(name.size() + sizeof(Counter)))
        return false;
      read.push_back({std::string(name), value, launches});
    }
    merge_counters(row.counters, read);
  }
  return !in.failed();
}

bool HeadReader::names(wire::Decoder in) {
  const std::size_t count = in.count();
  std::vector<std::string>& names = profile_.timeline.names;
  if (count > kMaxNames - std::min(names.size(), kMaxNames)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view name;
    if (!string(in.varint32(), name) || in.failed() || !take_text(name.size())) return false;
    names.emplace_back(name);
  }
  return !in.failed();
}

bool HeadReader::stall_text(std::uint32_t id, std::vector<std::string>& texts,
                            std::map<std::uint32_t, std::uint32_t>& known, std::uint32_t& index) {
  const auto position = known.find(id);
  if (position != known.end()) return index = position->second, true;
  std::string_view text;
  if (!string(id, text) || !take_text(text.size())) return false;
  // Two ids may be of one text; few enough are to be seen here for a search.
  const auto same =
      texts.size() > kMaxStallReasons ? texts.end() : std::find(texts.begin(), texts.end(), text);
  index = static_cast<std::uint32_t>(same - texts.begin());
  if (same == texts.end()) texts.emplace_back(text);
  known.emplace(id, index);
  return true;
}

bool HeadReader::stall_function(wire::Decoder& in) {
  const wire::StallOwner owner = wire::decode_stall_owner(in);
  const std::size_t places = in.count(wire::kMinPlaceBytes);
  std::string_view name, build;
  if (in.failed() || !string(owner.name, name) || !optional_string(owner.build, build) ||
      owner.device > kMaxDeviceIndex || places > SampledStalls::kMaxSites ||
      !take_text(name.size() + build.size() + sizeof(StallFunction)))
    return false;
  SampledStalls& stalls = profile_.stalls;
  stall_sites_ += places;
  if (stall_sites_ > 2 * SampledStalls::kMaxSites) {  // periods repeat them
    stalls.combine();
    stall_sites_ = SampledStalls::kMaxSites + places;
  }
  StallFunction& function = stalls.functions.emplace_back();
  function.name = name;
  function.device = static_cast<int>(owner.device);
  function.build = owner.build != 0 ? build : std::string_view(profile_.environment.build);
  function.code = owner.code;
  for (std::size_t i = 0; i < places; ++i) {
    const wire::StallPlace place = wire::decode_stall_place(in);
    const std::size_t counts = in.count(wire::kMinCountBytes);
    StallSite& site = function.sites.emplace_back();
    site.offset = place.offset;
    site.line = place.line;
    if (counts > kMaxStallReasons ||
        (place.file != 0 && !stall_text(place.file - 1, stalls.files, stall_files_, site.file)))
      return false;
    for (std::size_t k = 0; k < counts; ++k) {
      std::uint32_t reason = 0;
      const std::uint32_t id = in.varint32();
      const auto samples = static_cast<double>(in.varint());
      if (in.failed() || !stall_text(id, stalls.reasons, stall_reasons_, reason) ||
          stalls.reasons.size() > kMaxStallReasons)
        return false;
      site.add(reason, samples);
    }
  }
  return !in.failed();
}

bool HeadReader::stall_sites(wire::Decoder in) {
  const wire::StallWindows windows = wire::decode_stall_windows(in);
  const std::size_t functions = in.count(wire::kMinOwnerBytes);
  if (in.failed()) return false;
  SampledStalls& stalls = profile_.stalls;
  stalls.windows += static_cast<double>(windows.windows);
  stalls.sampled_ns += static_cast<double>(windows.sampled_ns);
  stalls.widen_period(windows.least_period, windows.most_period);
  stalls.dropped += static_cast<double>(windows.dropped);
  stalls.untold += static_cast<double>(windows.untold);
  for (std::size_t i = 0; i < functions; ++i)
    if (!stall_function(in)) return false;
  return true;
}

bool HeadReader::coverage(std::string_view payload) {
  if (payload.size() > kMaxJson) return false;
  const Result<Json> parsed = Json::parse(payload);
  if (!parsed.is_ok()) return false;
  profile_.coverage = coverage_from_json(*parsed);
  return true;
}

bool HeadReader::decode(std::uint16_t type, std::uint16_t version, std::string_view payload) {
  const wire::Decoder in(payload);
  const std::uint16_t newest = wire::version_of(static_cast<ChunkType>(type));
  converted_ = converted_ || (version == 1 && newest == wire::kSketchVersion);
  if (version >= 1 && version <= newest) switch (static_cast<ChunkType>(type)) {
      case ChunkType::kMeta:
        return meta(payload);
      case ChunkType::kStrings:
        return strings(in);
      case ChunkType::kKernels:
        return kernels(in);
      case ChunkType::kSketches:
        return sketches(in, version);
      case ChunkType::kCopies:
        return copies(in, version);
      case ChunkType::kCoverage:
        return coverage(payload);
      case ChunkType::kDetails:
        return details(in);
      case ChunkType::kNames:
        return names(in);
      case ChunkType::kStallSites:
        return stall_sites(in);
      case ChunkType::kOrigins:
        return origins(in);
      case ChunkType::kWaits:
        return waits(in, version);
      case ChunkType::kSeal:
      case ChunkType::kLaunches:  // events are not ours
      case ChunkType::kRanges:
      case ChunkType::kActivities:
      case ChunkType::kCalls:
      case ChunkType::kOps:
        return true;
    }
  ++unknown_chunks_;  // of a newer Purlin: the rest is still good
  return true;
}

bool HeadReader::finish() {
  profile_.stalls.combine();
  const std::string& build = profile_.environment.build;
  own_build_.resize(profile_.kernels.size());
  for (std::size_t i = 0; i < profile_.kernels.size(); ++i) {
    if (own_build_[i]) continue;
    if (!take_text(build.size())) return false;
    profile_.kernels[i].build = build;
  }
  if (converted_)
    profile_.coverage.notes.push_back(
        {"converted_sketches",
         fmt::format("durations were recorded in the coarser buckets of an older Purlin and "
                     "converted: their quantiles are within {:g} % instead of {:.2g} %",
                     100 * wire::kConvertedError, 100 * Sketch::kRelativeError),
         0, 0});
  if (unknown_chunks_ > 0)
    profile_.coverage.notes.push_back(
        {"unknown_chunks", "parts written by a newer Purlin were skipped; read it with that one",
         static_cast<double>(unknown_chunks_), 0});
  return true;
}

}  // namespace purlin::profile
