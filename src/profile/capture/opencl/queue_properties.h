// SPDX-License-Identifier: Apache-2.0
// The profiling bit in the properties of a command queue: added when the program makes a queue,
// and removed from the properties that the program reads.
//
// Plain values and functions without state. Nothing fails: a list that cannot be changed is left
// to the driver.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>

#include <cstddef>

namespace purlin::profile::capture::opencl {

// The property list of a new queue, with profiling on.
class ProfiledProperties {
 public:
  // `list` ends with 0; it may be null.
  explicit ProfiledProperties(const cl_queue_properties* list);

  // Whether the program itself asked for profiling.
  bool asked() const { return (bits_ & CL_QUEUE_PROFILING_ENABLE) != 0; }
  // False for a queue on the device and for a list that is too long.
  bool can_add() const { return whole_ && (bits_ & CL_QUEUE_ON_DEVICE) == 0; }
  const cl_queue_properties* list() const { return list_; }

 private:
  static constexpr std::size_t kMaxProperties = 64;
  cl_queue_properties list_[kMaxProperties];
  cl_queue_properties bits_ = 0;
  bool whole_ = false;
};

// Removes the profiling bit from the answer to a query of a queue's properties.
void remove_profiling_bit(cl_command_queue_info what, std::size_t size, void* value);

}  // namespace purlin::profile::capture::opencl
