// SPDX-License-Identifier: Apache-2.0
#include "tune/space/library_space.h"

#include "tune/space/build.h"

#include <algorithm>
#include <set>

namespace purlin::tune {

Result<LibraryChoices> library_choices(KernelSpec& spec, const gpu::LibrarySpace& found) {
  if (found.size() == 0)
    return error(Code::kInvalid, "{}: {} has no algorithm for it on this device", spec.file,
                 found.version);
  const std::size_t width = found.parameters.size();
  std::vector<Parameter> parameters;
  for (std::size_t column = 0; column < width; ++column) {
    std::set<std::int32_t> values;
    for (std::size_t i = column; i < found.values.size(); i += width)
      values.insert(found.values[i]);
    Parameter& parameter = parameters.emplace_back();
    parameter.name = found.parameters[column];
    for (const std::int32_t value : values) parameter.values.emplace_back(std::int64_t{value});
  }
  LibraryChoices choices;
  if (!found.proposals.empty()) {
    choices.default_config = found.config(found.proposals.front());
    for (Parameter& parameter : parameters)
      parameter.preset = *choices.default_config->find(parameter.name);
  }
  std::vector<Config> configs;
  configs.reserve(found.size());
  for (std::size_t row = 0; row < found.size(); ++row) configs.push_back(found.config(row));
  PURLIN_ASSIGN(choices.space, list_space(parameters, configs));
  for (const std::size_t row : found.proposals)
    if (const auto index = choices.space.find(found.config(row)))
      choices.proposals.push_back(*index);
  spec.parameters = std::move(parameters);
  return choices;
}

}  // namespace purlin::tune
