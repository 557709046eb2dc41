// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <algorithm>
#include <limits>
#include <zlib.h>

namespace purlin {

bool is_gzip(std::string_view data) {
  return data.size() >= 2 && data[0] == '\x1f' && data[1] == '\x8b';
}

Result<std::string> gunzip(std::string_view data, std::size_t max_bytes) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  z_stream stream{};
  if (::inflateInit2(&stream, kGzipOnly) != Z_OK)
    return error(Code::kFailed, "zlib does not start: out of memory");
  struct End {
    z_stream* stream;
    ~End() { ::inflateEnd(stream); }
  } end{&stream};

  std::string out;
  int code = Z_OK;
  while (true) {
    if (stream.avail_in == 0 && !data.empty()) {
      const std::size_t step = std::min<std::size_t>(data.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
      stream.avail_in = static_cast<uInt>(step);
      data.remove_prefix(step);
    }
    const std::size_t used = out.size();
    // One byte over the limit is enough to know that it is broken.
    const std::size_t room =
        std::min<std::size_t>(max_bytes - used + 1, std::max<std::size_t>(used, 64 << 10));
    out.resize(used + room);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(room);
    code = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(used + room - stream.avail_out);
    if (out.size() > max_bytes)
      return error(Code::kInvalid, "gzip contents are over the limit of {} bytes", max_bytes);
    if (code == Z_STREAM_END) {
      if (stream.avail_in == 0 && data.empty()) return out;
      if (::inflateReset(&stream) != Z_OK) break;  // another member follows
      continue;
    }
    if (code != Z_OK) break;
    if (stream.avail_in == 0 && data.empty() && stream.avail_out > 0) break;
  }
  if (code == Z_OK || code == Z_BUF_ERROR)
    return error(Code::kInvalid, "gzip data ends too early; the file is cut short");
  return error(Code::kInvalid, "gzip data is damaged ({})",
               stream.msg != nullptr ? stream.msg : "unknown error");
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
