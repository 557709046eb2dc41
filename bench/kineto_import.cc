// SPDX-License-Identifier: Apache-2.0
// bench_kineto_import [MIB [FILE]]: how fast a PyTorch trace is imported.
//
// Synthesises MIB (default 192) of Kineto JSON as PyTorch 2.11 writes it: a transformer's training
// steps with nested ops and their inputs, launches, kernels, flow events, memsets. Imports it and
// checks count, time and GEMM shapes against the generator's own; then has Python's json.load read
// the same file, up to 512 MiB (it needs several times the file in memory). With FILE, that trace
// is imported instead. Per core: by CPU time of the whole import. Results: one JSON document.
#include "base/files.h"
#include "base/json/json.h"
#include "base/os/process.h"
#include "base/random.h"
#include "base/text.h"
#include "model/document.h"
#include "profile/import/import.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <sys/resource.h>

using namespace purlin;

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_s() {
  timespec spent = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

double peak_mib() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Truth {
  std::uint64_t bytes = 0, kernels = 0, kernel_ns = 0, gemms = 0, ops = 0;
};

// One op of the model: its parent op, itself, what it runs.
struct OpTemplate {
  const char *parent, *name, *dims, *types, *concrete, *kernel, *grid, *block;
  double kernel_us;
  bool gemm;
};

constexpr std::array<OpTemplate, 6> kOps = {{
    {"aten::layer_norm", "aten::native_layer_norm", "[[8, 512, 1024], [], [1024], [1024], []]",
     R"(["float", "ScalarList", "float", "float", "Scalar"])", R"(["", "[1024]", "", "", "1e-05"])",
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, "
     "false>(int, float, float const*, float const*, float const*, float*, float*, float*)",
     "[4096, 1, 1]", "[32, 4, 1]", 9.2, false},
    {"aten::linear", "aten::addmm", "[[3072], [4096, 1024], [1024, 3072], [], []]",
     R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])",
     R"(["", "", "", "1", "1"])", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
     "[2, 66, 1]", "[384, 1, 1]", 37.1, true},
    {"aten::scaled_dot_product_attention", "aten::_flash_attention_forward",
     "[[8, 512, 16, 64], [8, 512, 16, 64], [8, 512, 16, 64], [], [], [], [], [], [], [], []]",
     R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", "Scalar", "Scalar", "Scalar",)"
     R"( "Scalar", "Scalar", "Scalar"])",
     R"(["", "", "", "", "", "512", "512", "0.", "True", "False", "0.125"])",
     "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
     "cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, false, "
     "true, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)",
     "[4, 8, 16]", "[128, 1, 1]", 25.9, false},
    {"aten::linear", "aten::mm", "[[4096, 4096], [4096, 1024]]",
     R"(["c10::BFloat16", "c10::BFloat16"])", R"(["", ""])",
     "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN", "[2, 64, 1]", "[384, 1, 1]", 43.7, true},
    {"aten::to", "aten::copy_", "[[8, 512, 1024], [8, 512, 1024], []]",
     R"(["c10::BFloat16", "float", "Scalar"])", R"(["", "", "False"])",
     "void at::native::vectorized_elementwise_kernel<8, "
     "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, "
     "std::array<char*, 2ul> >(int, at::native::bfloat16_copy_kernel_cuda("
     "at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul>)",
     "[4096, 1, 1]", "[128, 1, 1]", 6.4, false},
    {"aten::gelu", "aten::add", "[[8, 512, 4096], [8, 512, 4096], []]",
     R"(["float", "float", "Scalar"])", R"(["", "", "1"])",
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
     "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
     "[16384, 1, 1]", "[128, 1, 1]", 31.0, false},
}};

class Writer {
 public:
  explicit Writer(std::FILE* file) : file_(file) {}

  Truth write(std::uint64_t bytes) {
    put(R"(
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    }
    ],
      "record_shapes": 1,
      "cuda_runtime_version": 13000,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [)");
    constexpr int kLayers = 32;
    for (int step = 0; truth_.bytes < bytes; ++step) {
      const double begin = cpu_us_;
      for (int layer = 0; layer < kLayers; ++layer)
        for (const OpTemplate& op : kOps) add(op);
      event("user_annotation", fmt::format("ProfilerStep#{}", step), 1469, 1469, begin,
            cpu_us_ - begin,
            fmt::format("\"External id\": {},\"Record function id\": 0, "
                        "\"Ev Idx\": {}",
                        external_ + 1, external_ + 1));
      ++external_;
      cpu_us_ += 50;
    }
    put(fmt::format(R"(
  {{
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": {:.3f}
  }}
  ],
  "traceName": "synthetic.json"
}})",
                    cpu_us_));
    return truth_;
  }

 private:
  void put(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), file_);
    truth_.bytes += text.size();
  }
  void event(std::string_view category, std::string_view name, int pid, int tid, double ts,
             double dur, std::string_view args) {
    put(
        fmt::format("\n  {{\n    \"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, "
                    "\"tid\": {},\n    \"ts\": {:.3f}, \"dur\": {:.3f},\n    \"args\": {{\n      "
                    "{}\n    }}\n  }},",
                    category, name, pid, tid, ts, dur, args));
  }
  void flow(char phase, int pid, int tid, double ts) {
    put(
        fmt::format("\n  {{\n    \"ph\": \"{}\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": "
                    "{:.3f},\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"{}\n  }},",
                    phase, correlation_, pid, tid, ts, phase == 'f' ? ", \"bp\": \"e\"" : ""));
  }
  void op(const OpTemplate& of, const char* name, double ts, double dur) {
    ++external_;
    ++truth_.ops;
    event("cpu_op", name, 1469, 1469, ts, dur,
          fmt::format("\"External id\": {},\"Record function id\": 0, \"Concrete Inputs\": {}, "
                      "\"Input type\": {}, \"Input Strides\": {}, \"Input Dims\": {}, "
                      "\"Ev Idx\": {}",
                      external_, of.concrete, of.types, of.dims, of.dims, external_));
  }
  void add(const OpTemplate& of) {
    const double begin = cpu_us_, jitter = random_.uniform(0.9, 1.1);
    op(of, of.parent, begin, 24 * jitter);
    op(of, of.name, begin + 4, 16 * jitter);
    correlation_ += 1 + static_cast<int>(random_.below(8));
    const std::string link = fmt::format("\"External id\": {},", external_);
    event("cuda_runtime", "cudaLaunchKernel", 1469, 1469, begin + 9, 4.2 * jitter,
          fmt::format("{}\n      \"cbid\": 211, \"correlation\": {}", link, correlation_));
    flow('s', 1469, 1469, begin + 9);
    const auto kernel_ns = static_cast<std::uint64_t>(of.kernel_us * 1000 * jitter);
    gpu_us_ = std::max(gpu_us_, begin + 15) + 0.5;
    event(
        "kernel", of.kernel, 0, 7, gpu_us_, static_cast<double>(kernel_ns) / 1000,
        fmt::format("{}\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, "
                    "\"correlation\": {},\n      \"registers per thread\": 32,\n      \"shared "
                    "memory\": 0,\n      \"blocks per SM\": 23.272728,\n      \"warps per SM\": "
                    "93.090912,\n      \"grid\": {},\n      \"block\": {},\n      \"est. achieved "
                    "occupancy %\": 100",
                    link, correlation_, of.grid, of.block));
    flow('f', 0, 7, gpu_us_);
    gpu_us_ += static_cast<double>(kernel_ns) / 1000;
    cpu_us_ += 26 * jitter;
    ++truth_.kernels;
    truth_.kernel_ns += kernel_ns;
    truth_.gemms += of.gemm ? 1 : 0;
  }

  std::FILE* file_;
  Random random_{1};
  Truth truth_;
  double cpu_us_ = 4320336255097.024, gpu_us_ = 0;
  int external_ = 0, correlation_ = 1000;
};

bool is_right(const Profile& profile, const Truth& truth) {
  double kernels = 0, ns = 0, gemms = 0;
  for (const KernelRow& row : profile.kernels) {
    kernels += row.duration.count();
    ns += row.duration.total_ns();
    const bool known = row.shape == "M=4096,N=3072,K=1024" || row.shape == "M=4096,N=1024,K=4096";
    if (known && row.dtype == "bf16") gemms += row.duration.count();
  }
  return kernels == static_cast<double>(truth.kernels) &&
         ns == static_cast<double>(truth.kernel_ns) && gemms == static_cast<double>(truth.gemms) &&
         profile.timeline.ops.size() == truth.ops;
}

// CPU seconds of Python's json.load; negative where there is no Python.
double python_cpu_s(const std::string& path) {
  Process::Options options;
  options.argv = {"python3", "-c",
                  "import json, sys, time\nwith open(sys.argv[1]) as file: json.load(file)\n"
                  "print(time.process_time())",
                  path};
  options.out = options.err = Process::Stream::kPipe;
  const Result<Captured> run = run_captured(options, 900);
  if (!run.is_ok() || !run->exit.ok()) return -1;
  return parse_double(trim(run->out)).value_or(-1);
}

}  // namespace

int main(int argc, char** argv) {
  const auto mib = parse_int(argc > 1 ? argv[1] : "192");
  if (!mib || *mib < 1 || *mib > 100'000) {
    std::fprintf(stderr, "usage: bench_kineto_import [MIB [FILE]]   (1 to 100000)\n");
    return 2;
  }
  const std::string folder = make_temporary_directory("purlin-bench").value();
  std::string path = join_path(folder, "trace.json");
  Truth truth;
  if (argc > 2) {
    path = argv[2];
    truth.bytes = file_size(path).value_or(0);
  } else {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return 2;
    truth = Writer(file).write(static_cast<std::uint64_t>(*mib) << 20);
    if (std::fclose(file) != 0) return 2;
  }
  const double mb = static_cast<double>(truth.bytes) / 1e6;
  double best_cpu = 1e300, best_wall = 1e300;
  bool right = true;
  std::size_t activities = 0;
  const int repeats = mb < 1000 ? 5 : 1;
  const double before_mib = peak_mib();
  for (int i = 0; i < repeats; ++i) {
    const double cpu = cpu_s(), wall = now_s();
    const Result<Profile> profile = profile::import_chrome_trace(path, {});
    best_cpu = std::min(best_cpu, cpu_s() - cpu);
    best_wall = std::min(best_wall, now_s() - wall);
    if (!profile.is_ok()) {
      std::fprintf(stderr, "bench_kineto_import: %s\n", profile.status().message().c_str());
      return 2;
    }
    right = right && !profile->partial && (argc > 2 || is_right(*profile, truth));
    activities = profile->timeline.activities.size();
  }
  constexpr double kMaxForPythonMb = 512 * 1.048576;
  const double python = mb <= kMaxForPythonMb ? python_cpu_s(path) : -1;
  Json document = new_document("purlin.bench-kineto-import/1", host_environment());
  document.set("json_mb", mb);
  document.set("activities", activities);
  document.set("repeats", repeats);
  document.set("cpu_s", best_cpu);
  document.set("wall_s", best_wall);
  document.set("mb_per_s_per_core", mb / best_cpu);
  document.set("budget_mb_per_s_per_core", 300);
  document.set("peak_mib", peak_mib());
  document.set("peak_before_mib", before_mib);
  if (python > 0) {
    document.set("python_json_load_cpu_s", python);
    document.set("python_json_load_mb_per_s", mb / python);
    document.set("ratio_to_python", python / best_cpu);
  }
  document.set("figures_are_right", right);
  std::printf("%s\n", document.dump(2).c_str());
  if (!remove_tree(folder).is_ok()) return 2;
  return right ? 0 : 1;
}
