// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <algorithm>
#include <limits>
#include <vector>
#include <zlib.h>

namespace purlin {

bool is_gzip(std::string_view data) {
  return data.size() >= 2 && data[0] == '\x1f' && data[1] == '\x8b';
}

struct Gunzip::Stream {
  z_stream zlib{};
  bool started = false;
  bool between_members = false;
  std::vector<char> out = std::vector<char>(std::size_t{256} << 10);

  Stream() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    started = ::inflateInit2(&zlib, kGzipOnly) == Z_OK;
  }
  ~Stream() {
    if (started) ::inflateEnd(&zlib);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

Gunzip::Gunzip(Take take, std::size_t max_bytes)
    : stream_(std::make_unique<Stream>()), take_(std::move(take)), max_bytes_(max_bytes) {}
Gunzip::~Gunzip() = default;

Status Gunzip::add(std::string_view data) {
  z_stream& zlib = stream_->zlib;
  if (!stream_->started) return error(Code::kFailed, "zlib does not start: out of memory");
  std::vector<char>& out = stream_->out;
  while (true) {
    if (zlib.avail_in == 0) {
      if (data.empty()) return Status::ok();
      const std::size_t step = std::min<std::size_t>(data.size(), std::numeric_limits<uInt>::max());
      zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
      zlib.avail_in = static_cast<uInt>(step);
      data.remove_prefix(step);
    }
    int code = Z_OK;
    do {
      zlib.next_out = reinterpret_cast<Bytef*>(out.data());
      zlib.avail_out = static_cast<uInt>(out.size());
      code = ::inflate(&zlib, Z_NO_FLUSH);
      const std::size_t size = out.size() - zlib.avail_out;
      taken_ += size;
      if (taken_ > max_bytes_)
        return error(Code::kInvalid, "gzip contents are over the limit of {} bytes", max_bytes_);
      if (size > 0) PURLIN_TRY(take_({out.data(), size}));
    } while (code == Z_OK && zlib.avail_out == 0);
    if (code == Z_STREAM_END && ::inflateReset(&zlib) == Z_OK) {
      stream_->between_members = true;
      continue;
    }
    if (code != Z_OK && code != Z_BUF_ERROR)
      return error(Code::kInvalid, "gzip data is damaged ({})",
                   zlib.msg != nullptr ? zlib.msg : "unknown error");
    stream_->between_members = false;
  }
}

Status Gunzip::finish() const {
  if (stream_->between_members) return Status::ok();
  return error(Code::kInvalid, "gzip data ends too early; the file is cut short");
}

Result<std::string> gunzip(std::string_view data, std::size_t max_bytes) {
  std::string all;
  Gunzip parts(
      [&](std::string_view part) {
        all += part;
        return Status::ok();
      },
      max_bytes);
  PURLIN_TRY(parts.add(data));
  PURLIN_TRY(parts.finish());
  return all;
}

Result<std::string> gzip(std::string_view data) {
  if (data.size() > std::numeric_limits<uInt>::max())
    return error(Code::kInvalid, "{} bytes are too many to compress at once", data.size());
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS, kMemoryLevel = 8;
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK)
    return error(Code::kFailed, "zlib does not start: out of memory");
  std::string out(::deflateBound(&stream, static_cast<uLong>(data.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (code != Z_STREAM_END) return error(Code::kFailed, "zlib cannot compress (code {})", code);
  return out;
}

}  // namespace purlin
