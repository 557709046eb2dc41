// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/opencl/command.h"

#include <algorithm>

namespace purlin::profile::capture::opencl {
namespace {

// Queried at each launch: a handle can have the value of a kernel that was released earlier.
std::string kernel_name(const cl_icd_dispatch& driver, cl_kernel kernel) {
  char text[256];
  std::size_t size = 0;
  if (driver.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof text, text, &size) ==
      CL_SUCCESS)
    return std::string(text, size > 0 ? size - 1 : 0);
  if (driver.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) != CL_SUCCESS ||
      size == 0)
    return "(unnamed kernel)";
  std::string name(size, '\0');
  driver.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, name.data(), nullptr);
  name.pop_back();
  return name;
}

template <class T>
T work_group_fact(const cl_icd_dispatch& driver, cl_kernel kernel, cl_device_id device,
                  cl_kernel_work_group_info what) {
  T value = {};
  if (driver.clGetKernelWorkGroupInfo(kernel, device, what, sizeof value, &value, nullptr) !=
      CL_SUCCESS)
    return {};
  return value;
}

std::uint32_t clip(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 0xffffffffu));
}

}  // namespace

// Without a local size the driver chooses one and does not report it. The block is then 0 and the
// grid is in work-items, unless the kernel's source fixes the size.
Command describe_launch(const cl_icd_dispatch& driver, cl_device_id device, cl_kernel kernel,
                        cl_uint dimensions, const std::size_t* global, const std::size_t* local) {
  Command command;
  command.kernel = kernel_name(driver, kernel);
  std::array<std::size_t, 3> fixed = {};
  if (local == nullptr)
    fixed = work_group_fact<std::array<std::size_t, 3>>(driver, kernel, device,
                                                        CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
  const std::size_t* block = local != nullptr ? local : fixed[0] != 0 ? fixed.data() : nullptr;
  if (block == nullptr) command.block = {0, 0, 0};
  for (cl_uint i = 0; i < std::min<cl_uint>(dimensions, 3); ++i) {
    const std::size_t items = global != nullptr ? global[i] : 0;
    if (block == nullptr) {
      command.grid[i] = clip(items);
    } else {
      command.block[i] = clip(block[i]);
      command.grid[i] = clip(block[i] > 0 ? (items + block[i] - 1) / block[i] : items);
    }
  }
  command.local_memory_bytes =
      clip(work_group_fact<cl_ulong>(driver, kernel, device, CL_KERNEL_LOCAL_MEM_SIZE));
  command.private_memory_bytes =
      clip(work_group_fact<cl_ulong>(driver, kernel, device, CL_KERNEL_PRIVATE_MEM_SIZE));
  return command;
}

double region_elements(const std::size_t* region) {
  return region == nullptr ? 0
                           : static_cast<double>(region[0]) * static_cast<double>(region[1]) *
                                 static_cast<double>(region[2]);
}

double image_bytes(const cl_icd_dispatch& driver, cl_mem image, const std::size_t* region) {
  std::size_t element = 0;
  driver.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr);
  return region_elements(region) * static_cast<double>(element);
}

}  // namespace purlin::profile::capture::opencl
