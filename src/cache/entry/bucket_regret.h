// SPDX-License-Identifier: Apache-2.0
// What a bucket costs: at which of its shapes to find out, and what to do where it is too much.
//
// The regret of a shape is the time of the bucket's config there over the time of that shape's own
// best, so 1.00 is no loss. Pure functions; nothing fails.
#pragma once

#include "cache/entry/entry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace purlin::cache {

// Above this the rule is worth changing: more than tuning usually leaves between ties.
constexpr double kRegretBound = 1.05;

// Up to `count` shapes of the entry's bucket at which it would be served, other than the one it was
// measured at, spread over the bucket; the same for the same seed. Buckets without an end are
// looked at up to four times the measured extent. Empty where the bucket holds no other such shape.
std::vector<ProblemShape> regret_shapes(const Entry& entry, std::size_t count, std::uint64_t seed);

// The shape with the highest regret; nullopt where none was measured.
std::optional<std::pair<ProblemShape, double>> worst_regret(const Entry& entry);

// A sentence with a finer rule, where the worst regret is above the bound; else "".
std::string bucket_advice(const Entry& entry, double bound = kRegretBound);

}  // namespace purlin::cache
