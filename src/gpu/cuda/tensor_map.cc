// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/tensor_map.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace purlin::gpu {
namespace {

// Numbers of CUtensorMapDataType, CUtensorMapSwizzle and the like (cuda.h of 12.0 and newer).
constexpr int kNoInterleave = 0, kPromoteTo128Bytes = 2, kFillWithZeros = 0;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 32, kMaxBox = 256;
constexpr std::int64_t kGranule = 16;  // bytes that copies and strides are multiples of

int tensor_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kU16:
    case Dtype::kI16:
      return 1;
    case Dtype::kU32:
      return 2;
    case Dtype::kI32:
      return 3;
    case Dtype::kU64:
      return 4;
    case Dtype::kI64:
      return 5;
    case Dtype::kF16:
      return 6;
    case Dtype::kF32:
      return 7;
    case Dtype::kF64:
      return 8;
    case Dtype::kBf16:
      return 9;
    default:
      return 0;  // bytes, which 8-bit reals are too
  }
}

std::optional<int> swizzle_mode(std::int64_t bytes) {
  constexpr std::int64_t kWidths[] = {0, 32, 64, 128};
  const auto* found = std::find(std::begin(kWidths), std::end(kWidths), bytes);
  if (found == std::end(kWidths)) return std::nullopt;
  return static_cast<int>(found - std::begin(kWidths));
}

Status check_tensor_map(const TensorMap& map) {
  const std::size_t rank = map.extents.size();
  if (rank == 0 || rank > 5 || map.box.size() != rank)
    return error(Code::kInvalid, "a tensor map has 1 to 5 extents and as many of its box, not {}",
                 rank);
  for (std::size_t i = 0; i < rank; ++i) {
    if (map.extents[i] < 1 || map.extents[i] > kMaxExtent)
      return error(Code::kInvalid, "extent {} of a tensor map is {}; it must be 1 to 2^32", i,
                   map.extents[i]);
    if (map.box[i] < 1 || map.box[i] > kMaxBox)
      return error(Code::kInvalid, "extent {} of a tensor map's box is {}; it must be 1 to {}", i,
                   map.box[i], kMaxBox);
  }
  const auto size = static_cast<std::int64_t>(size_of(map.dtype));
  if (rank > 1 && map.extents.back() * size % kGranule != 0)
    return error(Code::kInvalid,
                 "rows of {} bytes have no tensor map; they must be a multiple of {} bytes",
                 map.extents.back() * size, kGranule);
  const std::int64_t row = map.box.back() * size;
  if (row % kGranule != 0)
    return error(Code::kInvalid, "a box with rows of {} bytes; they must be a multiple of {}", row,
                 kGranule);
  if (!swizzle_mode(map.swizzle))
    return error(Code::kInvalid, "a swizzle of {} bytes; there are 0, 32, 64 and 128", map.swizzle);
  if (map.swizzle > 0 && row > map.swizzle)
    return error(Code::kInvalid, "a box with rows of {} bytes; a swizzle of {} allows {} at most",
                 row, map.swizzle, map.swizzle);
  return Status::ok();
}

}  // namespace

Result<EncodedTensorMap> encode_tensor_map(const CudaDriver& driver, const TensorMap& map,
                                           CUdeviceptr address) {
  if (driver.cuTensorMapEncodeTiled == nullptr)
    return error(Code::kUnavailable,
                 "this driver has no tensor maps; they need driver 525 or newer");
  PURLIN_TRY(check_tensor_map(map));
  // The driver takes the fastest extent first, and the strides of the others.
  const std::size_t rank = map.extents.size();
  std::vector<cuuint64_t> extents(map.extents.rbegin(), map.extents.rend()), strides;
  const std::vector<cuuint32_t> box(map.box.rbegin(), map.box.rend()), element_strides(rank, 1);
  cuuint64_t stride = size_of(map.dtype);
  for (std::size_t i = 0; i + 1 < rank; ++i) strides.push_back(stride *= extents[i]);
  EncodedTensorMap encoded{};
  const CUresult result = driver.cuTensorMapEncodeTiled(
      &encoded, tensor_dtype(map.dtype), static_cast<cuuint32_t>(rank),
      reinterpret_cast<void*>(address), extents.data(), strides.data(), box.data(),
      element_strides.data(), kNoInterleave, *swizzle_mode(map.swizzle), kPromoteTo128Bytes,
      kFillWithZeros);
  if (result != CUDA_SUCCESS) return cuda_failure(driver, "encoding a tensor map", result);
  return encoded;
}

}  // namespace purlin::gpu
