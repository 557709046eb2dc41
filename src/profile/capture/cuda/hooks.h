// SPDX-License-Identifier: Apache-2.0
// Hooks: how another CUPTI client of the process is noticed. Whoever asks the loader for one of
// CUPTI's functions gets Purlin's in its place (interpose.h), which tells Ownership and then does
// what the client wanted. There is a set of hooks for each copy of libcupti: PyTorch brings one of
// its own, and a program may open the toolkit's besides.
//
// One set per process, never undone. [MT] hook_new_copies() on the session's thread only. Nothing
// throws out of a hook.
#pragma once

#include "profile/capture/cuda/cupti_library.h"
#include "profile/capture/cuda/ownership.h"

#include <string>

namespace purlin::profile::capture::cuda {

// The process's ownership; nullptr where there is none yet, and in a forked child.
using FindOwnership = Ownership* (*)();

// Before the program could use CUPTI: hooks in the copy that Purlin uses, which has to outlive the
// process, and in others that are loaded. False, and no client would be noticed, where the first
// cannot be had.
bool install_hooks(const Cupti& own, FindOwnership find, std::string& reason);

// Hooks in copies that were loaded since. A client that was quicker is found all the same.
void hook_new_copies(Ownership& ownership);

}  // namespace purlin::profile::capture::cuda
