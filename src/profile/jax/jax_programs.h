// SPDX-License-Identifier: Apache-2.0
// The command's side of Purlin's hook for JAX (python/purlin_hook, docs/design/jax-programs.md):
// the texts of compiled programs that it left in the spool give the run's kernels ops and shapes.
// Notes and texts are written by the profiled program's process and not trusted. What is missing or
// damaged is a coverage note, never an error. Free functions.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <string>

namespace purlin::profile {

struct JaxNote {  // "purlin.jax/1"
  std::int64_t pid = 0, modules = 0, left_out = 0;
  std::int64_t compiled = 0;  // programs that were not in JAX's cache, while Purlin recorded
  std::string reason, detail, jax;
  double cost_ns = 0;  // what the program waited for the hook
};

Result<JaxNote> parse_jax_note(const std::string& text);
void add_jax_programs(Profile& profile, const std::string& spool);

}  // namespace purlin::profile
