// SPDX-License-Identifier: Apache-2.0
// A gate's report as SARIF 2.1.0 (OASIS), which code hosts show next to the source. Each item that
// did not pass is one result, at the file of its kernel's spec where that is known. Fingerprints
// cover suite, kernel and shape: a host follows one finding from run to run. Pure function.
#pragma once

#include "base/json/json.h"
#include "guard/report/report.h"

#include <string>

namespace purlin::guard {

// File names become relative to the folder `root`; "" = they stay unchanged.
Json to_sarif(const Report& report, const std::string& root);

}  // namespace purlin::guard
