// SPDX-License-Identifier: Apache-2.0
// The values of a parameter of a spec: a list, powers of two, or a range. Private to model/spec. A
// free function; a failure names the place in the spec.
#pragma once

#include "base/status.h"
#include "base/toml.h"
#include "model/spec/spec.h"

namespace purlin {

// `parameter` has its name; its values, its default and its condition are filled in.
Status read_parameter(const Toml& node, Parameter& parameter);

}  // namespace purlin
