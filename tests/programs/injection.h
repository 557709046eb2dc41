// SPDX-License-Identifier: Apache-2.0
// What CUDA's driver does as a program on the fake CUPTI initialises CUDA: it loads the library
// that CUDA_INJECTION64_PATH names, and calls it. Whatever fails ends the program with a code of
// its own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

inline void* open_or_exit(const char* path, int code) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(code);
}

inline void inject() {
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH"); path != nullptr)
    reinterpret_cast<int (*)()>(dlsym(open_or_exit(path, 9), "InitializeInjection"))();
}

// A driver, where FAKE_CUDA names one.
inline void load_driver() {
  if (const char* path = std::getenv("FAKE_CUDA"); path != nullptr) (void)open_or_exit(path, 8);
}
