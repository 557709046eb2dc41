// SPDX-License-Identifier: Apache-2.0
// Evaluation: compile + verify + measure of one config, and how it ended.
#pragma once

#include "base/json/json.h"
#include "model/expression/value.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

enum class EvaluationStatus {
  kOk,
  kInvalid,      // Breaks a constraint, a device limit or, once compiled, a limit of the spec.
  kCompile,      // The compiler refused it.
  kLaunch,       // The driver refused to load or launch it.
  kWrong,        // Outputs differ from the reference, or were not all written.
  kOutOfBounds,  // It wrote outside its buffers.
  kCrash,        // It ended the worker process.
  kTimeout,      // Compile or run took longer than allowed.
};

std::string_view status_name(EvaluationStatus status);  // "ok", "invalid", "compile", …
std::optional<EvaluationStatus> status_from_name(std::string_view name);

// No launch takes less than a nanosecond or more than a month: below, and beyond, a clock does not
// work. Such a time would win, or lose, for good.
constexpr double kLeastMs = 1e-6, kMostMs = 3e9;
inline bool is_time_ms(double ms) { return ms >= kLeastMs && ms <= kMostMs; }

struct Sample {
  double ms = 0;
  double sm_clock_mhz = 0;  // 0 = not known
};

struct Evaluation {
  Config config;
  EvaluationStatus status = EvaluationStatus::kOk;
  std::string message;          // why not ok
  std::vector<Sample> samples;  // in the order taken, warm-up left out
  double time_ms = 0;           // median of the samples; 0 unless ok
  bool raced_out = false;       // given up as too slow: few samples, so time_ms is rough
  double compile_s = 0, verify_s = 0, measure_s = 0;
  double cost_s = 0;             // what the evaluation took, all in; recorded cost for replay
  double cumulative_cost_s = 0;  // of the session, this one included
  int registers = 0;             // per thread; 0 = not known
  std::int64_t shared_bytes = 0, local_bytes = 0;
  bool cached_binary = false;  // the compiler was spared
  std::string how{};           // how it was timed: "event", "graph x32"; "" = not known
  int input_sets = 1;          // copies of the inputs that launches took in turn
  // Of one launch, and while launches follow each other; 0 = not measured. The error is relative.
  double energy_mj = 0, energy_error = 0, power_w = 0;
  // Facts of the compiled kernel, and of the hardware where they were read: by the names of
  // launch_counters.h, or those of a recording's profiler.
  std::map<std::string, double> counters{};
  double counters_s = 0;  // what reading those of the hardware took; part of cost_s

  bool ok() const { return status == EvaluationStatus::kOk; }
  // False of a config that the compiler, the driver or a limit on what it takes had out before it
  // was measured.
  bool was_measured() const {
    return measure_s > 0 ||
           (status != EvaluationStatus::kInvalid && status != EvaluationStatus::kCompile &&
            status != EvaluationStatus::kLaunch);
  }
};

// What a search makes as small as it can. Energy-delay product: mJ * ms.
enum class Objective { kTime, kEnergy, kEdp };
std::string_view objective_name(Objective objective);  // "time", "energy", "edp"
std::optional<Objective> objective_from_name(std::string_view name);
// In ms, mJ or mJ ms; infinite where the evaluation has it not.
double objective_value(const Evaluation& evaluation, Objective objective);

Json to_json(const Evaluation& evaluation);
// One with a time that no launch takes has status kLaunch: the clock did not work.
Result<Evaluation> evaluation_from_json(const Json& json);

// Median of the samples' times, in ms. REQUIRES: not empty.
double median_ms(const std::vector<Sample>& samples);

}  // namespace purlin
