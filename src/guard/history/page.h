// SPDX-License-Identifier: Apache-2.0
// A history as one HTML page: a chart for each series and a table of the changes of its level. It
// opens without a network and runs no script. Names come from files and are escaped.
//
// A pure function.
#pragma once

#include "guard/history/history.h"

#include <string>
#include <vector>

namespace purlin::guard {

std::string render_history_page(const History& history, const std::vector<Series>& series);

}  // namespace purlin::guard
