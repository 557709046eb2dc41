// SPDX-License-Identifier: Apache-2.0
// Attribution: which factor of a matrix (build, toolkit, driver, device, …) a slowdown belongs to.
//
// A cell is one choice of level for each factor; a round holds one fresh process of every cell, in
// random order. Between the first levels and the last the log ratio is shared out among the factors
// as the average over the orders in which they can be changed one at a time (Shapley 1953);
// round by round the shares add up to the whole. An order counts only if all its cells were
// measured; factors that no measured order separates are named together. Each round gives one value
// per factor, so intervals and p-values come from the exact signed-rank test over rounds, where
// cells share rounds; cells recorded elsewhere (another driver, another device) have no rounds in
// common with the rest and are compared by their medians, with a lower confidence that is said.
// Pure functions.
#pragma once

#include "guard/gate/gate.h"

#include <map>
#include <string>
#include <vector>

namespace purlin::guard {

struct Factor {
  std::string name;                 // "build"
  std::string kind;                 // "code", "compiler", "driver", "hardware", "environment"
  std::vector<std::string> levels;  // the first is what was, the last what is
};

// The levels of a cell, one index per factor.
using Cell = std::vector<int>;

struct CellTimes {
  Cell cell;
  std::vector<double> times_ns;  // one median per round
  bool elsewhere = false;        // recorded on another machine or day: shares no rounds
};

struct Share {
  std::vector<std::size_t> factors;  // one, or several that cannot be told apart
  double ratio = 1, low = 1, high = 1;
  double confidence = 0;  // of the interval, achieved
  double p_value = 1;     // that it is 1, two-sided
  bool paired = false;    // from rounds; else from medians of separate recordings
};

struct Attribution {
  double ratio = 1, low = 1, high = 1;  // all last levels / all first levels
  bool paired = false;
  std::vector<Share> shares;  // heaviest first; the product of their ratios is near `ratio`
  // The largest change of a factor's effect with the levels of the others, as a ratio: shares say
  // little where it is large.
  double interaction = 1;
  std::string cause;   // kind of the factor that explains the change; "" = no change, "mixed"
  std::string reason;  // a sentence for a person
};

// `floor`: changes of less than this share count as none. Needs the cells of all first and of all
// last levels; otherwise the reason says what is missing and there are no shares.
Attribution attribute(const std::vector<Factor>& factors, const std::vector<CellTimes>& cells,
                      double floor);

}  // namespace purlin::guard
