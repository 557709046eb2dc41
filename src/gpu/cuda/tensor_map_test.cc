// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/tensor_map.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace purlin::gpu {
namespace {

std::string encoded_as;  // functions of the driver API carry no state

CudaDriver driver_with_maps() {
  CudaDriver driver;
  driver.cuTensorMapEncodeTiled = [](void*, int dtype, cuuint32_t rank, void* address,
                                     const cuuint64_t* extents, const cuuint64_t* strides,
                                     const cuuint32_t* box, const cuuint32_t* steps, int,
                                     int swizzle, int, int) {
    encoded_as = fmt::format(
        "dtype {} at {} extents {} strides {} box {} steps {} swizzle {}", dtype,
        reinterpret_cast<std::uintptr_t>(address), fmt::join(std::span(extents, rank), ","),
        fmt::join(std::span(strides, rank - 1), ","), fmt::join(std::span(box, rank), ","),
        fmt::join(std::span(steps, rank), ","), swizzle);
    return CUDA_SUCCESS;
  };
  return driver;
}

TensorMap map_of(std::vector<std::int64_t> box, std::int64_t swizzle) {
  return {Dtype::kBf16, {4, 8, 64}, std::move(box), swizzle};
}

TEST(TensorMap, TheFastestExtentComesFirst) {
  ASSERT_TRUE(encode_tensor_map(driver_with_maps(), map_of({1, 4, 64}, 128), 4096).is_ok());
  EXPECT_EQ(encoded_as,
            "dtype 9 at 4096 extents 64,8,4 strides 128,1024 box 64,4,1 steps 1,1,1 swizzle 3");
}

TEST(TensorMap, ABrokenRuleIsNamed) {
  TensorMap narrow = map_of({1, 4, 8}, 0);
  narrow.extents = {4, 8, 60};
  const std::pair<TensorMap, std::string> kRefused[] = {
      {map_of({1, 4, 32}, 32), "a box with rows of 64 bytes; a swizzle of 32 allows 32 at most"},
      {map_of({1, 4, 4}, 0), "a box with rows of 8 bytes; they must be a multiple of 16"},
      {map_of({1, 300, 8}, 0), "extent 1 of a tensor map's box is 300; it must be 1 to 256"},
      {map_of({1, 4, 8}, 16), "a swizzle of 16 bytes; there are 0, 32, 64 and 128"},
      {map_of({1, 4}, 0), "a tensor map has 1 to 5 extents and as many of its box, not 3"},
      {narrow, "rows of 120 bytes have no tensor map; they must be a multiple of 16 bytes"},
  };
  for (const auto& [map, why] : kRefused) {
    const Status status = encode_tensor_map(driver_with_maps(), map, 4096).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_EQ(status.message(), why);
  }
  const Status old = encode_tensor_map(CudaDriver{}, map_of({1, 4, 64}, 128), 4096).status();
  EXPECT_EQ(old.code(), Code::kUnavailable);
}

}  // namespace
}  // namespace purlin::gpu
