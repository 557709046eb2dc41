// SPDX-License-Identifier: Apache-2.0
// The rows of a coarser period: all slots of a file as one, over all GPUs of a model, with half the
// buckets. Reads the file in one snapshot. Failure: see PeriodReader.
#pragma once

#include "store/sqlite/period_reader.h"
#include "store/sqlite/period_writer.h"

#include <cstdint>
#include <vector>

namespace purlin::store {

struct FoldedRows {
  std::vector<LabelledRow> rows;
  std::vector<LabelledCoverage> coverage;
  std::int64_t revision = 0;  // of the file
};
Result<FoldedRows> fold(PeriodReader& source, int scale);

}  // namespace purlin::store
