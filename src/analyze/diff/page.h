// SPDX-License-Identifier: Apache-2.0
// A diff as one HTML page: the two sides, causes of the change, and a table of items with a bar for
// each change. It opens without a network and runs no script. Names come from profiles and are
// escaped. A pure function.
#pragma once

#include "analyze/diff/diff.h"

#include <string>

namespace purlin::analyze {

// `rows`: items shown of each kind, 0 for all.
std::string render_diff_page(const Diff& diff, int rows = 200);

}  // namespace purlin::analyze
