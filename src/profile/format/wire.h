// SPDX-License-Identifier: Apache-2.0
// The bytes of a profile file: integers, chunks, sketches, launches. docs/formats/profile.md is the
// reference. Used by the file's reader and writer and compiled into the capture libraries:
// it uses only the standard library and header-only xxHash.
//
// A Decoder never reads past its bytes and never throws: a read that does not fit sets failed() and
// yields 0. Thread-safety: none; values.
#pragma once

#include "model/profile/sketch.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::wire {

constexpr std::string_view kMagic{"PURLINPF", 8};
constexpr std::uint16_t kFormatVersion = 1;
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kChunkHeaderBytes = 16;

enum class ChunkType : std::uint16_t {
  kMeta = 1,      // JSON: processes, environment, command
  kStrings = 2,   // names; ids count up through the file
  kKernels = 3,   // definitions; ids count up through the file
  kSketches = 4,  // what each kernel added since the previous seal

  kCopies = 5,    // the same for memcpy and memset
  kLaunches = 6,  // a timeline
  kCoverage = 7,  // JSON, since the process's start: the last one counts
  kSeal = 8,      // everything before is consistent

  kDetails = 9,  // what else is known of a kernel: dtype, build, counters
  kNames = 10,   // of the timeline; numbers count up through the file, 0 is ""
  kRanges = 11,  // the timeline's events: events.h
  kActivities = 12,
  kCalls = 13,
  kOps = 14,
  kStallSites = 15,  // sampled program counters: stall_sites.h
  kOrigins = 16,     // of kernels that were not launched into a stream
  kWaits = 17,       // what waits added since the previous seal
};

class Encoder {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void fixed16(std::uint16_t value) { little_endian(value, 2); }
  void fixed32(std::uint32_t value) { little_endian(value, 4); }
  void fixed64(std::uint64_t value) { little_endian(value, 8); }
  void real(double value);
  void varint(std::uint64_t value);        // LEB128
  void signed_varint(std::int64_t value);  // zigzag, then LEB128
  void text(std::string_view value);       // length, bytes
  void raw(std::string_view value) { bytes_.append(value); }
  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

 private:
  void little_endian(std::uint64_t value, int size);
  std::string bytes_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(little_endian(1)); }
  std::uint16_t fixed16() { return static_cast<std::uint16_t>(little_endian(2)); }
  std::uint32_t fixed32() { return static_cast<std::uint32_t>(little_endian(4)); }
  std::uint64_t fixed64() { return little_endian(8); }
  double real();
  std::uint64_t varint() {
    if (at_ != end_ && static_cast<signed char>(*at_) >= 0)
      return static_cast<unsigned char>(*at_++);
    return long_varint();
  }
  std::uint32_t varint32();  // fails above 2^32 - 1
  std::int64_t signed_varint() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::string_view text();
  // A count of items that take at least `least` bytes each; fails where they cannot fit.
  std::size_t count(std::size_t least = 1);

  bool failed() const { return failed_; }
  bool at_end() const { return at_ == end_; }
  void fail() { failed_ = true, at_ = end_; }

 private:
  std::size_t rest() const { return static_cast<std::size_t>(end_ - at_); }
  std::uint64_t long_varint();
  std::uint64_t little_endian(int size);
  const char* at_;
  const char* end_;
  bool failed_ = false;
};

// Of the chunks that hold sketches: 1 until 26 November 2026, with buckets of another base.
constexpr std::uint16_t kSketchVersion = 2;
constexpr std::uint16_t version_of(ChunkType type) {
  const bool sketches =
      type == ChunkType::kSketches || type == ChunkType::kCopies || type == ChunkType::kWaits;
  return sketches ? kSketchVersion : 1;
}

void append_header(std::string& out);
void append_chunk(std::string& out, ChunkType type, std::string_view payload);
void append_chunk(std::string& out, ChunkType type, std::uint16_t version,
                  std::string_view payload);
// A chunk's checksum is XXH3-64 of the payload with this seed.
std::uint64_t checksum_seed(std::uint16_t type, std::uint16_t version, std::uint32_t length);

struct KernelDefinition {
  std::uint32_t name = 0;  // string ids; op and shape: 0 = none, else id + 1
  std::uint32_t op = 0, shape = 0;
  std::uint32_t device = 0;
  std::array<std::uint32_t, 3> grid = {}, block = {}, cluster = {};
  std::uint32_t dynamic_shared_bytes = 0, static_shared_bytes = 0;
  std::uint32_t registers = 0, local_bytes = 0;
  std::uint32_t origin = 0;  // in ORIGINS, not in KERNELS
};
constexpr std::size_t kMinDefinitionBytes = 17;
void encode(Encoder& out, const KernelDefinition& definition);
KernelDefinition decode_definition(Decoder& in);

// Non-empty buckets only; weights that are all whole numbers take one varint each.
void encode(Encoder& out, const Sketch& sketch);
// `budget`: buckets that may still be allocated, over all sketches of a file. `version`: of the
// chunk. A sketch of version 1 is converted: its quantiles are within kConvertedError.
constexpr double kConvertedError = 0.008;
bool decode(Decoder& in, Sketch& sketch, std::size_t& budget,
            std::uint16_t version = kSketchVersion);

struct Launch {
  std::uint32_t kernel = 0, stream = 0;
  std::int64_t start_ns = 0, duration_ns = 0;
};

// The last duration of each kernel in a chunk, kept from chunk to chunk, so that a chunk costs
// nothing to begin.
class LaunchMemory {
 public:
  explicit LaunchMemory(std::size_t kernels) : last_(kernels) {}
  std::size_t kernels() const { return last_.size(); }
  void make_room(std::uint32_t kernel) {
    if (kernel >= last_.size()) last_.resize(std::size_t{kernel} + kernel / 2 + 64);
  }
  void begin_chunk() { ++chunk_; }
  // 0 before the kernel's first launch in the chunk. REQUIRES: kernel < kernels().
  std::int64_t& duration_ns(std::uint32_t kernel) {
    Last& last = last_[kernel];
    if (last.chunk != chunk_) last = {0, chunk_};
    return last.duration_ns;
  }

 private:
  struct Last {
    std::int64_t duration_ns = 0;
    std::uint64_t chunk = 0;  // which one that was
  };
  std::vector<Last> last_;
  std::uint64_t chunk_ = 1;
};

// Launches of one process: starts are relative to the end of the previous launch, durations to
// the same kernel's previous launch. 4 to 7 bytes each; docs/formats/profile.md has measurements.
class LaunchEncoder {
 public:
  void add(std::uint32_t kernel, std::uint32_t stream, std::int64_t start_ns,
           std::int64_t duration_ns);
  std::size_t count() const { return count_; }
  std::size_t size() const { return body_.size(); }
  std::string finish(std::uint32_t process);  // the chunk's payload; then starts again

 private:
  Encoder body_;
  std::size_t count_ = 0;
  std::uint32_t stream_ = 0;
  std::int64_t base_ns_ = 0, previous_end_ns_ = 0;
  LaunchMemory memory_{0};
};

class LaunchDecoder {
 public:
  // `memory` is for as many kernels as the file defines; a launch of another fails.
  LaunchDecoder(std::string_view payload, LaunchMemory& memory);
  std::uint32_t process() const { return process_; }
  std::int64_t base_ns() const { return base_ns_; }
  std::size_t count() const { return count_; }
  Launch next();
  bool failed() const { return in_.failed(); }

 private:
  Decoder in_;
  LaunchMemory& memory_;
  std::uint32_t process_ = 0, stream_ = 0;
  std::size_t count_ = 0;
  std::int64_t base_ns_ = 0, previous_end_ns_ = 0;
};

struct Seal {
  std::uint64_t sequence = 0;
  std::int64_t wall_ns = 0;
  std::uint64_t offset = 0;  // of this chunk in the file
  bool final = false;        // the writer ended in order
};
std::string encode(const Seal& seal);
bool decode(std::string_view payload, Seal& seal);

}  // namespace purlin::profile::wire
