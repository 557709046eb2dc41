// SPDX-License-Identifier: Apache-2.0
// The op in the name of a program's range, reduced to the parts that repeat. PyTorch writes
// "aten::mm, seq = 3, op_id = 12, sizes = [[8, 2], [2, 4]], input_op_ids = [(7,0)]".
// The numbers of this one call are removed: with them every launch would get a separate row.
//
// Pure functions over foreign text. They allocate nothing, because they run on the program's
// threads. The meaning of the sizes is found later, outside the program (profile/ops/op_names.h).
#pragma once

#include <cstddef>
#include <string_view>

namespace purlin::profile::capture {

constexpr std::size_t kMaxOpText = 512;
constexpr std::size_t kMaxRangeName = 4096;  // bytes of a name that are looked at

struct OpText {
  char bytes[kMaxOpText];
  std::size_t size = 0;
  bool is_op = false;  // named by a framework, not by the user

  std::string_view view() const { return {bytes, size}; }
};

// "aten::mm, sizes = [[8, 2], [2, 4]]". Sizes that do not fit, or do not end, are left out: a part
// of a list would be another shape.
void read_range_name(std::string_view name, OpText& out);
// The same for a name in the system's wide characters, at most kMaxOpText of them.
void read_range_name(const wchar_t* name, OpText& out);

// Without its sizes: "aten::mm".
std::string_view op_name(std::string_view op_text);

}  // namespace purlin::profile::capture
