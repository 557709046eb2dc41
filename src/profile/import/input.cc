// SPDX-License-Identifier: Apache-2.0
#include "profile/import/input.h"

#include "base/files.h"
#include "base/gzip.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <zlib.h>

namespace purlin::profile {

struct Input::State {
  std::string name = "input";  // for errors
  int fd = -1;                 // -1: bytes
  std::string_view bytes;
  std::uint64_t size = 0, taken = 0, given = 0;  // file's size, read of it, decoded and handed out
  std::vector<char> raw;                         // compressed, not yet decoded: [at, end)
  std::size_t at = 0, end = 0;
  bool gzip = false, between_members = false, finished = false;
  z_stream stream{};
  Status failure;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (gzip) ::inflateEnd(&stream);
    if (fd >= 0) ::close(fd);
  }

  Result<std::size_t> take(char* into, std::size_t wanted);
  Status fill();
  Status start();
  Status decode(char* into, std::size_t wanted, std::size_t& got);
};

// Bytes of the file, unchanged.
Result<std::size_t> Input::State::take(char* into, std::size_t wanted) {
  if (fd < 0) {
    const std::size_t count = std::min(wanted, bytes.size() - static_cast<std::size_t>(taken));
    std::copy_n(bytes.data() + taken, count, into);
    taken += count;
    return count;
  }
  while (true) {
    const ssize_t count = ::read(fd, into, std::min<std::size_t>(wanted, 1 << 30));
    if (count >= 0) {
      taken += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
    if (errno != EINTR)
      return error(Code::kIo, "{}: cannot be read at byte {}: {}", name, taken,
                   std::strerror(errno));
  }
}

// Refills `raw` behind what is left in it; at == end afterwards means the file has ended.
Status Input::State::fill() {
  constexpr std::size_t kRawBytes = std::size_t{256} << 10;
  raw.resize(kRawBytes);
  if (at > 0) std::memmove(raw.data(), raw.data() + at, end - at);
  end -= at;
  at = 0;
  PURLIN_ASSIGN(const std::size_t got, take(raw.data() + end, raw.size() - end));
  end += got;
  return Status::ok();
}

Status Input::State::start() {
  PURLIN_TRY(fill());
  while (end < 2) {  // a pipe may give one byte at a time
    const std::size_t before = end;
    PURLIN_TRY(fill());
    if (end == before) break;
  }
  if (!is_gzip({raw.data(), end})) return Status::ok();
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (::inflateInit2(&stream, kGzipOnly) != Z_OK)
    return error(Code::kFailed, "zlib does not start: out of memory");
  gzip = true;
  return Status::ok();
}

Status Input::State::decode(char* into, std::size_t wanted, std::size_t& got) {
  stream.next_out = reinterpret_cast<Bytef*>(into);
  stream.avail_out =
      static_cast<uInt>(std::min<std::size_t>(wanted, std::numeric_limits<uInt>::max()));
  const uInt room = stream.avail_out;
  while (stream.avail_out == room && !finished) {
    if (at == end || (between_members && end - at < 2)) {
      const std::size_t before = end - at;
      PURLIN_TRY(fill());
      if (end - at == before) {
        finished = true;
        if (!between_members)
          return error(Code::kCorrupt, "{}: gzip data ends too early, at byte {}: the file is cut",
                       name, taken);
        break;
      }
    }
    if (between_members && !is_gzip({raw.data() + at, end - at})) {
      finished = true;  // trailing garbage, or padding, which gzip ignores as well
      break;
    }
    between_members = false;
    stream.next_in = reinterpret_cast<Bytef*>(raw.data() + at);
    stream.avail_in = static_cast<uInt>(end - at);
    const int code = ::inflate(&stream, Z_NO_FLUSH);
    at = end - stream.avail_in;
    got = room - stream.avail_out;
    if (code == Z_STREAM_END) {
      between_members = true;
      if (::inflateReset(&stream) != Z_OK) return error(Code::kFailed, "zlib does not restart");
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      finished = true;
      return error(Code::kCorrupt, "{}: gzip data is damaged near byte {} ({})", name,
                   taken - (end - at), stream.msg != nullptr ? stream.msg : "unknown error");
    }
  }
  return Status::ok();
}

Input::Input(std::unique_ptr<State> state) : state_(std::move(state)) {}
Input::Input(Input&& other) noexcept = default;
Input& Input::operator=(Input&& other) noexcept = default;
Input::~Input() = default;

Result<Input> Input::open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->name = path;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))
    return error(Code::kInvalid, "{}: is a folder, not a file", path);
  PURLIN_ASSIGN(state->fd, open_to_read(path));
  if (::fstat(state->fd, &facts) == 0 && S_ISREG(facts.st_mode))
    state->size = static_cast<std::uint64_t>(facts.st_size);
  ::posix_fadvise(state->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  PURLIN_TRY(state->start());
  return Input(std::move(state));
}

Input Input::from_bytes(std::string_view bytes) {
  auto state = std::make_unique<State>();
  state->bytes = bytes;
  state->size = bytes.size();
  state->failure = state->start();
  return Input(std::move(state));
}

Result<std::size_t> Input::read(char* into, std::size_t size) {
  State& s = *state_;
  if (!s.failure.is_ok()) return s.failure;
  if (size == 0) return std::size_t{0};
  std::size_t got = 0;
  if (s.gzip) {
    s.failure = s.decode(into, size, got);
    if (!s.failure.is_ok() && got == 0) return s.failure;
  } else if (s.at < s.end) {  // what was looked at to find the magic bytes
    got = std::min(size, s.end - s.at);
    std::memcpy(into, s.raw.data() + s.at, got);
    s.at += got;
  } else {
    PURLIN_ASSIGN(got, s.take(into, size));
  }
  s.given += got;
  return got;
}

Result<std::string> Input::read_all(std::size_t most) {
  std::string text;
  std::vector<char> part(std::size_t{1} << 20);
  while (true) {
    PURLIN_ASSIGN(const std::size_t got, read(part.data(), part.size()));
    if (got == 0) return text;
    if (text.size() + got > most)
      return error(Code::kInvalid, "more than {} MiB, which is more than is read at once",
                   most >> 20);
    text.append(part.data(), got);
  }
}

bool Input::compressed() const { return state_->gzip; }
std::uint64_t Input::offset() const { return state_->given; }
std::uint64_t Input::file_offset() const { return state_->taken - (state_->end - state_->at); }
std::uint64_t Input::file_size() const { return state_->size; }

Result<std::string> read_prefix(const std::string& path, std::size_t size) {
  PURLIN_ASSIGN(Input input, Input::open(path));
  std::string prefix(size, '\0');
  std::size_t length = 0;
  while (length < size) {
    Result<std::size_t> got = input.read(prefix.data() + length, size - length);
    if (!got.is_ok() && length == 0) return got.status();
    if (!got.is_ok() || *got == 0) break;
    length += *got;
  }
  prefix.resize(length);
  return prefix;
}

}  // namespace purlin::profile
