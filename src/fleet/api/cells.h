// SPDX-License-Identifier: Apache-2.0
// From the store's cells to those of fleet/analysis. Free functions; failure: the store's, and
// kInvalid where a question selects too much.
#pragma once

#include "fleet/analysis/cells.h"
#include "fleet/analysis/coverage.h"
#include "store/store.h"

#include <vector>

namespace purlin::fleet {

// By kernel, shape, dtype, GPU model, op, role, build, driver, runtime, node and GPU.
Result<std::vector<analysis::Cell>> read_cells(store::Reader& reader, const store::Filter& filter,
                                               store::Step step);
// By kernel, its name as recorded, shape, dtype, GPU model, op and role: over all nodes and times.
Result<std::vector<analysis::Cell>> read_totals(store::Reader& reader, const store::Filter& filter);
Result<std::vector<analysis::CoverageCell>> read_coverage(store::Reader& reader,
                                                          const store::Filter& filter);

}  // namespace purlin::fleet
