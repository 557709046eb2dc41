// SPDX-License-Identifier: Apache-2.0
#include "gpu/opencl/program.h"

#include "base/text.h"
#include "base/time.h"
#include "gpu/launching.h"

namespace purlin::gpu {
namespace {

std::string build_log(const OpenClFunctions& cl, cl_program program, cl_device_id device) {
  std::size_t size = 0;
  if (cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
      CL_SUCCESS)
    return "";
  std::string log(size, '\0');
  cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return std::string(trim(log.c_str()));
}

std::string kernel_names(const OpenClFunctions& cl, cl_program program) {
  std::size_t size = 0;
  if (cl.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &size) != CL_SUCCESS)
    return "";
  std::string names(size, '\0');
  cl.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, size, names.data(), nullptr);
  return join(split(names.c_str(), ';'), ", ");
}

Result<ClOwned<cl_kernel>> create_kernel(const OpenClFunctions& cl, cl_program program,
                                         const std::string& entry) {
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = cl.clCreateKernel(program, entry.c_str(), &code);
  if (code == CL_INVALID_KERNEL_NAME) {
    const std::string names = kernel_names(cl, program);
    return error(Code::kInvalid, "the source has no kernel '{}'; {}", entry,
                 names.empty() ? "it has none" : "it has: " + names);
  }
  if (code != CL_SUCCESS) return opencl_failure("clCreateKernel of '" + entry + "'", code);
  return ClOwned<cl_kernel>(kernel, cl.clReleaseKernel);
}

// A path with a space or a quote would end up as several options: the standard has no quoting.
Result<std::string> build_options(const CompileRequest& request) {
  std::vector<std::string> options = request.options;
  for (const std::string& folder : request.include_directories) options.push_back("-I" + folder);
  for (std::string& macro : macro_options(request.config)) options.push_back(std::move(macro));
  for (const std::string& option : options)
    if (option.find_first_of(" \t\n\"'") != std::string::npos)
      return error(Code::kInvalid,
                   "OpenCL build option '{}' has a space or a quote, which OpenCL cannot pass on",
                   option);
  return join(options, " ");
}

Result<std::string> program_image(const OpenClFunctions& cl, cl_program program) {
  std::size_t size = 0;
  cl_int code = cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr);
  if (code != CL_SUCCESS || size == 0)
    return error(Code::kFailed, "the OpenCL driver gives no program binary ({})",
                 opencl_error_name(code));
  std::string image(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(image.data());
  code = cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr);
  if (code != CL_SUCCESS) return opencl_failure("reading the program binary", code);
  return image;
}

// PoCL reads a binary's parts back from its folder of compiled kernels, where another process that
// builds the same source takes the program away for a moment before it puts its own in its place.
// Such a binary is of no use, and loading it aborts the process (an assertion of PoCL's). The parts
// are each a name's length, the name, a length and that many bytes; the program's comes first.
bool lacks_its_program(std::string_view image) {
  constexpr std::string_view kPocl("poclbin\0", 8), kPart = "/program.", kBitcode = "/program.bc";
  if (!image.starts_with(kPocl)) return false;
  const std::size_t at = image.find(kPart);
  if (at == image.npos) return true;
  image.remove_prefix(at);
  return image.starts_with(kBitcode) &&
         image.substr(kBitcode.size(), 4).find_first_not_of('\0') == image.npos;
}

template <class T>
T kernel_fact(const OpenClFunctions& cl, cl_kernel kernel, cl_device_id device,
              cl_kernel_work_group_info what) {
  T value{};
  if (cl.clGetKernelWorkGroupInfo(kernel, device, what, sizeof value, &value, nullptr) !=
      CL_SUCCESS)
    return T{};
  return value;
}

// One build; its image may lack the program.
Result<Binary> build_once(const OpenClFunctions& cl, cl_context context, cl_device_id device,
                          const CompileRequest& request, const std::string& options) {
  const char* text = request.source.data();
  const std::size_t length = request.source.size();
  cl_int code = CL_SUCCESS;
  const ClOwned<cl_program> program(cl.clCreateProgramWithSource(context, 1, &text, &length, &code),
                                    cl.clReleaseProgram);
  if (code != CL_SUCCESS)
    return opencl_failure(fmt::format("clCreateProgramWithSource of {}", request.name), code);
  code = cl.clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
  std::string log = build_log(cl, program.get(), device);
  if (code != CL_SUCCESS)
    return error(opencl_error_code(code), "{} does not compile with '{}' ({}):\n{}", request.name,
                 options, opencl_error_name(code), log.empty() ? "(the driver gave no log)" : log);
  auto kernel = create_kernel(cl, program.get(), request.entry);
  if (!kernel.is_ok()) return kernel.status().with_context(request.name);
  PURLIN_ASSIGN(std::string image, program_image(cl, program.get()));
  return Binary{request.entry, std::move(image), std::move(log), 0};
}

}  // namespace

Result<Binary> compile_opencl(const OpenClFunctions& cl, cl_context context, cl_device_id device,
                              const CompileRequest& request) {
  constexpr int kMaxBuilds = 8;  // the second finds the other process's program, as a rule
  PURLIN_ASSIGN(const std::string options, build_options(request));
  const std::int64_t start = system_clock().monotonic_ns();
  for (int build = 0; build < kMaxBuilds; ++build) {
    PURLIN_ASSIGN(Binary binary, build_once(cl, context, device, request, options));
    if (lacks_its_program(binary.image)) continue;
    binary.compile_s = static_cast<double>(system_clock().monotonic_ns() - start) * 1e-9;
    return binary;
  }
  return error(Code::kFailed,
               "the OpenCL driver gave {} binaries of {} without their program: PoCL's folder of "
               "kernels ($POCL_CACHE_DIR, else ~/.cache/pocl) may be full or cleared by others",
               kMaxBuilds, request.name);
}

Result<std::unique_ptr<OpenClKernel>> load_opencl_kernel(const OpenClFunctions& cl,
                                                         cl_context context, cl_device_id device,
                                                         const Binary& binary) {
  const auto* image = reinterpret_cast<const unsigned char*>(binary.image.data());
  const std::size_t size = binary.image.size();
  if (size == 0) return error(Code::kInvalid, "the binary of '{}' is empty", binary.entry);
  if (lacks_its_program(binary.image))
    return error(Code::kInvalid, "the binary of '{}' lacks its program: compile it again",
                 binary.entry);
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  ClOwned<cl_program> program(
      cl.clCreateProgramWithBinary(context, 1, &device, &size, &image, &status, &code),
      cl.clReleaseProgram);
  if (code == CL_SUCCESS) code = status;
  if (code == CL_SUCCESS) code = cl.clBuildProgram(program.get(), 1, &device, "", nullptr, nullptr);
  if (code != CL_SUCCESS)
    return error(Code::kInvalid,
                 "the OpenCL driver refuses the binary of '{}' ({}); it may be of another device "
                 "or driver: compile it again",
                 binary.entry, opencl_error_name(code));
  PURLIN_ASSIGN(ClOwned<cl_kernel> kernel, create_kernel(cl, program.get(), binary.entry));
  cl_uint arguments = 0;
  cl.clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr);
  const cl_kernel handle = kernel.get();
  auto loaded = std::make_unique<OpenClKernel>(std::move(program), std::move(kernel), arguments);
  loaded->max_threads_per_block =
      static_cast<int>(kernel_fact<std::size_t>(cl, handle, device, CL_KERNEL_WORK_GROUP_SIZE));
  loaded->static_shared_bytes = static_cast<std::int64_t>(
      kernel_fact<cl_ulong>(cl, handle, device, CL_KERNEL_LOCAL_MEM_SIZE));
  loaded->local_bytes = static_cast<std::int64_t>(
      kernel_fact<cl_ulong>(cl, handle, device, CL_KERNEL_PRIVATE_MEM_SIZE));
  return loaded;
}

}  // namespace purlin::gpu
