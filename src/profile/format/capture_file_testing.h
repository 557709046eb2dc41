// SPDX-License-Identifier: Apache-2.0
// CaptureFile: a capture as its library writes it, period by period, for tests and benchmarks.
// One owner; a write that fails ends the program.
#pragma once

#include "base/files.h"
#include "base/json/json.h"
#include "profile/format/wire.h"

#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace purlin::profile {

struct CaptureFileFacts {
  std::int64_t pid = 4711, start_ns = 1'700'000'000'000'000'000;
  std::string layer = "cuda", build = "v1", gpu = "NVIDIA H200", uuid = "GPU-1";
  std::vector<std::pair<std::string, std::string>> labels{};  // "job" -> "4711.0"
};

class CaptureFile {
 public:
  CaptureFile(const std::string& folder, CaptureFileFacts facts = {})
      : facts_(std::move(facts)),
        path_(join_path(folder,
                        fmt::format("{}-{}-{}.plprof", facts_.layer, facts_.pid, facts_.start_ns))),
        fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (fd_ < 0) std::abort();
  }
  ~CaptureFile() { end(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  void launch(const std::string& kernel, double ns, double weight = 1) {
    const auto [found, added] = kernels_.try_emplace(kernel, kernels_.size());
    if (added) new_.push_back(kernel);
    sketches_[static_cast<std::uint32_t>(found->second)].add(ns, weight);
    ++(weight == 1 ? seen_ : sampled_);
  }
  void overhead(double ns) { overhead_ns_ += ns; }
  // A period, as bytes: what a writer that is killed leaves half of.
  std::string period(std::int64_t wall_ns, bool final = false) {
    std::string out;
    if (offset_ == 0) {
      wire::append_header(out);
      wire::append_chunk(out, wire::ChunkType::kMeta, meta());
    }
    append_definitions(out);
    append_sketches(out, wall_ns);
    wire::append_chunk(out, wire::ChunkType::kCoverage, coverage());
    wire::append_chunk(out, wire::ChunkType::kSeal,
                       wire::encode(wire::Seal{++sequence_, wall_ns, offset_ + out.size(), final}));
    return out;
  }
  void write(std::string_view bytes) {
    if (::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      std::abort();
    offset_ += bytes.size();
  }
  void seal(std::int64_t wall_ns, bool final = false) {
    write(period(wall_ns, final));
    if (final) end();
  }
  void end() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  const std::string& path() const { return path_; }

 private:
  std::string meta() const {
    Json labels = Json::object();
    for (const auto& [key, value] : facts_.labels) labels.set(key, value);
    Json process = Json::object({{"pid", facts_.pid},
                                 {"command", "python3 train.py"},
                                 {"layer", facts_.layer},
                                 {"start_ns", facts_.start_ns},
                                 {"labels", std::move(labels)}});
    Json device = Json::object({{"id", "cuda:0"},
                                {"name", facts_.gpu},
                                {"uuid", facts_.uuid},
                                {"driver", "580.65"},
                                {"toolkit", "CUDA 13.0"}});
    Json environment = Json::object({{"devices", Json::array({device})}, {"build", facts_.build}});
    return Json::object({{"schema", "purlin.profile/1"},
                         {"processes", Json::array({process})},
                         {"environment", std::move(environment)}})
        .dump();
  }
  void append_definitions(std::string& out) {
    if (new_.empty()) return;
    wire::Encoder strings, kernels;
    strings.varint(new_.size());
    kernels.varint(new_.size());
    for (const std::string& name : new_) {
      wire::KernelDefinition definition;
      definition.name = static_cast<std::uint32_t>(kernels_.at(name));
      definition.grid = definition.block = definition.cluster = {1, 1, 1};
      strings.text(name);
      wire::encode(kernels, definition);
    }
    new_.clear();
    wire::append_chunk(out, wire::ChunkType::kStrings, strings.bytes());
    wire::append_chunk(out, wire::ChunkType::kKernels, kernels.bytes());
  }
  void append_sketches(std::string& out, std::int64_t wall_ns) {
    wire::Encoder in;
    in.varint(sketches_.size());
    for (const auto& [kernel, sketch] : sketches_) {
      in.varint(kernel);
      in.fixed64(static_cast<std::uint64_t>(wall_ns - 1'000'000));
      in.fixed64(static_cast<std::uint64_t>(wall_ns));
      wire::encode(in, sketch);
    }
    if (!sketches_.empty()) wire::append_chunk(out, wire::ChunkType::kSketches, in.bytes());
    sketches_.clear();
  }
  std::string coverage() const {
    return Json::object({{"launches_seen", seen_},
                         {"launches_sampled_out", sampled_},
                         {"overhead_ns", overhead_ns_}})
        .dump();
  }

  const CaptureFileFacts facts_;
  const std::string path_;
  int fd_ = -1;
  std::uint64_t offset_ = 0, sequence_ = 0;
  double seen_ = 0, sampled_ = 0, overhead_ns_ = 0;
  std::map<std::string, std::size_t> kernels_;
  std::vector<std::string> new_;
  std::map<std::uint32_t, Sketch> sketches_;
};

}  // namespace purlin::profile
