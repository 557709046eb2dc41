// SPDX-License-Identifier: Apache-2.0
#include "store/zstd_frame.h"

#include <zstd.h>

#include <memory>

namespace purlin::store {
namespace {

constexpr int kZstdLevel = 3;

}  // namespace

Result<std::string> zstd_frame(std::string_view contents) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&::ZSTD_freeCCtx)> context(::ZSTD_createCCtx(),
                                                                       &::ZSTD_freeCCtx);
  if (context == nullptr) return error(Code::kFailed, "zstd does not start: out of memory");
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kZstdLevel);
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(::ZSTD_compressBound(contents.size()), '\0');
  const std::size_t size =
      ::ZSTD_compress2(context.get(), out.data(), out.size(), contents.data(), contents.size());
  if (::ZSTD_isError(size) != 0)
    return error(Code::kFailed, "zstd cannot compress: {}", ::ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

Result<std::string> zstd_contents(std::string_view frame, std::size_t max_bytes) {
  const unsigned long long size = ::ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR) return error(Code::kInvalid, "no zstd frame");
  if (size == ZSTD_CONTENTSIZE_UNKNOWN)
    return error(Code::kInvalid, "the zstd frame does not state the size of its contents");
  if (size > max_bytes)
    return error(Code::kInvalid, "the zstd frame states {} bytes of contents, over the limit of {}",
                 size, max_bytes);
  const std::size_t length = ::ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (::ZSTD_isError(length) != 0)
    return error(Code::kInvalid, "the zstd frame is damaged: {}", ::ZSTD_getErrorName(length));
  if (length != frame.size())
    return error(Code::kInvalid, "{} bytes follow the zstd frame", frame.size() - length);
  std::string out(static_cast<std::size_t>(size), '\0');
  const std::size_t written = ::ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (::ZSTD_isError(written) != 0)
    return error(Code::kInvalid, "the zstd frame is damaged: {}", ::ZSTD_getErrorName(written));
  if (written != out.size())
    return error(Code::kInvalid, "the zstd frame has {} bytes of contents and states {}", written,
                 out.size());
  return out;
}

}  // namespace purlin::store
