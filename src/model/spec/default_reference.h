// SPDX-License-Identifier: Apache-2.0
// The default config as the reference: the kernel itself, with the default config built in. A T1
// file has no other reference, and a TOML spec may ask for it (`[reference] config = "default"`).
// It finds configs that differ from the default, and cannot find a default that is wrong. Pure.
#pragma once

#include "model/spec/spec.h"

namespace purlin {

// Of a spec whose kernel, parameters, launch and arguments are read.
Reference default_config_reference(const KernelSpec& spec);
// Of that config in its place: the default at a problem.
Reference default_config_reference(const KernelSpec& spec, const Config& config);

}  // namespace purlin
