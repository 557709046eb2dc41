// SPDX-License-Identifier: Apache-2.0
// The space of a spec with a [library]: what the library accepted on the device, as configs.
//
// The default config is the library's own first choice, what a program gets untuned; its further
// proposals are worth measuring first. Pure functions.
#pragma once

#include "gpu/device.h"
#include "model/spec/spec.h"
#include "tune/space/space.h"

#include <cstddef>
#include <vector>

namespace purlin::tune {

struct LibraryChoices {
  Space space;
  std::optional<Config> default_config;  // nullopt: the library proposes nothing
  std::vector<std::size_t> proposals;    // by index in the space, in the library's order
};

// `spec.parameters` take the values that occur. kInvalid when the library accepted nothing.
Result<LibraryChoices> library_choices(KernelSpec& spec, const gpu::LibrarySpace& found);

}  // namespace purlin::tune
