// SPDX-License-Identifier: Apache-2.0
// The steps of `purlin demo`, in the order of the loop: profile, tune, compare, guard.
//
// Each step runs real commands through a DemoRun and returns its figures as JSON, a member of
// purlin.demo/1. One thread. Failure: the Status of the command that failed.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "cli/demo/run.h"
#include "cli/demo/speedup.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace purlin::cli {

// Profiles the sample program with default configs. `hottest` names the stage with the largest
// share of the device's time.
Result<Json> profile_sample(const DemoRun& run);

// The measured config nearest above `factor` times the winner's time. None: null. `tuned` is the
// document of `tune --json`, and outlives the result.
const Json* slower_config(const Json& tuned, double factor);
// The smallest factor that the demo plants. The gate finds it on a GPU and on a busy CPU.
inline constexpr double kLeastPlantedSlowdown = 1.3;

// Whether to search again after so many searches found no config slower than the winner, the last
// of which tried so many configs in so many seconds. On a busy machine seconds say little: a few
// configs show nothing.
bool is_worth_another_search(int searches, std::size_t tried, double seconds);

// Tunes a kernel within `budget` and caches the winner. `document` is that of `tune --json`. A
// search that measured no config slower than the winner is made again, for twice the time, as long
// as that is worth it: the gate would have nothing to show.
struct TunedKernel {
  Json document;
  Json figures;
};
Result<TunedKernel> tune_kernel(const DemoRun& run, const std::string& kernel,
                                const std::string& budget);

// Measures the sample program with default configs and with the cache, in turns. Fails when the
// program does not find the winner for `kernel`.
Result<Speedup> compare_sample(const DemoRun& run, std::string_view kernel);

// Writes a suite of `kernel` with the config from the cache, and records its baseline.
Status record_baseline(const DemoRun& run, std::string_view kernel);

// What the gate reported for the suite.
struct GateAnswer {
  Json document;         // of `guard check --json`
  bool decided = false;  // pass or regression, not inconclusive
  bool red = false;      // regression
};
// Fails on a regression: nothing has changed.
Result<GateAnswer> check_unchanged(const DemoRun& run);
// Replaces the winner by a slower config, and expects a regression. `planted` is that config. A
// config that the gate passes is followed by a slower one, as long as the search knows one.
struct PlantedSlowdown {
  GateAnswer answer;
  Json planted;
};
Result<PlantedSlowdown> check_slowdown(const DemoRun& run, const std::string& kernel,
                                       const Json& tuned);

}  // namespace purlin::cli
