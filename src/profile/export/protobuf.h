// SPDX-License-Identifier: Apache-2.0
// Protobuf messages, written without its library. A value; one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace purlin::profile {

// A protobuf message in the making.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& fixed64(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 1);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  Message& real(int field, double value) {
    return fixed64(field, std::bit_cast<std::uint64_t>(value));
  }
  Message& bytes(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.bytes_); }
  const std::string& data() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace purlin::profile
