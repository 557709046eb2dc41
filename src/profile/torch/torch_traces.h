// SPDX-License-Identifier: Apache-2.0
// The command's side of Purlin's hook for PyTorch (python/purlin_hook, docs/design/torch-hook.md):
// the variables that bring the hook into Python processes, and the traces that it left in the
// spool. Free functions. A trace that is missing or damaged is a coverage note, never an error.
#pragma once

#include "model/profile/profile.h"

#include <map>
#include <string>
#include <vector>

namespace purlin::profile {

struct TorchOptions {
  bool on = false;
  bool daemon = false;      // by libkineto's daemon protocol (daemon.h), and not by the hook
  bool on_request = false;  // no trace before `purlin capture window --torch`
  int rank = 0;             // of a run with ranks: the traced one
  bool jax = false;         // read the programs that XLA compiled (profile/jax)
};

// "" without a hook: `folder` is where their sitecustomize.py is.
std::map<std::string, std::string> torch_variables(const TorchOptions& options,
                                                   const std::string& folder);
// Merges each trace of the spool into the profile of its run, counts its cost, and notes what has
// no trace and why.
void add_torch_traces(Profile& profile, const std::string& spool,
                      const std::vector<std::string>& command);

}  // namespace purlin::profile
