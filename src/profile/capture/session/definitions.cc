// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/session/definitions.h"

#include "profile/format/wire.h"

#include <cstdint>

namespace purlin::profile::capture {
namespace {

// Facts of a period are counters; definitions are types, with no counter.
bool has_counters(std::string_view details) {
  wire::Decoder in(details);
  if (in.varint() == 0) return false;
  for (int field = 0; field < 3; ++field) (void)in.varint();  // kernel, type, build
  return in.varint() > 0;
}

bool defines(std::uint16_t type, std::string_view payload) {
  using wire::ChunkType;
  switch (static_cast<ChunkType>(type)) {
    case ChunkType::kStrings:
    case ChunkType::kKernels:
    case ChunkType::kOrigins:
    case ChunkType::kNames:
      return true;
    case ChunkType::kDetails:
      return !has_counters(payload);
    default:
      return false;
  }
}

}  // namespace

std::string definitions_of(std::string_view bytes) {
  std::string out;
  while (bytes.size() >= wire::kChunkHeaderBytes) {
    wire::Decoder head(bytes);
    const std::uint16_t type = head.fixed16();
    (void)head.fixed16();  // version
    const std::size_t whole = wire::kChunkHeaderBytes + head.fixed32();
    if (whole > bytes.size()) break;
    if (defines(type, bytes.substr(wire::kChunkHeaderBytes, whole - wire::kChunkHeaderBytes)))
      out += bytes.substr(0, whole);
    bytes.remove_prefix(whole);
  }
  return out;
}

}  // namespace purlin::profile::capture
