// SPDX-License-Identifier: Apache-2.0
// The [library] table of a spec. Pure; kInvalid with where the mistake stands.
#pragma once

#include "base/status.h"
#include "base/toml.h"
#include "model/spec/library_operation.h"

namespace purlin {

Result<LibraryOperation> read_library_operation(const Toml& node);

}  // namespace purlin
