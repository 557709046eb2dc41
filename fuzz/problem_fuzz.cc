// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "model/problem/problem.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// Lines of the input are: the op, then one line for each of its inputs: extents, type, value. Sizes
// are whatever a trace may claim. What is read must be a text that reads back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const Problem& problem) {
    const std::string shape = to_text(problem.dimensions);
    if (to_text(dimensions_from_text(shape)) != shape) std::abort();
  };
  check(problem_of_hlo(text));
  const NvtxOp range = op_from_nvtx(text);
  check(problem_of(range.op, range.inputs));

  const std::vector<std::string> lines = split(text, '\n');
  std::vector<std::vector<std::string>> fields;
  for (std::size_t i = 1; i < lines.size() && i < 20; ++i) fields.push_back(split(lines[i], ';'));
  std::vector<OpInput> inputs;
  for (const std::vector<std::string>& field : fields) {
    OpInput input;
    for (const std::string& extent : split(field[0], ','))
      if (const auto value = parse_int(extent)) input.dimensions.push_back(*value);
    if (field.size() > 1) input.dtype = field[1];
    if (field.size() > 2) input.concrete = field[2];
    if (field.size() > 3) input.members = {input.dimensions, input.dimensions};
    inputs.push_back(input);
  }
  if (!lines.empty()) check(problem_of(lines[0], inputs));
  return 0;
}
