// SPDX-License-Identifier: Apache-2.0
// How far what other runs say of configs is to be believed here, by the order of a few configs that
// were measured here.
//
// Only the order counts, for times of different devices do not compare: a Plackett-Luce model, in
// which the next fastest of the configs left is each of them with odds that fall with what the runs
// say of it. How steeply they fall is not known: steeply or gently (the runs help), not at all
// (chance), or they rise (the runs mislead). What was observed makes these likelier or less.
// Thread-safety: pure functions. Never fail.
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
// Of the pairs whose order is known, the share that the runs have right; 1 where there is none.
double agreement_with_runs(const std::vector<Judged>& seen);

}  // namespace purlin::tune
