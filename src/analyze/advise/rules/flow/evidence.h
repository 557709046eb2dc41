// SPDX-License-Identifier: Apache-2.0
// Evidence: which ops of a recorded data flow an intervention is about: how many, their time, where
// the program runs them, and the longest one, for the reader to find it. Pure functions over a
// walk.
#pragma once

#include "analyze/advise/rules/flow/launches.h"

namespace purlin::analyze {

// `what` names them. `launches`: all that these ops launch. REQUIRES: at least one of `works`.
void show_work(const Walk& walk, const FlowFound& found, const char* what, const FlowWorks& works,
               const Launches& launches, Intervention& out);

}  // namespace purlin::analyze
