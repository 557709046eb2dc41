// SPDX-License-Identifier: Apache-2.0
// Whether the config of an entry is valid at a problem shape other than the measured one.
//
// A bucket says that the winner is about as fast at the neighbours of its shape. It does not say
// that the winner is valid there: "N % VECTOR == 0" holds at N=1024 and not at N=1001. An entry
// has the constraints of its spec that name a dimension. A lookup serves the entry only where they
// hold. Pure functions, safe from any thread.
#pragma once

#include "base/status.h"
#include "cache/entry/entry.h"
#include "model/expression/integer_program.h"

#include <optional>
#include <string>
#include <vector>

namespace purlin::cache {

// Ok, or kInvalid naming the first constraint that does not hold at `problem`.
Status check_shape(const Entry& entry, const ProblemShape& problem);

// The same check for the hot path; its inputs are the extents in the order of `dimensions`.
// nullopt where a constraint uses what only check_shape evaluates (reals, texts, …).
std::optional<IntegerProgram> compile_shape_check(const Entry& entry,
                                                  const std::vector<std::string>& dimensions,
                                                  ConstraintCache& constraints);

}  // namespace purlin::cache
