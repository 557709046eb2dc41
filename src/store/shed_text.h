// SPDX-License-Identifier: Apache-2.0
// What a node shed and how full its spool is, as one text of a table's column: lines of
// "cause<TAB>batches<TAB>rows<TAB>bytes", and one of "spool<TAB>bytes<TAB>limit" where that is
// known. Pure functions; damaged lines are left out, as readers before that line do with it.
#pragma once

#include "store/batch.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

std::string shed_text(const Batch& batch);
struct ShedAndSpool {
  std::vector<BatchShed> shed;
  SpoolFill spool;
};
ShedAndSpool parse_shed(std::string_view text);

}  // namespace purlin::store
