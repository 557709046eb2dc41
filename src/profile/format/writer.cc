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

// What a file that is cut short loses at most, at its end.
constexpr std::size_t kRowsPerPeriod = 1 << 10;
constexpr std::size_t kLaunchesPerPeriod = 1 << 16;

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
  // Those that are new since the last call, as a chunk.
  void append_new(std::string& out) {
    if (written_ == ordered_.size()) return;
    Encoder payload;
    payload.varint(ordered_.size() - written_);
    for (; written_ < ordered_.size(); ++written_) payload.text(ordered_[written_]);
    wire::append_chunk(out, ChunkType::kStrings, payload.bytes());
  }

 private:
  std::map<std::string, std::uint32_t> ids_;
  std::vector<std::string> ordered_;
  std::size_t written_ = 0;
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

// Writes the periods of one file.
class Writer {
 public:
  explicit Writer(const Profile& profile) : profile_(profile) {
    for (const ProcessInfo& process : profile.processes)
      end_ns_ = std::max(end_ns_, process.end_ns);
  }

  // What is needed to make sense of the rest comes first; the timeline, by far the longest, last.
  std::string write() {
    wire::append_header(out_);
    wire::append_chunk(out_, ChunkType::kMeta, meta(profile_).dump());
    wire::append_chunk(out_, ChunkType::kCoverage, to_json(profile_.coverage).dump());
    copies();
    for (std::size_t first = 0; first < profile_.kernels.size(); first += kRowsPerPeriod) {
      if (first > 0) seal(false);
      rows(first, std::min(first + kRowsPerPeriod, profile_.kernels.size()));
    }
    launches();
    seal(true);
    return std::move(out_);
  }

 private:
  void seal(bool final) {
    const wire::Seal seal = {++sequence_, end_ns_, out_.size(), final};
    wire::append_chunk(out_, ChunkType::kSeal, wire::encode(seal));
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
  }

  void rows(std::size_t first, std::size_t last) {
    Encoder kernels, sketches;
    kernels.varint(last - first);
    sketches.varint(last - first);
    for (std::size_t i = first; i < last; ++i) {
      const KernelRow& row = profile_.kernels[i];
      wire::encode(kernels, define(row, strings_));
      sketches.varint(i);
      sketches.fixed64(static_cast<std::uint64_t>(row.first_ns));
      sketches.fixed64(static_cast<std::uint64_t>(row.last_ns));
      wire::encode(sketches, row.duration);
    }
    strings_.append_new(out_);
    wire::append_chunk(out_, ChunkType::kKernels, kernels.bytes());
    wire::append_chunk(out_, ChunkType::kSketches, sketches.bytes());
  }

  void launches() {
    wire::LaunchEncoder encoder;
    std::vector<Activity> all;
    for (const Activity& activity : profile_.timeline.activities)
      if (activity.kind == ActivityKind::kKernel) all.push_back(activity);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % kLaunchesPerPeriod == 0) seal(false);
      encoder.add(all[i].row, all[i].stream, all[i].start_ns, all[i].duration_ns);
      if (i + 1 == all.size() || (i + 1) % kLaunchesPerPeriod == 0 ||
          all[i + 1].process != all[i].process)
        wire::append_chunk(out_, ChunkType::kLaunches, encoder.finish(all[i].process));
    }
  }

  const Profile& profile_;
  Strings strings_;
  std::string out_;
  std::int64_t end_ns_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace

std::string encode_profile(const Profile& profile) { return Writer(profile).write(); }

Status write_profile(const std::string& path, const Profile& profile) {
  return write_atomic(path, encode_profile(profile));
}

}  // namespace purlin::profile
