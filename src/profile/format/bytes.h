// SPDX-License-Identifier: Apache-2.0
// Bytes: a file of any size, read in pieces, or bytes in memory. Chunks: a walk over the chunks of
// a profile file. scan finds how much of it is sealed.
//
// Memory does not grow with the file: a piece lies in the caller's buffer. Bytes owns the open
// file; reads are [MT]. What is no regular file (a pipe) is read whole, up to 1 GiB. Failure: kIo
// with the path; damage is not a failure here, it ends what is sealed.
#pragma once

#include "base/status.h"
#include "profile/format/wire.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace purlin::profile {

class Bytes {
 public:
  static Result<Bytes> open(const std::string& path);
  static Bytes over(std::string_view bytes);  // which must outlive it
  Bytes(Bytes&& other) noexcept;
  Bytes& operator=(Bytes&& other) noexcept;
  ~Bytes();

  std::uint64_t size() const { return size_; }
  // [MT] `size` bytes at `offset`: in memory, or read into `buffer`. Both must be in range.
  Result<std::string_view> read(std::uint64_t offset, std::size_t size, std::string& buffer) const;

 private:
  Bytes() = default;
  std::string path_, owned_;
  std::string_view memory_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

struct Chunk {
  std::uint64_t offset = 0;  // of its header
  std::uint16_t type = 0, version = 0;
  std::uint32_t length = 0;  // of its payload
  std::uint64_t checksum = 0;

  std::uint64_t payload() const { return offset + wire::kChunkHeaderBytes; }
  std::uint64_t end() const { return payload() + length; }
  bool is(wire::ChunkType which) const { return type == static_cast<std::uint16_t>(which); }
};

// The chunks between `begin`, where one begins, and `end`, in order.
class Chunks {
 public:
  Chunks(const Bytes& bytes, std::uint64_t end, std::uint64_t begin = wire::kHeaderBytes)
      : bytes_(bytes), end_(end), offset_(begin) {}
  // False at the end, where a header or its payload does not fit, or where reading failed.
  bool next(Chunk& chunk);
  // The first bytes of a chunk's payload, valid until the next call; empty where reading failed.
  std::string_view payload(const Chunk& chunk, std::size_t most = ~std::size_t{0});
  bool intact(const Chunk& chunk);  // its checksum is right
  const Status& status() const { return status_; }

 private:
  std::string_view view(std::uint64_t offset, std::size_t size);
  const Bytes& bytes_;
  const std::uint64_t end_;
  std::uint64_t offset_;
  std::string buffer_;
  std::string_view window_;
  std::uint64_t window_at_ = 0;
  Status status_;
};

struct Sealed {
  std::uint64_t seals = 0;
  wire::Seal last;
  std::uint64_t end = 0;  // where the last seal ends
};

// Follows chunks and checksums to the last seal. A checksum that fails ends it and is no error: it
// is what a killed writer leaves behind. Reads the file once, from `begin`, where a chunk begins.
Result<Sealed> scan(const Bytes& bytes, std::uint64_t begin = wire::kHeaderBytes);

}  // namespace purlin::profile
