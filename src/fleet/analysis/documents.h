// SPDX-License-Identifier: Apache-2.0
// Documents: conclusions as JSON members of the server's answers (docs/formats/fleet-analysis.md).
// Units are in the names; a refusal is `refused: {why}`. Pure, safe on any thread. Cannot fail.
#pragma once

#include "base/json/json.h"
#include "fleet/analysis/compare.h"
#include "fleet/analysis/coverage.h"
#include "fleet/analysis/roofs.h"
#include "fleet/analysis/slower.h"
#include "fleet/analysis/stragglers.h"

namespace purlin::fleet::analysis {

Json to_json(const Coverage& coverage);
Json to_json(const std::vector<RoofRow>& roofs);
Json to_json(const Comparison& comparison);
Json to_json(const Slower& slower);
Json to_json(const Stragglers& stragglers);

}  // namespace purlin::fleet::analysis
