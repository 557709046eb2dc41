// SPDX-License-Identifier: Apache-2.0
// A gate's verdicts as OTLP/JSON metrics, which dashboards and alerts take: for each item its
// verdict, the ratio with its interval, and both times. docs/formats/export.md. Pure function.
#pragma once

#include "base/json/json.h"
#include "guard/report/report.h"

#include <cstdint>

namespace purlin::guard {

// `now_ns`: the end of the run, Unix time.
Json to_otlp(const Report& report, std::int64_t now_ns);

}  // namespace purlin::guard
