// SPDX-License-Identifier: Apache-2.0
// Interposition: from now on, whoever asks the loader for one of a library's functions gets ours.
//
// Two places are changed. The library's dynamic symbol table, so that later resolutions, by dlsym,
// by lazy binding or by a library loaded next, find the replacement; and the already bound slots of
// the objects loaded so far. LD_PRELOAD would do for programs that link the library, but not for
// those that dlopen it, and would load Purlin into every child process.
//
// Called before the program could use the functions. Not undone: the process keeps it.
#pragma once

#include <cstddef>
#include <string>

namespace purlin::profile::capture::cuda {

struct Replacement {
  const char* name = nullptr;
  void* original = nullptr;  // its address in the library; null entries are skipped
  void* replacement = nullptr;
};

// True when every given function was found in the library's symbol table and replaced. False
// leaves everything as it was; `reason` says why.
bool interpose(const Replacement* replacements, std::size_t count, std::string& reason);

// The same for all functions of the library that contains `inside`, whose names begin with
// `prefix`: they lead to those of the same name in the library of the handle `target`.
bool redirect(const void* inside, void* target, const char* prefix, std::string& reason);

}  // namespace purlin::profile::capture::cuda
