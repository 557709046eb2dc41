// SPDX-License-Identifier: Apache-2.0
// What a spec needs and a signature does not say: dimensions, sizes of buffers, values of
// parameters, the geometry of the launch. From names and uses, by rules that are safe: buffers are
// large enough for each row-major index. Pure functions.
#pragma once

#include "tune/draft/kernel_source.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::tune {

struct GuessedParameter {
  std::string name;
  std::vector<std::int64_t> values;  // not empty
  std::int64_t preset = 0;           // one of them
  std::string comment;
};

struct LaunchGuess {
  std::vector<std::string> dimensions;  // names of [problem]; not empty
  std::int64_t extent = 1;              // default of each
  bool dimension_added = false;         // the kernel takes none
  std::vector<GuessedParameter> parameters;
  std::vector<std::string> grid, block;  // expressions
  std::vector<std::string> constraints;
  bool block_fixed = false;  // the size of a block may be part of the source's algorithm
};

LaunchGuess guess_launch(const KernelSource& kernel);
// The value of a scalar argument, an expression.
std::string guess_value(const SourceArgument& argument, const KernelSource& kernel,
                        const LaunchGuess& guess);
// The extents of a buffer.
std::vector<std::string> guess_shape(const SourceArgument& argument, const LaunchGuess& guess);

}  // namespace purlin::tune
