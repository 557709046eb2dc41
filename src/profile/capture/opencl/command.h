// SPDX-License-Identifier: Apache-2.0
// Command: an enqueued OpenCL command as the capture records it, and the functions that describe
// a command from the arguments of its call.
//
// A plain value, owned by the Collector until the command has completed. Thread-safety: the
// functions keep no state. A driver that does not answer leaves a 0 or a substitute name.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>

#include <array>
#include <cstdint>
#include <string>

namespace purlin::profile::capture::opencl {

// A launch of `kernel`, or a memcpy or memset of `bytes`.
struct Command {
  std::string kernel;
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  std::uint32_t local_memory_bytes = 0, private_memory_bytes = 0;
  const char* kind = nullptr;  // nullptr = a launch
  double bytes = 0;
};

// The sizes are counts of work-items. `local` may be null: the driver then chooses the block.
Command describe_launch(const cl_icd_dispatch& driver, cl_device_id device, cl_kernel kernel,
                        cl_uint dimensions, const std::size_t* global, const std::size_t* local);

// Elements of a region of three extents; 0 for null.
double region_elements(const std::size_t* region);
double image_bytes(const cl_icd_dispatch& driver, cl_mem image, const std::size_t* region);

}  // namespace purlin::profile::capture::opencl
