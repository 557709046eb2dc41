// SPDX-License-Identifier: Apache-2.0
// docs/reference/cli.md, in Markdown. A pure function; no failure.
#pragma once

#include "cli/help/page.h"

namespace purlin::cli {

std::string reference(const Manual& manual);

}  // namespace purlin::cli
