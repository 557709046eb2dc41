// SPDX-License-Identifier: Apache-2.0
// Judges how far the results of other runs are to be believed here, by the order of a few configs
// that were measured here.
//
// Only the order counts, because times of different devices do not compare. The model is that of
// Plackett and Luce: each remaining config may be the next fastest. Its odds fall with its time in
// the other runs. The slope of this fall is not known. It is steep or gentle (the runs help), zero
// (chance), or the odds rise (the runs mislead). The observations make each of these cases more or
// less likely. Thread-safety: pure functions. Never fail.
#pragma once

#include <optional>
#include <vector>

namespace purlin::tune {

struct Judged {
  // More is slower, on a scale on which the configs of the space have a standard deviation of 1.
  double said = 0;
  std::optional<double> time;  // nullopt: it failed, so all that worked are faster
};

// Before anything is observed: recordings of other devices have always helped, so something has to
// speak against them; not much.
inline constexpr double kBelievedBefore = 0.8;

// The probability that the runs help.
double belief_in_runs(std::vector<Judged> seen);
// Of the pairs whose order is known, the share that the runs have right; 1 without such pairs.
double agreement_with_runs(const std::vector<Judged>& seen);

}  // namespace purlin::tune
