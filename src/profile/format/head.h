// SPDX-License-Identifier: Apache-2.0
// HeadReader: the chunks of a profile file that are not events, into a Profile. Memory is bounded
// for all contents: by the file's size times a small factor, and by the budgets in head.cc.
// One owner, one file. False means that the chunk makes no sense.
#pragma once

#include "model/profile/profile.h"
#include "profile/format/wire.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::profile {

constexpr std::size_t kMaxDevices = 4096;
constexpr std::size_t kMaxUnnamedProcesses = 4096;  // that events name and META does not
constexpr std::size_t kMaxSketchBuckets = std::size_t{64} << 20;  // 512 MB over a whole file

class HeadReader {
 public:
  explicit HeadReader(Profile& profile, std::size_t max_sketch_buckets = kMaxSketchBuckets);
  bool decode(std::uint16_t type, std::uint16_t version, std::string_view payload);
  // Where the caller has taken the sketches away: others may take their place.
  void renew_buckets() { bucket_budget_ = max_sketch_buckets_; }
  // After the last chunk: gives rows their build, notes what was skipped.
  bool finish();

 private:
  bool meta(std::string_view payload);
  bool strings(wire::Decoder in);
  bool kernels(wire::Decoder in);
  bool sketches(wire::Decoder in, std::uint16_t version);
  bool copies(wire::Decoder in, std::uint16_t version);
  bool origins(wire::Decoder in);
  bool waits(wire::Decoder in, std::uint16_t version);
  bool coverage(std::string_view payload);
  bool details(wire::Decoder in);
  bool names(wire::Decoder in);
  bool stall_sites(wire::Decoder in);
  bool stall_function(wire::Decoder& in);
  bool stall_text(std::uint32_t id, std::vector<std::string>& texts,
                  std::map<std::uint32_t, std::uint32_t>& known, std::uint32_t& index);
  bool take_text(std::size_t bytes);
  bool merge(Sketch& into, const Sketch& from);
  bool string(std::uint32_t id, std::string_view& text) const;
  bool optional_string(std::uint32_t id, std::string_view& text) const;  // 0 = none, else id + 1

  Profile& profile_;
  std::string text_;                 // all strings of the file, one after the other
  std::vector<std::uint64_t> ends_;  // of each in text_
  std::vector<bool> own_build_;      // of rows: given by the row, not by the environment
  std::map<std::pair<std::string, int>, std::size_t> copy_rows_;
  const std::size_t max_sketch_buckets_;
  std::size_t bucket_budget_, text_budget_;
  std::map<std::uint32_t, std::uint32_t> stall_files_, stall_reasons_;  // by string id
  std::size_t stall_sites_ = 0;
  std::size_t unknown_chunks_ = 0;
  bool converted_ = false;  // sketches of version 1
};

}  // namespace purlin::profile
