// SPDX-License-Identifier: Apache-2.0
// Attribution: which factor of a matrix (build, toolkit, driver, device, …) caused a slowdown.
//
// A cell is one choice of level for each factor. A round holds one fresh process of every cell, in
// random order. The log ratio between the first levels and the last is divided among the factors.
// The share of a factor is its average effect over the orders in which the factors can be changed
// one at a time (Shapley 1953). Round by round the shares add up to the whole. An order counts only
// if all its cells were measured. Factors that no measured order separates are named together.
//
// Each round gives one value per factor. Where cells share rounds, intervals and p-values come from
// the exact signed-rank test over rounds. Cells recorded elsewhere (another driver, another device)
// share no rounds with the rest. They are compared by their medians, with a lower confidence that
// the result states. Pure functions.
#pragma once

#include "guard/gate/gate.h"

#include <map>
#include <string>
#include <vector>

namespace purlin::guard {

struct Factor {
  std::string name;                 // "build"
  std::string kind;                 // "code", "compiler", "driver", "hardware", "environment"
  std::vector<std::string> levels;  // the first is the old one, the last the new one
};

// The levels of a cell, one index per factor.
using Cell = std::vector<int>;

struct CellTimes {
  Cell cell;
  std::vector<double> times_ns;  // one median per round
  bool elsewhere = false;        // recorded on another machine or day: shares no rounds
};

struct Share {
  std::vector<std::size_t> factors;  // one, or several that no cell separates
  double ratio = 1, low = 1, high = 1;
  double confidence = 0;  // of the interval, achieved
  double p_value = 1;     // that it is 1, two-sided
  bool paired = false;    // from rounds; else from medians of separate recordings
};

struct Attribution {
  double ratio = 1, low = 1, high = 1;  // all last levels / all first levels
  bool paired = false;
  std::vector<Share> shares;  // heaviest first; the product of their ratios is near `ratio`
  // The largest change of a factor's effect with the levels of the others, as a ratio. Shares mean
  // little when it is large.
  double interaction = 1;
  std::string cause;   // kind of the factor that explains the change; "" = no change, "mixed"
  std::string reason;  // a sentence for a person
};

// `floor`: smaller changes count as none. Needs the cell of all first levels and the cell of all
// last levels. Without them there are no shares, and the reason names the missing cell.
Attribution attribute(const std::vector<Factor>& factors, const std::vector<CellTimes>& cells,
                      double floor);

}  // namespace purlin::guard
