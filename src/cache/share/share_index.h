// SPDX-License-Identifier: Apache-2.0
// ShareIndex: the one object of a share that changes: which segments there are, and which are gone
// but kept a while for readers that still have an older index. docs/formats/share.md. Value types.
// Failure: kInvalid, kCorrupt when it is of a newer Purlin.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cache {

constexpr std::size_t kMaxIndexBytes = std::size_t{16} << 20;
// Both together fit into those bytes.
constexpr std::size_t kMaxIndexSegments = 100'000, kMaxRetired = 30'000;

struct Segment {
  std::string name;  // SHA-256 of its bytes: 64 hex digits
  std::uint64_t bytes = 0, records = 0;
  std::string key() const { return "segments/" + name + ".bundle"; }
  bool operator==(const Segment&) const = default;
};

struct RetiredSegment {
  std::string name;
  std::string at;  // RFC 3339
  bool operator==(const RetiredSegment&) const = default;
};

struct ShareIndex {
  std::uint64_t generation = 0;  // one more with every change
  std::vector<Segment> segments;
  std::vector<RetiredSegment> retired;
  const Segment* find(std::string_view name) const;
};

// Those limits are the writer's to keep; the reader's is kMaxIndexSegments.
std::string encode_index(const ShareIndex& index);
Result<ShareIndex> decode_index(std::string_view text);
bool is_segment_name(std::string_view name);

}  // namespace purlin::cache
