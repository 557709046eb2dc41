// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/nvrtc.h"

#include "base/os/library.h"
#include "base/text.h"
#include "base/time.h"
#include "gpu/cuda/nvcc.h"
#include "gpu/launching.h"
#include "gpu/vendor_libraries.h"

#include <nvrtc.h>

#include <algorithm>

namespace purlin::gpu {

struct Nvrtc::Functions {
#define PURLIN_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                 \
  X(nvrtcGetErrorString)          \
  X(nvrtcCreateProgram)           \
  X(nvrtcDestroyProgram)          \
  X(nvrtcCompileProgram)          \
  X(nvrtcGetProgramLogSize)       \
  X(nvrtcGetProgramLog)           \
  X(nvrtcGetCUBINSize)            \
  X(nvrtcGetCUBIN)                \
  X(nvrtcAddNameExpression)       \
  X(nvrtcGetLoweredName)
#define PURLIN_DECLARE(function) decltype(&::function) function = nullptr;
  PURLIN_NVRTC_FUNCTIONS(PURLIN_DECLARE)
#undef PURLIN_DECLARE
  std::string library;
  int major = 0, minor = 0;
};

namespace {

constexpr int kMajors[] = {13, 12};  // known to have the functions above with this meaning

std::vector<int> preferred_majors(int newest) {
  std::vector<int> majors(std::begin(kMajors), std::end(kMajors));
  if (newest > 0)
    std::stable_partition(majors.begin(), majors.end(),
                          [newest](int major) { return major <= newest; });
  return majors;
}

}  // namespace

Nvrtc::Nvrtc(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Nvrtc::~Nvrtc() = default;

Result<std::unique_ptr<Nvrtc>> Nvrtc::load(int newest) {
  // Major by major, so that an older one elsewhere is found before a newer one on the loader's
  // path.
  std::string problem;
  for (const int major : preferred_majors(newest)) {
    auto library = Library::open(vendor_library_names("nvrtc", {major}));
    if (!library.is_ok()) {
      if (problem.empty()) problem = library.status().message();
      continue;
    }
    auto functions = std::make_unique<Functions>();
    functions->library = library->name();
    bool complete = true;
#define PURLIN_BIND(function) complete = library->bind(functions->function, #function) && complete;
    PURLIN_NVRTC_FUNCTIONS(PURLIN_BIND)
#undef PURLIN_BIND
    if (complete && functions->nvrtcVersion(&functions->major, &functions->minor) == NVRTC_SUCCESS)
      return std::unique_ptr<Nvrtc>(new Nvrtc(std::move(functions)));
    problem = library->name() + " lacks functions of NVRTC 12";
  }
  return error(Code::kUnavailable,
               "CUDA kernels cannot be compiled: NVRTC is not found ({}). Install the CUDA toolkit "
               "or `pip install nvidia-cuda-nvrtc`, or set PURLIN_NVRTC to the library",
               problem);
}

std::string Nvrtc::version() const {
  return fmt::format("NVRTC {}.{}", functions_->major, functions_->minor);
}

const std::string& Nvrtc::library() const { return functions_->library; }

Result<Binary> Nvrtc::compile(const CompileRequest& request, const std::string& arch) const {
  const Functions& rtc = *functions_;
  std::vector<std::string> options = request.options;
  if (!names_an_arch(options)) options.push_back("--gpu-architecture=" + arch);
  for (std::string& macro : macro_options(request.config)) options.push_back(std::move(macro));
  for (const std::string& folder : request.include_directories) options.push_back("-I" + folder);
  for (const std::string& folder : cuda_include_directories()) options.push_back("-I" + folder);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());

  const std::int64_t start = system_clock().monotonic_ns();
  nvrtcProgram program = nullptr;
  nvrtcResult result = rtc.nvrtcCreateProgram(&program, request.source.c_str(),
                                              request.name.c_str(), 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS)
    return error(Code::kFailed, "{}: nvrtcCreateProgram: {}", request.name,
                 rtc.nvrtcGetErrorString(result));
  const auto destroy = [&rtc](nvrtcProgram handle) { rtc.nvrtcDestroyProgram(&handle); };
  const std::unique_ptr<std::remove_pointer_t<nvrtcProgram>, decltype(destroy)> owner(program,
                                                                                      destroy);
  // As a name expression even a plain name is looked up, and a template gets instantiated.
  result = rtc.nvrtcAddNameExpression(program, request.entry.c_str());
  if (result == NVRTC_SUCCESS)
    result = rtc.nvrtcCompileProgram(program, static_cast<int>(pointers.size()), pointers.data());
  std::string log;
  std::size_t size = 0;
  if (rtc.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) {
    log.resize(size);
    rtc.nvrtcGetProgramLog(program, log.data());
    log = std::string(trim(log.c_str()));
  }
  if (result != NVRTC_SUCCESS)
    return error(result == NVRTC_ERROR_OUT_OF_MEMORY ? Code::kUnavailable : Code::kInvalid,
                 "{} does not compile for entry '{}' with '{}' ({}):\n{}", request.name,
                 request.entry, join(options, " "), rtc.nvrtcGetErrorString(result),
                 log.empty() ? "(no log)" : log);

  Binary binary;
  const char* lowered = nullptr;
  result = rtc.nvrtcGetLoweredName(program, request.entry.c_str(), &lowered);
  if (result != NVRTC_SUCCESS || lowered == nullptr)
    return error(Code::kInvalid, "{}: no kernel '{}' in the compiled source ({})", request.name,
                 request.entry, rtc.nvrtcGetErrorString(result));
  binary.entry = lowered;
  result = rtc.nvrtcGetCUBINSize(program, &size);
  // Size 0: the architecture was a virtual one ("compute_90"), for which there is only PTX.
  if (result != NVRTC_SUCCESS || size == 0)
    return error(Code::kInvalid, "{}: no cubin from options '{}'; use -arch=sm_XY, not compute_XY",
                 request.name, join(options, " "));
  binary.image.resize(size);
  rtc.nvrtcGetCUBIN(program, binary.image.data());
  binary.log = std::move(log);
  binary.compile_s = static_cast<double>(system_clock().monotonic_ns() - start) * 1e-9;
  return binary;
}

}  // namespace purlin::gpu
