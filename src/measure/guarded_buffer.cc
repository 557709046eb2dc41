// SPDX-License-Identifier: Apache-2.0
#include "measure/guarded_buffer.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace purlin::measure {
namespace {

// A row or a tile past the end is what off-by-one blocks write: 64 KiB holds 16,384 floats.
constexpr std::size_t kZoneBytes = std::size_t{64} << 10;
constexpr std::uint8_t kZoneByte = 0xC7;

std::size_t zone_of(const gpu::Device& device) {
  const std::size_t alignment = std::max<std::size_t>(device.buffer_alignment(), 1);
  return (kZoneBytes + alignment - 1) / alignment * alignment;
}

}  // namespace

GuardedBuffer::GuardedBuffer(gpu::Device& device, std::unique_ptr<gpu::Buffer> buffer,
                             std::size_t zone, std::size_t capacity)
    : device_(&device),
      buffer_(std::move(buffer)),
      zone_(zone),
      capacity_(capacity),
      bytes_(capacity) {}

std::size_t GuardedBuffer::footprint(const gpu::Device& device, std::size_t capacity) {
  return capacity + 2 * zone_of(device);
}

Result<GuardedBuffer> GuardedBuffer::create(gpu::Device& device, std::size_t capacity) {
  PURLIN_ASSIGN(std::unique_ptr<gpu::Buffer> allocated,
                device.allocate(footprint(device, capacity)));
  GuardedBuffer buffer(device, std::move(allocated), zone_of(device), capacity);
  PURLIN_TRY(buffer.paint());
  return buffer;
}

Status GuardedBuffer::resize(std::size_t bytes) {
  bytes_ = bytes;
  return paint();
}

Status GuardedBuffer::paint() {
  PURLIN_TRY(device_->fill(*buffer_, 0, kZoneByte, zone_));
  return device_->fill(*buffer_, zone_ + bytes_, kZoneByte, zone_);
}

gpu::KernelArgument GuardedBuffer::argument() const {
  gpu::KernelArgument argument;
  argument.buffer = buffer_.get();
  argument.offset = zone_;
  argument.bytes = bytes_;
  return argument;
}

Status GuardedBuffer::write(const void* data) {
  return device_->write(*buffer_, zone_, data, bytes_);
}

Status GuardedBuffer::write_repeated(const void* data, std::size_t period) {
  PURLIN_TRY(device_->write(*buffer_, zone_, data, std::min(period, bytes_)));
  // What is there doubles with each copy, so the parts never overlap.
  for (std::size_t have = period; have < bytes_; have *= 2)
    PURLIN_TRY(
        device_->copy(*buffer_, zone_ + have, *buffer_, zone_, std::min(have, bytes_ - have)));
  return Status::ok();
}

Status GuardedBuffer::read(void* data, std::size_t offset, std::size_t bytes) const {
  return device_->read(*buffer_, zone_ + offset, data, bytes);
}

Status GuardedBuffer::fill(std::uint8_t byte) {
  return device_->fill(*buffer_, zone_, byte, bytes_);
}

Status GuardedBuffer::copy_from(const GuardedBuffer& other) {
  return device_->copy(*buffer_, zone_, *other.buffer_, other.zone_, bytes_);
}

Result<std::optional<std::string>> GuardedBuffer::check() {
  std::vector<std::uint8_t> before(zone_), after(zone_);
  PURLIN_TRY(device_->read(*buffer_, 0, before.data(), zone_));
  PURLIN_TRY(device_->read(*buffer_, zone_ + bytes_, after.data(), zone_));
  const std::vector<std::uint8_t> intact(zone_, kZoneByte);
  std::optional<std::string> found;
  const auto changed = [&](const std::vector<std::uint8_t>& zone) {
    std::size_t count = 0;
    for (const std::uint8_t byte : zone) count += byte != kZoneByte;
    return fmt::format("{} byte{} changed", count, count == 1 ? "" : "s");
  };
  if (after != intact) {
    std::size_t at = 0;
    while (after[at] == kZoneByte) ++at;
    found =
        fmt::format("byte {} of {}, {} past its end ({})", bytes_ + at, bytes_, at, changed(after));
  } else if (before != intact) {
    std::size_t at = zone_;
    while (before[at - 1] == kZoneByte) --at;
    found = fmt::format("byte -{}, before its start ({})", zone_ - at + 1, changed(before));
  }
  if (found) PURLIN_TRY(paint());
  return found;
}

}  // namespace purlin::measure
