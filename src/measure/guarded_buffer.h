// SPDX-License-Identifier: Apache-2.0
// GuardedBuffer: device memory for one kernel argument with a red zone on either side, in one
// allocation. A kernel's write outside its data lands in a red zone and is found there.
// Thread-safety and failure: as the device's.
#pragma once

#include "gpu/device.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace purlin::measure {

class GuardedBuffer {
 public:
  // Room for up to `capacity` bytes of data; the extent starts as all of it.
  static Result<GuardedBuffer> create(gpu::Device& device, std::size_t capacity);
  // What create() allocates.
  static std::size_t footprint(const gpu::Device& device, std::size_t capacity);

  std::size_t bytes() const { return bytes_; }
  std::size_t capacity() const { return capacity_; }
  // Moves the end of the data, and the red zone behind it. REQUIRES: bytes <= capacity().
  Status resize(std::size_t bytes);
  gpu::KernelArgument argument() const;

  Status write(const void* data);  // bytes() of it
  // `period` bytes, over and over. REQUIRES: 0 < period.
  Status write_repeated(const void* data, std::size_t period);
  Status read(void* data) const { return read(data, 0, bytes_); }
  Status read(void* data, std::size_t offset, std::size_t bytes) const;
  Status fill(std::uint8_t byte);                // the data
  Status copy_from(const GuardedBuffer& other);  // REQUIRES: equal bytes()

  // The place in a red zone that was written: "byte -4, 4 bytes before its start (1 byte changed)".
  // nullopt when they are intact. Damaged zones are repaired.
  Result<std::optional<std::string>> check();

 private:
  GuardedBuffer(gpu::Device& device, std::unique_ptr<gpu::Buffer> buffer, std::size_t zone,
                std::size_t capacity);
  Status paint();
  gpu::Device* device_;
  std::unique_ptr<gpu::Buffer> buffer_;
  std::size_t zone_, capacity_, bytes_;
};

}  // namespace purlin::measure
