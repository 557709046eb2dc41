// SPDX-License-Identifier: Apache-2.0
// KernelNames: copies of the names that the records of a buffer point to. CUPTI owns the names, and
// their lifetime after a module's unload is not documented. They are valid in CUPTI's callback.
// Later readers use these copies.
//
// Owned by the owner of the buffer; thread-safety: none. Throws std::bad_alloc.
#pragma once

#include "profile/capture/cuda/cupti/library.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace purlin::profile::capture::cuda {

class KernelNames {
 public:
  KernelNames() = default;
  KernelNames(KernelNames&&) = default;
  KernelNames& operator=(KernelNames&&) = default;

  // From here on the records point at the copies. Within CUPTI's callback.
  void take_from(const Cupti& cupti, std::uint8_t* bytes, std::size_t valid) {
    CUpti_Activity* record = nullptr;
    while (cupti.next_record(bytes, valid, &record) == CUPTI_SUCCESS)
      if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
          record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
        auto& kernel = *reinterpret_cast<CUpti_ActivityKernel10*>(record);
        kernel.name = copy_of(kernel.name);
      }
  }

 private:
  const char* copy_of(const char* name) {
    if (name == nullptr || name == last_) return name != nullptr ? last_copy_ : nullptr;
    const auto [position, added] = copies_.try_emplace(name);
    if (added) position->second = name;
    last_ = name;
    return last_copy_ = position->second.c_str();
  }

  std::unordered_map<const void*, std::string> copies_;
  const char* last_ = nullptr;
  const char* last_copy_ = nullptr;
};

}  // namespace purlin::profile::capture::cuda
