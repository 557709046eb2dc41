// SPDX-License-Identifier: Apache-2.0
// C = A * B with the config that `purlin tune` found for this GPU and shape, or the default one.
//
//   purlin tune kernels/gemm/gemm.toml --device cuda:0 --shape M=4096,N=4096,K=4096
//   tuned_gemm_cuda kernels/gemm/gemm.cu 4096 4096 4096
//
// The driver and NVRTC are opened at run time. Only find_config() and the options that
// compile the kernel use Purlin.
#include <cuda.h>
#include <nvrtc.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <purlin/purlin.hpp>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kTimedLaunches = 10, kCheckedElements = 500;

// What a program without a tuner would use: the defaults of gemm.toml.
constexpr const char* kDefaultOptions =
    "-DBM=16 -DBN=16 -DBK=16 -DTM=1 -DTN=1 -DLANES=16 -DVECTOR=1 -DPAD=0 -DSTAGES=1 -DUNROLL=0 "
    "-DGROUP=1 -DMIN_BLOCKS=1";

struct Config {
  std::string options = kDefaultOptions;
  unsigned bm = 16, bn = 16, tm = 1, tn = 1;
};

// A failure here leaves the default config: a cache is never a reason for a program not to run.
Config find_config(std::int64_t m, std::int64_t n, std::int64_t k) {
  Config config;
  try {
    purlin::Cache cache;
    const purlin_device device = cache.device("cuda:0");
    purlin::OpOptions options;
    options.dtype = "f32";
    const purlin::Op gemm = cache.op("gemm", {"M", "N", "K"}, device, options);
    // A real program keeps `gemm` and does this before each launch: it takes tens of nanoseconds.
    const purlin::Hit hit = gemm.find(m, n, k);
    std::printf("lookup: %s\n", hit.outcome_name());
    if (hit) config.options = hit.options();
    config.bm = static_cast<unsigned>(hit.integer("BM", config.bm));
    config.bn = static_cast<unsigned>(hit.integer("BN", config.bn));
    config.tm = static_cast<unsigned>(hit.integer("TM", config.tm));
    config.tn = static_cast<unsigned>(hit.integer("TN", config.tn));
  } catch (const purlin::Error& error) {
    std::fprintf(stderr, "tuned_gemm_cuda: %s\n", error.what());
  }
  std::printf("config: %s\n", config.options.c_str());
  return config;
}

class SharedLibrary {
 public:
  explicit SharedLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if ((handle_ = dlopen(name, RTLD_NOW)) != nullptr) return;
    throw std::runtime_error(dlerror());
  }
  template <class Function>
  Function* get(const char* symbol) const {
    void* address = dlsym(handle_, symbol);
    if (address == nullptr) throw std::runtime_error(std::string("no ") + symbol);
    return reinterpret_cast<Function*>(address);
  }

 private:
  void* handle_ = nullptr;
};

const SharedLibrary& driver() {
  static const SharedLibrary library{"libcuda.so.1"};
  return library;
}

const SharedLibrary& nvrtc() {
  static const SharedLibrary library{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  return library;
}

void check(int code, const char* what) {
  if (code != 0)
    throw std::runtime_error(std::string(what) + " failed with " + std::to_string(code));
}

// CU(cuMemFree)(pointer): cuda.h may map the name to a versioned symbol. This looks up that symbol.
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define CU(function) driver().get<decltype(function)>(TEXT(function))
#define NVRTC(function) nvrtc().get<decltype(function)>(#function)

std::string compile(const std::string& source, const Config& config, const std::string& arch) {
  std::vector<std::string> options = {"--gpu-architecture=" + arch};
  std::istringstream words(config.options);
  for (std::string word; words >> word;) options.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());

  nvrtcProgram program = nullptr;
  check(NVRTC(nvrtcCreateProgram)(&program, source.c_str(), "gemm.cu", 0, nullptr, nullptr),
        "nvrtcCreateProgram");
  if (NVRTC(nvrtcCompileProgram)(program, static_cast<int>(pointers.size()), pointers.data()) !=
      NVRTC_SUCCESS) {
    std::size_t size = 0;
    NVRTC(nvrtcGetProgramLogSize)(program, &size);
    std::string log(size, '\0');
    NVRTC(nvrtcGetProgramLog)(program, log.data());
    throw std::runtime_error("the kernel does not compile:\n" + log);
  }
  std::size_t size = 0;
  check(NVRTC(nvrtcGetCUBINSize)(program, &size), "nvrtcGetCUBINSize");
  std::string image(size, '\0');
  check(NVRTC(nvrtcGetCUBIN)(program, image.data()), "nvrtcGetCUBIN");
  NVRTC(nvrtcDestroyProgram)(&program);
  return image;
}

std::string read_text(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

CUdeviceptr upload(const std::vector<float>& values) {
  CUdeviceptr pointer = 0;
  const std::size_t bytes = values.size() * sizeof(float);
  check(CU(cuMemAlloc)(&pointer, bytes), "cuMemAlloc");
  check(CU(cuMemcpyHtoD)(pointer, values.data(), bytes), "cuMemcpyHtoD");
  return pointer;
}

int run(const char* path, int m, int n, int k) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  check(CU(cuInit)(0), "cuInit");
  check(CU(cuDeviceGet)(&device, 0), "cuDeviceGet");
  check(CU(cuDevicePrimaryCtxRetain)(&context, device), "cuDevicePrimaryCtxRetain");
  check(CU(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
  int major = 0, minor = 0;
  CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  CU(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);

  const Config config = find_config(m, n, k);
  const std::string image =
      compile(read_text(path), config, "sm_" + std::to_string(major) + std::to_string(minor));
  check(CU(cuModuleLoadData)(&module, image.data()), "cuModuleLoadData");
  check(CU(cuModuleGetFunction)(&kernel, module, "gemm"), "cuModuleGetFunction");

  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto matrix = [&](int rows, int columns) {
    std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    for (float& value : values) value = uniform(random);
    return values;
  };
  const std::vector<float> a = matrix(m, k), b = matrix(k, n);
  std::vector<float> c = matrix(m, n);
  CUdeviceptr device_a = upload(a), device_b = upload(b), device_c = upload(c);
  void* arguments[] = {&device_a, &device_b, &device_c, &m, &n, &k};

  // The launch of gemm.toml: grid [ceil(N / BN), ceil(M / BM)], block [(BM / TM) * (BN / TN)].
  const unsigned grid_x = (static_cast<unsigned>(n) + config.bn - 1) / config.bn;
  const unsigned grid_y = (static_cast<unsigned>(m) + config.bm - 1) / config.bm;
  const unsigned threads = config.bm / config.tm * (config.bn / config.tn);
  CUevent begin = nullptr, end = nullptr;
  check(CU(cuEventCreate)(&begin, 0), "cuEventCreate");
  check(CU(cuEventCreate)(&end, 0), "cuEventCreate");
  float best_ms = 0;
  for (int i = 0; i <= kTimedLaunches; ++i) {  // the first warms up
    check(CU(cuEventRecord)(begin, nullptr), "cuEventRecord");
    check(CU(cuLaunchKernel)(kernel, grid_x, grid_y, 1, threads, 1, 1, 0, nullptr, arguments,
                             nullptr),
          "cuLaunchKernel");
    check(CU(cuEventRecord)(end, nullptr), "cuEventRecord");
    check(CU(cuEventSynchronize)(end), "the kernel");
    float ms = 0;
    check(CU(cuEventElapsedTime)(&ms, begin, end), "cuEventElapsedTime");
    if (i > 0 && (best_ms == 0 || ms < best_ms)) best_ms = ms;
  }
  check(CU(cuMemcpyDtoH)(c.data(), device_c, c.size() * sizeof(float)), "cuMemcpyDtoH");
  for (const CUdeviceptr pointer : {device_a, device_b, device_c}) CU(cuMemFree)(pointer);

  double worst = 0;  // against dot products on the CPU
  for (int i = 0; i < kCheckedElements; ++i) {
    const auto row = random() % static_cast<unsigned>(m),
               column = random() % static_cast<unsigned>(n);
    double sum = 0;
    for (int l = 0; l < k; ++l)
      sum += static_cast<double>(
                 a[std::size_t{row} * static_cast<std::size_t>(k) + static_cast<std::size_t>(l)]) *
             b[static_cast<std::size_t>(l) * static_cast<std::size_t>(n) + column];
    const double difference =
        std::fabs(sum - c[std::size_t{row} * static_cast<std::size_t>(n) + column]);
    if (!(difference <= worst)) worst = difference;
  }
  const bool right = worst <= 1e-4 + 1e-5 * std::sqrt(k);
  std::printf("time:   %.3f ms, %.1f GFLOP/s (best of %d)\n", best_ms,
              2e-6 * m * n * k / static_cast<double>(best_ms), kTimedLaunches);
  std::printf("check:  %s, worst error %.2g\n", right ? "ok" : "WRONG", worst);
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto extent = [&](int i) { return argc == 5 ? std::atoi(argv[i]) : 0; };
  const auto fits = [](int value) { return value >= 1 && value <= 65536; };
  if (!fits(extent(2)) || !fits(extent(3)) || !fits(extent(4))) {
    std::fprintf(stderr, "usage: tuned_gemm_cuda gemm.cu M N K   (each 1 to 65536)\n");
    return 2;
  }
  return run(argv[1], extent(2), extent(3), extent(4));
} catch (const std::exception& error) {
  std::fprintf(stderr, "tuned_gemm_cuda: %s\n", error.what());
  return 2;
}
