// SPDX-License-Identifier: Apache-2.0
#include "profile/import/hlo/problems.h"

#include <fmt/core.h>

#include <algorithm>

namespace purlin::profile::hlo {

std::vector<std::string_view> operand_types(const Computation& computation,
                                            const Instruction& each) {
  std::vector<std::string_view> out;
  for (const std::uint32_t operand : each.operands)
    out.push_back(operand < computation.instructions.size() ? computation.instructions[operand].type
                                                            : std::string_view());
  return out;
}

std::string with_types(std::string_view result, std::string_view opcode,
                       const std::vector<std::string_view>& operands, std::string_view attributes) {
  std::string out = fmt::format("%x = {} {}(", result.substr(0, kMaxType), opcode);
  for (std::size_t i = 0; i < std::min(operands.size(), kMostOperands); ++i)
    out += fmt::format("{}{} %o", i == 0 ? "" : ", ", operands[i].substr(0, kMaxType));
  return out + ")" + std::string(attributes);
}

void take_problem(const Problem& problem, Launch& launch) {
  launch.op_class = problem.op_class;
  launch.shape = to_text(problem.dimensions);
  launch.dtype = problem.dimensions.empty() ? "" : problem.dtype;
  const auto at = [&](const char* name) {
    return std::max(1.0, static_cast<double>(problem[name]));
  };
  if (problem.dimensions.empty()) return;
  if (problem.op_class == "gemm") launch.flops = 2 * at("B") * at("M") * at("N") * at("K");
  if (problem.op_class == "conv")
    launch.flops = 2 * at("N") * at("K") * at("Z") * at("P") * at("Q") * at("C") / at("groups") *
                   at("T") * at("R") * at("S");
}

}  // namespace purlin::profile::hlo
