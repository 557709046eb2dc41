// SPDX-License-Identifier: Apache-2.0
// Hooks: how another CUPTI client of the process is noticed. Whoever asks the loader for one of
// CUPTI's functions gets Purlin's in its place (interpose.h), which tells Ownership and then does
// what the client wanted.
//
// CUPTI serves one copy of libcupti in a process and refuses every other (error 39, H200, CUDA
// 13.0). PyTorch brings a copy of its own, and a program may open the toolkit's besides: so that a
// client with another copy than Purlin's is not refused because of Purlin, the functions of other
// copies of the same version lead to Purlin's copy too.
//
// Never undone. [MT] redirect_new_copies() on one thread at a time. Nothing throws out of a hook.
#pragma once

#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/cuda/ownership.h"

#include <string>

namespace purlin::profile::capture::cuda {

// The process's ownership; nullptr where there is none yet, and in a forked child.
using FindOwnership = Ownership* (*)();

// Before the program could use CUPTI. `cupti` has to outlive the process. False, and no client
// would be noticed, where the hooks cannot be had.
bool install_hooks(const Cupti& cupti, FindOwnership find, std::string& reason);

// Copies that were loaded since the last call, or since ever. What a client resolved in one before
// that stays with its copy.
void redirect_new_copies(const Cupti& cupti, Recorder& recorder);

}  // namespace purlin::profile::capture::cuda
