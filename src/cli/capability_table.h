// SPDX-License-Identifier: Apache-2.0
// The capabilities of `purlin doctor` as a text for people. A pure function; no failure.
#pragma once

#include "base/output/terminal.h"
#include "model/device/capability.h"

#include <string>
#include <vector>

namespace purlin::cli {

// An advice that several capabilities share is printed at the first one. The others name it.
std::string render_capabilities(const std::vector<Capability>& capabilities,
                                const Terminal& terminal);

}  // namespace purlin::cli
