// SPDX-License-Identifier: Apache-2.0
// OpSchema: the arguments of an op of PyTorch, from its schema in an execution trace:
// "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)". Pure
// functions; a text that is no schema gives an empty one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::flow {

struct SchemaArgument {
  std::string name;
  bool written = false;  // "(a!)"
};

struct OpSchema {
  std::uint64_t identity = 0;  // hash of name and overload
  std::vector<SchemaArgument> arguments;
  bool generator = false;  // it takes random numbers

  bool writes(std::size_t argument) const {
    return argument < arguments.size() && arguments[argument].written;
  }
  bool writes_any() const;
  // Whether that argument only takes a result: `out`, `out0`, ...
  bool is_result(std::size_t argument) const;
};

OpSchema parse_schema(std::string_view text);

}  // namespace purlin::profile::flow
