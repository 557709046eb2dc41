// SPDX-License-Identifier: Apache-2.0
// The option --phase of the verbs that report on a profile. Its values: analyze::phase_from_text.
#pragma once

#include "cli/frame/command.h"

namespace purlin::cli {

inline const OptionText kPhaseOption = {
    "Part of the run: steady, startup or all",
    "Where the steps of the program are known, the figures are of the steady state: the steps "
    "without the warm-up.",
    {{"steady", ""}, {"startup", ""}, {"all", ""}}};

}  // namespace purlin::cli
