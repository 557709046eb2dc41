// SPDX-License-Identifier: Apache-2.0
// A gate's report as SARIF 2.1.0 (OASIS), which code hosts show beside the source: one result per
// item that did not pass, at the file its kernel's spec stands in where that is known. Fingerprints
// are of suite, kernel and shape, so that a host follows one finding from run to run. Pure
// function.
#pragma once

#include "base/json/json.h"
#include "guard/report/report.h"

#include <string>

namespace purlin::guard {

// `root` is the folder that file names become relative to; "" leaves them as they are.
Json to_sarif(const Report& report, const std::string& root);

}  // namespace purlin::guard
