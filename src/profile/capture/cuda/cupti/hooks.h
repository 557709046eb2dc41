// SPDX-License-Identifier: Apache-2.0
// Hooks: they detect another CUPTI client of the process. A client that asks the loader for one of
// CUPTI's functions gets Purlin's function instead (interpose.h). It calls Ownership and then the
// original function.
//
// CUPTI serves one copy of libcupti in a process and refuses every other (error 39, H200, CUDA
// 13.0). PyTorch has its own copy, and a program may also open the toolkit's. Therefore the
// functions of other copies of the same version lead to Purlin's copy. Otherwise CUPTI would refuse
// a client with another copy because of Purlin.
//
// Never undone. [MT] redirect_new_copies() on one thread at a time. Nothing throws out of a hook.
#pragma once

#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/cuda/ownership.h"

#include <string>

namespace purlin::profile::capture::cuda {

// The process's ownership; nullptr before it exists, and in a forked child.
using FindOwnership = Ownership* (*)();

// Before the program can use CUPTI. `cupti` has to outlive the process. False if the hooks cannot
// be installed: no client would be detected.
bool install_hooks(const Cupti& cupti, FindOwnership find, std::string& reason);

// Redirects the copies that were loaded since the last call. Functions that a client resolved
// earlier stay with their copy.
void redirect_new_copies(const Cupti& cupti, Recorder& recorder);

}  // namespace purlin::profile::capture::cuda
