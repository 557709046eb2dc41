// SPDX-License-Identifier: Apache-2.0
// How an injection library without Purlin finds CUPTI: the copy that the program has loaded, so
// that there are not two. For bare_cupti.cc and cupti_windows.cc, which are compiled by hand.
#pragma once

#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <string>

namespace loaded_cupti {

inline int find(dl_phdr_info* info, std::size_t, void* path) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "/libcupti.so") == nullptr)
    return 0;
  *static_cast<std::string*>(path) = info->dlpi_name;
  return 1;
}

// `otherwise`: where none is loaded; nullptr = the loader's, or the toolkit's. nullptr: there is
// none.
inline void* open(const char* otherwise = nullptr) {
  std::string path;
  dl_iterate_phdr(&find, &path);
  if (path.empty()) path = otherwise != nullptr ? otherwise : "libcupti.so.13";
  void* library = dlopen(path.c_str(), RTLD_NOW);
  return library != nullptr ? library : dlopen("/usr/local/cuda/lib64/libcupti.so.13", RTLD_NOW);
}

template <class F>
bool bind(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace loaded_cupti
