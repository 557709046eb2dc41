// SPDX-License-Identifier: Apache-2.0
// Names in the expressions of a spec: each has a value in the place where it is used. Private to
// model/spec. A free function; a failure names the place in the spec.
#pragma once

#include "base/status.h"
#include "model/spec/spec.h"

namespace purlin {

Status check_names(const KernelSpec& spec);
// Whether the reference takes the argument.
bool in_reference(const KernelSpec& spec, const Argument& argument);

}  // namespace purlin
