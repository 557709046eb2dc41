// SPDX-License-Identifier: Apache-2.0
// The OpenCL devices of the machine and the facts that their drivers report. Free functions without
// state. Failure: kUnavailable without a device, with advice.
#pragma once

#include "base/status.h"
#include "gpu/opencl/functions.h"
#include "model/device/device.h"

#include <string>
#include <vector>

namespace purlin::gpu {

struct OpenClDeviceId {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
};

// Every device of every platform, in the loader's order: the index in "opencl:N".
Result<std::vector<OpenClDeviceId>> list_opencl_devices(const OpenClFunctions& cl);
DeviceInfo describe_opencl_device(const OpenClFunctions& cl, OpenClDeviceId id, int index);

template <class T>
T opencl_device_fact(const OpenClFunctions& cl, cl_device_id device, cl_device_info what) {
  T value{};
  if (cl.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) != CL_SUCCESS) return T{};
  return value;
}

}  // namespace purlin::gpu
