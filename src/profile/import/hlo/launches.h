// SPDX-License-Identifier: Apache-2.0
// Launches: what the kernels of a compiled XLA program compute, and in which order the schedule
// launches them. A fusion that XLA compiles itself has one kernel with the name of its instruction.
// A call of a library (cuBLAS, cuDNN) has one or more kernels with the library's names.
//
// What the text does not tell for certain has no shape: scatters, calls of unknown libraries. Pure
// functions over foreign text, which must outlive the program; sizes are bounded.
#pragma once

#include "profile/import/hlo/module.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::hlo {

struct Launch {
  std::string_view instruction;  // "custom-call.3"; of the module's text
  std::string kernel;            // "loop_add_fusion_1"; "" of a library
  std::string op;                // "jit(step)/jvp()/dot_general", else the instruction's opcode
  std::string shape;             // problem shape (model/problem/problem.h); "" unknown
  std::string dtype;
  std::string_view op_class;  // "gemm"
  double elements = 0;        // Of a loop fusion; 0: not known.
  double flops = 0;           // Of a product or convolution.
  double bytes = 0;           // that a fusion reads and writes; 0: not known
  bool chained = false;       // reads the result of the library call before it: order is certain
  // Equal for instructions of equal types and ops: XLA compiles one kernel for all of them, under
  // the name of the first.
  std::uint64_t signature = 0;
  bool library() const { return kernel.empty(); }
  bool operator==(const Launch&) const = default;
};

struct Program {
  std::string name;  // of the module
  std::vector<Launch> launches;
  // Indices into launches in the order of the schedule; the body of a loop stands there twice.
  std::vector<std::uint32_t> order;
};

Program program_of(const Module& module);
// "gemm_fusion_dot.12" -> "gemm_fusion_dot_12".
std::string kernel_name(std::string_view instruction);

}  // namespace purlin::profile::hlo
