// SPDX-License-Identifier: Apache-2.0
// Plan: in which order to do what is recommended, and what the first steps make pointless.
// Restructuring comes before tuning: a kernel that goes need not be tuned. Within that order, the
// greatest saving for the effort comes first. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct Advice;
struct Facts;

struct PlanStep {
  std::size_t intervention = 0;    // index into Advice::interventions
  double saved_share = 0;          // on top of the steps before it
  std::size_t obsolete_after = 0;  // the step, from 1, that takes most of its saving; 0: none
};

// Weights of the efforts, in days: "hours" 0.5, "days" 3, "weeks" 15.
double effort_days(std::string_view effort);

// Into Advice::plan. It needs the ranked interventions, and marks the listed kernels that a step of
// the plan makes pointless to tune.
void add_plan(const Facts& facts, Advice& advice);

}  // namespace purlin::analyze
