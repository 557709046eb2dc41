// SPDX-License-Identifier: Apache-2.0
// The file of outcomes in the user's state folder: one line for each change that was carried out
// and measured. Appended to, synced, never rewritten. docs/formats/outcomes.md.
#pragma once

#include "analyze/advise/learn/outcome.h"
#include "cli/frame/command.h"

#include <string>
#include <vector>

namespace purlin::cli {

std::string outcomes_path();
// What is readable of it; a line that is not is left out, with one warning for all. No file is no
// error.
std::vector<analyze::Outcome> read_outcomes(const Context& context);
// kInvalid where the same pair of profiles is recorded for the rule.
Status append_outcome(const analyze::Outcome& outcome);

}  // namespace purlin::cli
