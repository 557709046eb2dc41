// SPDX-License-Identifier: Apache-2.0
// What Purlin knows of PyTorch's ops by their names: which make no value, draw random numbers or
// give a value to the host. And which need a part of their inputs only for a part of their result.
// An op that is not known has the most careful answer. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace purlin::profile::flow {

bool is_allocation(std::string_view op);    // It makes memory without a value.
bool is_metadata(std::string_view op);      // In place, of sizes and strides only.
bool is_random(std::string_view op);        // Two runs differ.
bool gives_to_host(std::string_view op);    // The host waits for a value or a size.
bool only_overwrites(std::string_view op);  // In place, without reading what was there.
bool is_batch_norm(std::string_view op);    // It updates its statistics, which no schema says.
bool is_collective(std::string_view op);    // It writes what it is given, which no schema says.

// What a part of an op's result needs.
enum class PartKind : std::uint8_t {
  kWhole,      // Everything: a sort, a sum over all.
  kElements,   // The same elements of inputs of the same size.
  kRows,       // The same rows of one input, all of the others.
  kProduct,    // As rows. A part of the columns needs a part of the other input.
  kSelection,  // As many elements of its source as it returns.
  kPart,       // Less work, of inputs that are not known.
};
struct PartNeed {
  PartKind kind = PartKind::kWhole;
  std::size_t argument = 0;  // Rows: of that input. Selection: the source.
};
PartNeed part_need(std::string_view op);

}  // namespace purlin::profile::flow
