// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "model/document.h"
#include "profile/format/documents.h"
#include "profile/format/file.h"
#include "profile/format/wire.h"

#include <algorithm>
#include <map>

namespace purlin::profile {
namespace {

using wire::ChunkType;
using wire::Encoder;

constexpr std::size_t kLaunchesPerChunk = 1 << 16;

// Ids in the order of first use.
class Strings {
 public:
  std::uint32_t id(const std::string& text) {
    const auto [position, added] =
        ids_.try_emplace(text, static_cast<std::uint32_t>(ordered_.size()));
    if (added) ordered_.push_back(text);
    return position->second;
  }
  std::uint32_t optional_id(const std::string& text) { return text.empty() ? 0 : id(text) + 1; }
  std::string payload() const {
    Encoder out;
    out.varint(ordered_.size());
    for (const std::string& text : ordered_) out.text(text);
    return out.bytes();
  }

 private:
  std::map<std::string, std::uint32_t> ids_;
  std::vector<std::string> ordered_;
};

Json meta(const Profile& profile) {
  Json document = new_document("purlin.profile/1", profile.environment);
  document.set("command", profile.command);
  document.set("wall_ns", profile.wall_ns);
  document.set("exit_code", profile.exit_code);
  document.set("partial", profile.partial);
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

void append_launches(std::string& out, const Profile& profile) {
  wire::LaunchEncoder encoder;
  for (std::size_t i = 0; i < profile.launches.size(); ++i) {
    const LaunchRecord& launch = profile.launches[i];
    encoder.add(launch.kernel, launch.stream, launch.start_ns, launch.duration_ns);
    const bool last = i + 1 == profile.launches.size();
    if (last || encoder.count() == kLaunchesPerChunk ||
        profile.launches[i + 1].process != launch.process)
      wire::append_chunk(out, ChunkType::kLaunches, encoder.finish(launch.process));
  }
}

}  // namespace

std::string encode_profile(const Profile& profile) {
  Strings strings;
  Encoder kernels, sketches, copies;
  kernels.varint(profile.kernels.size());
  sketches.varint(profile.kernels.size());
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const KernelRow& row = profile.kernels[i];
    wire::encode(kernels, define(row, strings));
    sketches.varint(i);
    sketches.fixed64(static_cast<std::uint64_t>(row.first_ns));
    sketches.fixed64(static_cast<std::uint64_t>(row.last_ns));
    wire::encode(sketches, row.duration);
  }
  copies.varint(profile.copies.size());
  for (const CopyRow& row : profile.copies) {
    copies.varint(strings.id(row.kind));
    copies.varint(static_cast<std::uint64_t>(std::max(row.device, 0)));
    copies.real(row.bytes);
    wire::encode(copies, row.duration);
  }
  std::string out;
  wire::append_header(out);
  wire::append_chunk(out, ChunkType::kMeta, meta(profile).dump());
  wire::append_chunk(out, ChunkType::kStrings, strings.payload());
  wire::append_chunk(out, ChunkType::kKernels, kernels.bytes());
  wire::append_chunk(out, ChunkType::kSketches, sketches.bytes());
  wire::append_chunk(out, ChunkType::kCopies, copies.bytes());
  append_launches(out, profile);
  wire::append_chunk(out, ChunkType::kCoverage, to_json(profile.coverage).dump());
  std::int64_t end_ns = 0;
  for (const ProcessInfo& process : profile.processes) end_ns = std::max(end_ns, process.end_ns);
  wire::append_chunk(out, ChunkType::kSeal, wire::encode(wire::Seal{1, end_ns, out.size(), true}));
  return out;
}

Status write_profile(const std::string& path, const Profile& profile) {
  return write_atomic(path, encode_profile(profile));
}

}  // namespace purlin::profile
