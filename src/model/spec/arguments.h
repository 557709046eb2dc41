// SPDX-License-Identifier: Apache-2.0
// One of [[arguments]] of a spec: role, type, extents, contents and layout. Private to model/spec.
// A free function; a failure names the place in the spec.
#pragma once

#include "base/status.h"
#include "base/toml.h"
#include "model/spec/spec.h"

namespace purlin {

Result<Argument> read_argument(const Toml& node);

}  // namespace purlin
