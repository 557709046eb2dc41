// SPDX-License-Identifier: Apache-2.0
// Values as they stand in a foreign trace, made into ours: numbers and times that may be text, huge
// or nonsense; strings with escapes and bytes that are no UTF-8; arrays of dimensions.
//
// All lenient: what is no such value is the fallback, what is too large is clamped. Names interns
// texts once, by their raw bytes; memory grows with what is new. Thread-safety: none.
#pragma once

#include "model/device/launch.h"
#include "model/problem/problem.h"
#include "profile/import/id_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

std::int64_t to_int(std::string_view raw, std::int64_t fallback = 0);
std::uint32_t to_u32(std::string_view raw);  // 0 where it is none
std::uint64_t to_u64(std::string_view raw);
std::optional<double> to_double(std::string_view raw);
// A stream, thread or queue as a number: digits, 0x…, or the digits that end a text ("stream 7").
std::optional<std::uint64_t> to_id(std::string_view raw);
// Microseconds, with a fraction or exponent, as ns. Nothing where it is no number or beyond the
// times that 64 bits hold.
std::optional<std::int64_t> us_to_ns(std::string_view raw);
Dim3 to_dim3(std::string_view raw);  // "[64, 2, 1]"
// The value after "KEY:" in XLA's "regs:32 grid:8,1,1 …".
std::string_view detail_of(std::string_view details, std::string_view key);
// Escapes undone, bytes that are no UTF-8 replaced, cut at max_bytes.
std::string to_text_value(std::string_view raw, std::size_t max_bytes);
// Kineto's "Input Dims", "Input type" and "Concrete Inputs". Views into `types` and `concrete`.
std::vector<OpInput> to_inputs(std::string_view dims, std::string_view types,
                               std::string_view concrete);
// The dimensions of the inputs as text, "64x1024,4096": for ops without a problem shape.
std::string dims_text(const std::vector<OpInput>& inputs);

class Names {
 public:
  static constexpr std::size_t kMaxNameBytes = std::size_t{32} << 10;
  static constexpr std::size_t kMaxAllBytes = std::size_t{256} << 20;

  Names();
  // Index of the text; of "(other names)" once kMaxAllBytes are held.
  std::uint32_t of_raw(std::string_view raw);  // as it stands in JSON
  std::uint32_t of_text(std::string text);     // unchanged
  const std::string& operator[](std::uint32_t index) const { return texts_[index]; }
  std::size_t size() const { return texts_.size(); }
  bool full() const { return full_; }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
  IdTable by_text_, by_raw_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace purlin::profile
