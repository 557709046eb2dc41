// SPDX-License-Identifier: Apache-2.0
// The times of a report for services that draw benchmarks over commits: github-action-benchmark
// (tool "customSmallerIsBetter") and Bencher (BMF). Both draw what the current code took. The
// verdict stays with the report. Items without a measurement are left out.
//
// Thread-safety: pure functions over a value.
#pragma once

#include "base/json/json.h"
#include "guard/report/report.h"

namespace purlin::guard {

// A list of {name, unit, value, range, extra}. docs/formats/guard.md names the members.
Json to_action_benchmark(const Report& report);

// {NAME: {"latency": {value, lower_value, upper_value}}} in ns.
Json to_bencher(const Report& report);

}  // namespace purlin::guard
