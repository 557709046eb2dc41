// SPDX-License-Identifier: Apache-2.0
// HloModule: a compiled program of XLA as its HLO text has it: computations, their instructions,
// types and operands. Texts come from the profiled process and are not trusted: sizes, counts and
// depths are bounded, and what cannot be read is left out. The views point into the text, which
// must outlive the module. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::profile::hlo {

// An array, or the members of a tuple, one after the other.
struct ArrayType {
  std::string_view dtype;  // as model/problem names it: "bf16"; "" unknown
  double elements = 0;
  double bytes = 0;
};
std::vector<ArrayType> types_of(std::string_view text);  // "(bf16[8,4]{1,0}, f32[])"

struct Instruction {
  std::string_view name;                // without "%"
  std::string_view opcode;              // "fusion"
  std::string_view type;                // "bf16[8,4]{1,0}"
  std::string_view attributes;          // what follows the operands
  std::vector<std::uint32_t> operands;  // of the same computation; kUnresolved: not known
};
inline constexpr std::uint32_t kUnresolved = 0xFFFFFFFFu;

struct Computation {
  std::string_view name;
  std::vector<Instruction> instructions;
  std::uint32_t root = kUnresolved;
};

struct Module {
  std::string_view name;  // "jit_step"
  std::vector<Computation> computations;
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  std::uint32_t entry = kUnresolved;
  bool scheduled = false;  // instructions stand in the order of their launches

  const Computation* find(std::string_view computation) const;
};

// The modules of a text, one after the other. Beyond the bounds nothing more is read.
std::vector<Module> read_modules(std::string_view text);

// The value of an attribute: of `kind=kLoop, calls=%f`, "kLoop" for "kind". "" where it has none.
std::string_view attribute(const Instruction& instruction, std::string_view key);
// Of its metadata: jax's name of the op, "jit(step)/jvp()/dot_general"; "" without.
std::string_view op_name(const Instruction& instruction);

}  // namespace purlin::profile::hlo
