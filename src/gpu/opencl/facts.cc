// SPDX-License-Identifier: Apache-2.0
#include "gpu/opencl/facts.h"

#include "base/text.h"

namespace purlin::gpu {
namespace {

// Queries beyond OpenCL 1.2. Drivers that do not know one say so, and the fact stays unknown.
constexpr cl_device_info kPreferredMultiple = 0x1067;  // OpenCL 3.0
constexpr cl_device_info kUuid = 0x106A;               // cl_khr_device_uuid
constexpr cl_device_info kNvComputeMajor = 0x4000;     // cl_nv_device_attribute_query
constexpr cl_device_info kNvComputeMinor = 0x4001;
constexpr cl_device_info kNvRegistersPerBlock = 0x4002;
constexpr cl_device_info kNvWarpSize = 0x4003;
constexpr cl_device_info kAmdBoardName = 0x4038;  // cl_amd_device_attribute_query
constexpr cl_device_info kAmdWavefront = 0x4043;

std::string text_fact(const OpenClFunctions& cl, cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (cl.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (cl.clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  return std::string(trim(text.c_str()));  // drops the terminator, and padding some drivers add
}

std::string platform_name(const OpenClFunctions& cl, cl_platform_id platform) {
  char text[256] = {};
  if (cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, nullptr) !=
      CL_SUCCESS)
    return "";
  return text;
}

std::string uuid_of(const OpenClFunctions& cl, cl_device_id device) {
  unsigned char bytes[16] = {};
  if (cl.clGetDeviceInfo(device, kUuid, sizeof bytes, bytes, nullptr) != CL_SUCCESS) return "";
  std::string text;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

// The driver's own name of what it compiles for.
std::string arch_of(const OpenClFunctions& cl, cl_device_id device) {
  if (const auto major = opencl_device_fact<cl_uint>(cl, device, kNvComputeMajor); major > 0)
    return fmt::format("sm_{}{}", major, opencl_device_fact<cl_uint>(cl, device, kNvComputeMinor));
  // PoCL: "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-skylake-avx512"
  const std::string version = text_fact(cl, device, CL_DEVICE_VERSION);
  constexpr std::string_view kTag = "HSTR: ";
  if (auto at = version.find(kTag); at != std::string::npos)
    return version.substr(at + kTag.size());
  return text_fact(cl, device, CL_DEVICE_NAME);  // AMD: "gfx90a"; Intel: the product
}

}  // namespace

Result<std::vector<OpenClDeviceId>> list_opencl_devices(const OpenClFunctions& cl) {
  constexpr cl_uint kMax = 64;  // bounds what a broken loader may claim
  cl_platform_id platforms[kMax];
  cl_uint platform_count = 0;
  const cl_int code = cl.clGetPlatformIDs(kMax, platforms, &platform_count);
  std::vector<OpenClDeviceId> found;
  for (cl_uint p = 0; code == CL_SUCCESS && p < std::min(platform_count, kMax); ++p) {
    cl_device_id devices[kMax];
    cl_uint count = 0;
    if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, kMax, devices, &count) != CL_SUCCESS)
      continue;  // a platform whose hardware is absent is no failure of the others
    for (cl_uint d = 0; d < std::min(count, kMax); ++d) found.push_back({platforms[p], devices[d]});
  }
  if (found.empty() && code == CL_SUCCESS && platform_count > 0)
    return error(Code::kUnavailable,
                 "{} OpenCL platform(s) are installed and none has a device: is the GPU's driver "
                 "loaded? PoCL has none where its cache folder cannot be written "
                 "($POCL_CACHE_DIR, else $XDG_CACHE_HOME/pocl or ~/.cache/pocl)",
                 platform_count);
  if (found.empty())
    return error(Code::kUnavailable,
                 "the OpenCL loader knows no device ({}); install the vendor's OpenCL driver, or "
                 "pocl-opencl-icd to use the CPU (drivers are listed in /etc/OpenCL/vendors)",
                 opencl_error_name(code));
  return found;
}

DeviceInfo describe_opencl_device(const OpenClFunctions& cl, OpenClDeviceId id, int index) {
  const auto fact = [&]<class T>(T, cl_device_info what) {
    return opencl_device_fact<T>(cl, id.device, what);
  };
  const auto text = [&](cl_device_info what) { return text_fact(cl, id.device, what); };
  DeviceInfo info;
  info.id = fmt::format("opencl:{}", index);
  info.backend = "opencl";
  const auto type = fact(cl_device_type{}, CL_DEVICE_TYPE);
  info.kind = (type & CL_DEVICE_TYPE_GPU) != 0   ? "gpu"
              : (type & CL_DEVICE_TYPE_CPU) != 0 ? "cpu"
                                                 : "accelerator";
  info.name = text(kAmdBoardName);
  if (info.name.empty()) info.name = text(CL_DEVICE_NAME);
  info.vendor = text(CL_DEVICE_VENDOR);
  info.arch = arch_of(cl, id.device);
  info.uuid = uuid_of(cl, id.device);
  info.driver = text(CL_DRIVER_VERSION);
  info.toolkit =
      fmt::format("{} ({})", text(CL_DEVICE_OPENCL_C_VERSION), platform_name(cl, id.platform));
  info.compute_units = static_cast<int>(fact(cl_uint{}, CL_DEVICE_MAX_COMPUTE_UNITS));
  info.clock_mhz = fact(cl_uint{}, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  info.memory_bytes = fact(cl_ulong{}, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.l2_bytes = fact(cl_ulong{}, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  info.shared_memory_per_block =
      static_cast<std::int64_t>(fact(cl_ulong{}, CL_DEVICE_LOCAL_MEM_SIZE));
  info.registers_per_block = fact(cl_uint{}, kNvRegistersPerBlock);
  info.warp_size = static_cast<int>(fact(cl_uint{}, kNvWarpSize));
  if (info.warp_size == 0) info.warp_size = static_cast<int>(fact(cl_uint{}, kAmdWavefront));
  if (info.warp_size == 0)
    info.warp_size = static_cast<int>(fact(std::size_t{}, kPreferredMultiple));
  info.max_threads_per_block = static_cast<int>(fact(std::size_t{}, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  std::size_t sizes[16] = {};  // one per dimension; at least three
  if (cl.clGetDeviceInfo(id.device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, nullptr) ==
      CL_SUCCESS)
    for (std::size_t i = 0; i < 3; ++i) info.max_block[i] = static_cast<std::int64_t>(sizes[i]);
  return info;  // the number of work-groups has no limit in OpenCL: max_grid stays unknown
}

}  // namespace purlin::gpu
