// SPDX-License-Identifier: Apache-2.0
// What a kernel's source says about its kernels: arguments, tunable constants, axes of the launch.
// OpenCL C, CUDA C++ and Triton. A draft of a spec is made of it (tune/draft/spec_draft.h).
//
// Plain values and pure functions. The source is read as text, without a compiler: what cannot be
// recognised is left out, and never guessed here.
#pragma once

#include "base/status.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::tune {

struct SourceArgument {
  std::string name;
  std::string type;   // as written: "const float*"
  std::string dtype;  // "f32"; "" = none that a spec has
  int width = 1;      // of a vector type: float4 has 4
  bool pointer = false;
  bool local = false;  // OpenCL's local memory, whose size the host gives
  bool read = false, written = false;
};

// A constant that a compiler option sets.
struct SourceParameter {
  std::string name;
  std::optional<std::int64_t> preset;
  std::vector<std::int64_t> values;  // that the source names; may be empty
  std::string origin;                // for people: "a macro", "a template parameter"
  bool elsewhere = false;            // in a file of several kernels: not in the body of this one
};

struct SourceAxis {
  bool used = false;
  std::string bound;                 // the argument that its index is compared with; "" = none seen
  std::vector<std::string> factors;  // parameters by which a thread's index is multiplied
};

struct KernelSource {
  std::string language;  // "opencl", "cuda", "triton"
  std::string name;
  std::string entry;  // with template arguments
  std::vector<SourceArgument> arguments;
  std::vector<SourceParameter> parameters;
  std::vector<std::string> fixed;  // constants that no compiler option can set
  std::array<SourceAxis, 3> axes;
  std::vector<std::string> required_block;  // reqd_work_group_size
  bool shares_memory = false;               // threads of a block work together
};

// Every kernel with a body, in order. kInvalid: the name ends in none of .cl, .cu, .cuh and .py, or
// there is no kernel.
Result<std::vector<KernelSource>> read_kernels(const std::string& path, std::string_view text);

// One per language.
std::vector<KernelSource> read_c_kernels(std::string_view text, bool cuda);
std::vector<KernelSource> read_triton_kernels(std::string_view text);

}  // namespace purlin::tune
