// SPDX-License-Identifier: Apache-2.0
// The profile file, twice: the input as a file, and the input as the contents of chunks whose
// checksums are right, since a fuzzer cannot find those. What is read must survive being written
// and read again.
#include "profile/format/file.h"
#include "profile/format/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

namespace wire = purlin::profile::wire;

void try_file(std::string_view bytes) {
  const purlin::Result<purlin::Profile> read = purlin::profile::decode_profile(bytes);
  if (!read.is_ok()) return;
  if (!purlin::profile::decode_profile(purlin::profile::encode_profile(*read)).is_ok())
    std::abort();
  // In part, and merged with itself: every index must stay in range.
  const purlin::Result<purlin::Profile> part =
      purlin::profile::decode_profile(bytes, {.max_timeline_events = 3, .workers = 1});
  if (!part.is_ok() || part->timeline.activities.size() > 3) std::abort();
  purlin::Profile merged = *part;
  purlin::profile::merge_into(merged, *read);
  if (!purlin::profile::decode_profile(purlin::profile::encode_profile(merged)).is_ok())
    std::abort();
}

// type, length (2 bytes), payload; again and again.
std::string as_chunks(std::string_view input) {
  std::string out;
  wire::append_header(out);
  wire::append_chunk(out, wire::ChunkType::kMeta,
                     R"({"schema":"purlin.profile/1","processes":[{"pid":1},{"pid":2}]})");
  while (input.size() >= 3) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
    const auto type = static_cast<wire::ChunkType>(byte(0) % 18);
    const std::size_t length = std::min<std::size_t>(byte(1) | byte(2) << 8, input.size() - 3);
    // Chunks with sketches have a second version.
    const std::uint16_t version = byte(0) < 128 ? wire::version_of(type) : std::uint16_t{1};
    wire::append_chunk(out, type, version, input.substr(3, length));
    input.remove_prefix(3 + length);
  }
  wire::append_chunk(out, wire::ChunkType::kSeal, wire::encode(wire::Seal{1, 1, out.size(), true}));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try_file(input);
  try_file(as_chunks(input));
  return 0;
}
