// SPDX-License-Identifier: Apache-2.0
#include "profile/format/bytes.h"

#include "base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin::profile {
namespace {

constexpr std::size_t kWindowBytes = 64 << 10;   // read at once for headers and small chunks
constexpr std::size_t kHashBytes = 512 << 10;    // and for a checksum
constexpr std::size_t kMaxPipeBytes = 1u << 30;  // of what cannot be read twice

Status refused(const std::string& path, int code) {
  return error(code == ENOENT ? Code::kNotFound : Code::kIo, "cannot read '{}': {}", path,
               std::strerror(code));
}

}  // namespace

Result<Bytes> Bytes::open(const std::string& path) {
  Bytes bytes;
  bytes.path_ = path;
  bytes.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info = {};
  if (bytes.fd_ < 0 || ::fstat(bytes.fd_, &info) != 0) return refused(path, errno);
  if (S_ISREG(info.st_mode)) {
    bytes.size_ = static_cast<std::uint64_t>(info.st_size);
    return bytes;
  }
  ::close(std::exchange(bytes.fd_, -1));
  PURLIN_ASSIGN(bytes.owned_, read_file(path, kMaxPipeBytes));
  bytes.size_ = bytes.owned_.size();
  return bytes;
}

Bytes Bytes::over(std::string_view memory) {
  Bytes bytes;
  bytes.memory_ = memory;
  bytes.size_ = memory.size();
  return bytes;
}

Bytes::Bytes(Bytes&& other) noexcept { *this = std::move(other); }

Bytes& Bytes::operator=(Bytes&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(owned_, other.owned_);
  std::swap(memory_, other.memory_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

Bytes::~Bytes() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string_view> Bytes::read(std::uint64_t offset, std::size_t size,
                                     std::string& buffer) const {
  if (fd_ < 0)
    return (memory_.data() != nullptr ? memory_ : std::string_view(owned_)).substr(offset, size);
  if (buffer.size() < size) buffer.resize(size);
  for (std::size_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(fd_, buffer.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(path_, errno);
    if (got == 0)
      return error(Code::kIo, "cannot read '{}': it became shorter while it was read", path_);
    done += static_cast<std::size_t>(got);
  }
  return std::string_view(buffer).substr(0, size);
}

std::string_view Chunks::view(std::uint64_t offset, std::size_t size) {
  if (offset >= window_at_ && offset + size <= window_at_ + window_.size())
    return window_.substr(static_cast<std::size_t>(offset - window_at_), size);
  const std::uint64_t rest = bytes_.size() - offset;
  const std::size_t wanted = std::max(size, kWindowBytes);
  const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, rest));
  const Result<std::string_view> read = bytes_.read(offset, take, buffer_);
  window_ = {};
  if (!read.is_ok()) return status_ = read.status(), std::string_view();
  window_ = *read;
  window_at_ = offset;
  return window_.substr(0, size);
}

bool Chunks::next(Chunk& chunk) {
  if (!status_.is_ok() || end_ < offset_ || end_ - offset_ < wire::kChunkHeaderBytes) return false;
  wire::Decoder header(view(offset_, wire::kChunkHeaderBytes));
  chunk.offset = offset_;
  chunk.type = header.fixed16();
  chunk.version = header.fixed16();
  chunk.length = header.fixed32();
  chunk.checksum = header.fixed64();
  if (header.failed() || chunk.length > end_ - chunk.payload()) return false;
  offset_ = chunk.end();
  return true;
}

std::string_view Chunks::payload(const Chunk& chunk, std::size_t most) {
  return view(chunk.payload(), std::min<std::size_t>(chunk.length, most));
}

bool Chunks::intact(const Chunk& chunk) {
  const std::uint64_t seed = wire::checksum_seed(chunk.type, chunk.version, chunk.length);
  if (chunk.length <= kHashBytes) {
    const std::string_view whole = payload(chunk);
    return whole.size() == chunk.length &&
           XXH3_64bits_withSeed(whole.data(), whole.size(), seed) == chunk.checksum;
  }
  XXH3_state_t state;
  XXH3_64bits_reset_withSeed(&state, seed);
  for (std::uint64_t at = chunk.payload(); at < chunk.end();) {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(kHashBytes, chunk.end() - at));
    const std::string_view piece = view(at, size);
    if (piece.size() != size) return false;
    XXH3_64bits_update(&state, piece.data(), piece.size());
    at += size;
  }
  return XXH3_64bits_digest(&state) == chunk.checksum;
}

Result<Sealed> scan(const Bytes& bytes, std::uint64_t begin) {
  Sealed sealed;
  Chunks chunks(bytes, bytes.size(), begin);
  Chunk chunk;
  while (chunks.next(chunk) && chunks.intact(chunk)) {
    if (!chunk.is(wire::ChunkType::kSeal)) continue;
    // The offset guards against a seal that was copied from elsewhere.
    wire::Seal seal;
    if (!wire::decode(chunks.payload(chunk), seal) || seal.offset != chunk.offset) break;
    ++sealed.seals;
    sealed.last = seal;
    sealed.end = chunk.end();
  }
  if (!chunks.status().is_ok()) return chunks.status();
  return sealed;
}

}  // namespace purlin::profile
