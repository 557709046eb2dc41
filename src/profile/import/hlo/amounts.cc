// SPDX-License-Identifier: Apache-2.0
#include "profile/import/hlo/amounts.h"

#include <algorithm>
#include <string_view>

namespace purlin::profile::hlo {
namespace {

bool is_slice(std::string_view opcode) {
  return opcode == "slice" || opcode == "dynamic-slice" || opcode == "gather";
}

Amount amount_of(std::string_view type) {
  Amount out;
  for (const ArrayType& each : types_of(type)) out.add({each.elements, each.bytes});
  return out;
}

Amount written_to(const Computation& fused, const std::vector<Amount>& wholes, std::uint32_t value,
                  bool in_tuple = false) {
  const Instruction& made = fused.instructions[value];
  Amount out;
  if (made.opcode == "tuple" && !in_tuple) {
    for (const std::uint32_t member : made.operands)
      if (member < value) out.add(written_to(fused, wholes, member, true));
    return out;
  }
  if (made.opcode == "dynamic-update-slice" && made.operands.size() > 1 && made.operands[1] < value)
    return wholes[made.operands[1]];
  return wholes[value];
}

}  // namespace

std::vector<Amount> amounts_of(const Computation& computation) {
  std::vector<Amount> out;
  for (const Instruction& each : computation.instructions) out.push_back(amount_of(each.type));
  return out;
}

// Users stand behind what they use.
std::vector<Amount> reads_of(const Computation& fused, const std::vector<Amount>& wholes) {
  const std::size_t count = fused.instructions.size();
  std::vector<Amount> reads(count);
  std::vector<double> needed(count, 0);
  if (fused.root < count) needed[fused.root] = kMostElements;
  for (std::size_t i = count; i-- > 0;) {
    const Instruction& user = fused.instructions[i];
    const Amount& whole = wholes[i];
    reads[i] = {std::min(needed[i], whole.elements), 0};
    if (whole.elements > 0) reads[i].bytes = whole.bytes / whole.elements * reads[i].elements;
    for (std::size_t at = 0; at < user.operands.size(); ++at) {
      const std::uint32_t value = user.operands[at];
      if (value >= i) continue;
      if (at == 0 && user.opcode == "dynamic-update-slice") continue;
      const bool part =
          (at == 0 && is_slice(user.opcode)) || wholes[value].elements == whole.elements;
      needed[value] += part ? reads[i].elements : kMostElements;
    }
  }
  return reads;
}

Amount written_by(const Computation& fused, const std::vector<Amount>& wholes) {
  return written_to(fused, wholes, fused.root, false);
}

}  // namespace purlin::profile::hlo
