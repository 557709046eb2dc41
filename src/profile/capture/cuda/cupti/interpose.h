// SPDX-License-Identifier: Apache-2.0
// Interposition: the loader returns Purlin's replacements in place of a library's functions.
//
// Two places are changed. In the library's dynamic symbol table, later resolutions find the
// replacement: by dlsym, by lazy binding or by a library loaded next. In the objects loaded so far,
// the already bound slots are changed. LD_PRELOAD would work for programs that link the library,
// but not for those that dlopen it, and would load Purlin into every child process.
//
// One thread calls at a time. The program may use the functions meanwhile: a call reaches the
// original or the replacement. The library has to stay loaded. The call waits for loads that other
// threads have begun: the caller holds no lock for which a constructor of the program waits without
// a limit. It is never undone.
#pragma once

#include <cstddef>
#include <string>

namespace purlin::profile::capture::cuda {

struct Replacement {
  const char* name = nullptr;
  void* original = nullptr;  // its address in the library; null entries are skipped
  void* replacement = nullptr;
};

// True if every given function was found in the library's symbol table and replaced. False changes
// nothing and sets `reason`.
bool interpose(const Replacement* replacements, std::size_t count, std::string& reason);

// The same for all functions of the library that contains `inside`, whose names begin with
// `prefix`: they lead to those of the same name in the library of the handle `target`.
bool redirect(const void* inside, void* target, const char* prefix, std::string& reason);

}  // namespace purlin::profile::capture::cuda
