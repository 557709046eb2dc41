// SPDX-License-Identifier: Apache-2.0
// Problems: the text of an instruction with the types of its operands, from which
// model/problem/problem.h reads a problem shape, and that shape put into a launch. Texts are
// foreign: lengths and counts are bounded. Pure functions.
#pragma once

#include "model/problem/problem.h"
#include "profile/import/hlo/launches.h"
#include "profile/import/hlo/module.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::hlo {

inline constexpr std::size_t kMaxType = 1024, kMostOperands = 64;  // what is read of each

// Types of the operands; "" of one that is not known.
std::vector<std::string_view> operand_types(const Computation& computation,
                                            const Instruction& each);
// An instruction with the types of its operands, as problem_of_hlo reads it.
std::string with_types(std::string_view result, std::string_view opcode,
                       const std::vector<std::string_view>& operands, std::string_view attributes);
// Class, shape, type and FLOPs. A problem without dimensions has a class alone.
void take_problem(const Problem& problem, Launch& launch);

}  // namespace purlin::profile::hlo
