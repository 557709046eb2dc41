// SPDX-License-Identifier: Apache-2.0
// docs/reference/cli.md and environment.md, in Markdown. Pure functions; no failure.
#pragma once

#include "cli/help/page.h"

namespace purlin::cli {

std::string reference(const Manual& manual);
std::string environment_reference(const Manual& manual);

}  // namespace purlin::cli
