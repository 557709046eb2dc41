// SPDX-License-Identifier: Apache-2.0
// How an injection library without Purlin finds CUPTI: the copy that the program has loaded, so
// that there are not two; and the buffers that it lends. For bare_cupti.cc, cupti_windows.cc and
// cupti_window_threads.cc, which are compiled by hand.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <string>
#include <vector>

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

// Buffers that are lent again when they come back, unless `fresh` ones are asked for. [MT]
class Buffers {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  std::uint8_t* lend(bool fresh = false) {
    ++lent_;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty() || fresh) return static_cast<std::uint8_t*>(std::aligned_alloc(8, kBytes));
    std::uint8_t* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give_back(std::uint8_t* buffer) {
    --lent_;
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(buffer);
  }
  long lent() const { return lent_; }

 private:
  std::atomic<long> lent_{0};
  std::mutex mutex_;
  std::vector<std::uint8_t*> free_;
};

}  // namespace loaded_cupti
