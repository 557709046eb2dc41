// SPDX-License-Identifier: Apache-2.0
// What a node shed, as one text of a table's column: lines of "cause<TAB>batches<TAB>rows<TAB>
// bytes". Pure functions; damaged lines are left out.
#pragma once

#include "store/batch.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

std::string shed_text(const std::vector<BatchShed>& shed);
std::vector<BatchShed> parse_shed(std::string_view text);

}  // namespace purlin::store
