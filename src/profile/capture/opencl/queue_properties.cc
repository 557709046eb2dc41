// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/opencl/queue_properties.h"

namespace purlin::profile::capture::opencl {

ProfiledProperties::ProfiledProperties(const cl_queue_properties* list) {
  std::size_t size = 0, bits_at = kMaxProperties;
  for (; list != nullptr && list[size] != 0 && size + 5 < kMaxProperties; size += 2) {
    list_[size] = list[size];
    list_[size + 1] = list[size + 1];
    if (list[size] == CL_QUEUE_PROPERTIES) {
      bits_ = list[size + 1];
      bits_at = size + 1;
    }
  }
  whole_ = list == nullptr || list[size] == 0;
  if (bits_at == kMaxProperties) {
    list_[size] = CL_QUEUE_PROPERTIES;
    bits_at = size + 1;
    size += 2;
  }
  list_[bits_at] = bits_ | CL_QUEUE_PROFILING_ENABLE;
  list_[size] = 0;
}

// CL_QUEUE_PROPERTIES_ARRAY (OpenCL 3.0) returns the list of the queue's creation, with the added
// bit.
void remove_profiling_bit(cl_command_queue_info what, std::size_t size, void* value) {
  constexpr cl_bitfield kOthers = ~cl_bitfield{CL_QUEUE_PROFILING_ENABLE};
  if (value == nullptr) return;
  if (what == CL_QUEUE_PROPERTIES && size >= sizeof(cl_command_queue_properties)) {
    *static_cast<cl_command_queue_properties*>(value) &= kOthers;
  } else if (what == CL_QUEUE_PROPERTIES_ARRAY) {
    auto* list = static_cast<cl_queue_properties*>(value);
    for (std::size_t i = 0; i + 1 < size / sizeof *list && list[i] != 0; i += 2)
      if (list[i] == CL_QUEUE_PROPERTIES) list[i + 1] &= kOthers;
  }
}

}  // namespace purlin::profile::capture::opencl
