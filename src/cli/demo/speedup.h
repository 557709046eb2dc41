// SPDX-License-Identifier: Apache-2.0
// Speedup: how much faster a program became, from pairs of its processes.
//
// A pair is one process before and one after, back to back, in an order that a coin decides. The
// load of the machine changes between pairs, and both processes of a pair meet it alike. The
// estimate and its interval are those of the gate (guard/gate/gate.h). Thread-safety: one thread.
#pragma once

#include "base/json/json.h"
#include "base/random.h"
#include "base/status.h"

#include <functional>
#include <string>

namespace purlin::cli {

enum class ProgramArm { kBefore, kAfter };

struct Speedup {
  double before_ms = 0, after_ms = 0;      // medians over the processes of each arm
  double estimate = 1, low = 1, high = 1;  // before / after, above 1 = faster; its interval
  double confidence = 0;                   // of the interval, achieved
  int pairs = 0;

  // False when the interval contains 1: the measurement shows no difference.
  bool resolved() const { return low > 1 || high < 1; }
  // "1.52x faster", "1.10x slower", "no difference shown"
  std::string effect_text() const;
  // "96 % interval [1.41, 1.66], 8 pairs of processes"
  std::string interval_text() const;
};
Json to_json(const Speedup& speedup);

// `measure` runs one process of an arm and returns its time, in ms. REQUIRES: pairs > 0.
Result<Speedup> measure_speedup(int pairs, Random& random,
                                const std::function<Result<double>(ProgramArm)>& measure);

}  // namespace purlin::cli
