// SPDX-License-Identifier: Apache-2.0
// Deterministic contents of a kernel's inputs: element i depends on (seed, i) alone, so that
// contents are the same for every process, thread count and run. Large arguments are filled by
// several threads. Failure: none. Thread-safety: free functions.
#pragma once

#include "model/spec/spec.h"

#include <cstddef>
#include <cstdint>

namespace purlin::measure {

// The seed of one argument: distinct for each argument of each (spec, extra) seed.
std::uint64_t contents_seed(std::uint64_t spec_seed, std::uint64_t extra_seed, std::size_t index);

// Writes `count` elements of `argument`'s dtype by its fill rule. For integers uniform(a, b)
// includes both ends. Every element of iota is exact: it restarts at the dtype's last exactly
// representable step (256 for bf16, 2048 for f16, 2^24 for f32, the maximum plus one for integers).
void fill_contents(const Argument& argument, std::uint64_t seed, std::size_t count, void* out);

}  // namespace purlin::measure
