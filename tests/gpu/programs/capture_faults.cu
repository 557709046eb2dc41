// SPDX-License-Identifier: Apache-2.0
// Programs that try a capture library on a real GPU: each does one awkward thing, counts its own
// launches by kernel, and prints them as one JSON line with its memory before and after.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 capture_faults.cu -o capture_faults -ldl -lpthread
//   capture_faults MODE [NUMBER [NUMBER]]
//
// Uses the runtime API, and libcuda.so.1 opened at run time where the runtime has no call.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void fault_empty() {}
__global__ void fault_node() {}
__global__ void fault_spin(long long ns) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

namespace {

std::mutex mutex;
std::map<std::string, long> launched;

void count(const char* name, long n) {
  const std::lock_guard<std::mutex> lock(mutex);
  launched[name] += n;
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(20);
}

long rss_kb() {
  long pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

std::vector<long> rss;

void print(const char* mode) {
  std::string text = std::string("{\"mode\": \"") + mode + "\", \"launches\": {";
  for (const auto& [name, n] : launched)
    text += (text.back() == '{' ? "\"" : ", \"") + name + "\": " + std::to_string(n);
  text += "}, \"rss_kb\": [";
  for (std::size_t i = 0; i < rss.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(rss[i]);
  std::printf("%s]}\n", text.c_str());
  std::fflush(stdout);
}

void launch(long n, cudaStream_t stream = nullptr, long between_syncs = 256) {
  for (long i = 0; i < n; ++i) {
    fault_empty<<<1, 32, 0, stream>>>();
    if ((i + 1) % between_syncs == 0) check(cudaStreamSynchronize(stream), "synchronize");
  }
  check(cudaGetLastError(), "launch");
  check(cudaStreamSynchronize(stream), "synchronize");
  count("fault_empty()", n);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void for_seconds(double seconds, void (*work)()) {
  const auto begin = std::chrono::steady_clock::now();
  for (int quarter = 1; quarter <= 4; ++quarter) {
    while (seconds_since(begin) < seconds * quarter / 4) work();
    rss.push_back(rss_kb());
  }
}

cudaGraphExec_t make_graph(int nodes) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  for (int i = 0; i < nodes; ++i) fault_node<<<1, 32, 0, stream>>>();
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  check(cudaGraphDestroy(graph), "destroy");
  check(cudaStreamDestroy(stream), "stream");
  return exec;
}

constexpr int kNodes = 20;
cudaGraphExec_t held_graph;

void replay() {
  for (int i = 0; i < 10; ++i) check(cudaGraphLaunch(held_graph, nullptr), "graph launch");
  check(cudaDeviceSynchronize(), "synchronize");
  count("fault_node()", 10 * kNodes);
}

void fresh_graph() {
  held_graph = make_graph(kNodes);
  replay();
  check(cudaGraphExecDestroy(held_graph), "destroy");
}

// A little of everything at a moderate rate, until the file is there or the time is up: what windows by the thousand
// are opened over. Prints a line once all is under way.
void mixed(double seconds, const char* stop_file, bool graphs) {
  std::atomic<bool> done{false};
  std::atomic<long> launches{0}, nodes{0};
  check(cudaFree(nullptr), "init");
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  const auto run = [&](auto work) {
    threads.emplace_back([&done, work] {
      cudaStream_t stream;
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
      while (!done) {
        work(stream);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      check(cudaStreamSynchronize(stream), "synchronize");
    });
  };
  for (int i = 0; i < 4; ++i)
    run([&launches, i](cudaStream_t stream) {
      for (int k = 0; k < 8; ++k) fault_empty<<<1, 32, 0, i == 0 ? nullptr : stream>>>();
      check(cudaStreamSynchronize(stream), "synchronize");
      launches += 8;
    });
  static cudaGraphExec_t held = make_graph(kNodes);
  const auto run_graphs = [&](auto work) {
    if (graphs) run(work);
  };
  run_graphs([&nodes](cudaStream_t stream) {
    check(cudaGraphLaunch(held, stream), "graph launch");
    check(cudaStreamSynchronize(stream), "synchronize");
    nodes += kNodes;
  });
  run_graphs([&nodes](cudaStream_t stream) {  // made, replayed and destroyed, within windows and across them
    cudaGraphExec_t fresh = make_graph(kNodes);
    check(cudaGraphLaunch(fresh, stream), "graph launch");
    check(cudaStreamSynchronize(stream), "synchronize");
    check(cudaGraphExecDestroy(fresh), "destroy");
    nodes += kNodes;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  run([&launches](cudaStream_t) {  // threads that come, launch once, and go
    std::thread([&launches] {
      fault_empty<<<1, 32>>>();
      launches += 1;
    }).join();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  std::printf("ready\n");
  std::fflush(stdout);
  while (seconds_since(begin) < seconds && access(stop_file, F_OK) != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  done = true;
  for (std::thread& thread : threads) thread.join();
  check(cudaDeviceSynchronize(), "synchronize");
  count("fault_empty()", launches);
  count("fault_node()", nodes);
}

template <class F>
F driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) std::fprintf(stderr, "no %s\n", name), std::exit(21);
  return function;
}

// Modules of one kernel each, under names that take turns: what has the address of a name that was
// freed must not be reported under it.
void modules(long rounds) {
  check(cudaFree(nullptr), "init");
  const auto load = driver<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData");
  const auto unload = driver<CUresult (*)(CUmodule)>("cuModuleUnload");
  const auto get = driver<CUresult (*)(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction");
  const auto run = driver<CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                       unsigned, unsigned, CUstream, void**, void**)>("cuLaunchKernel");
  const char* names[] = {"module_alpha", "module_beta", "module_gamma", "module_delta"};
  for (long i = 0; i < rounds; ++i) {
    const char* name = names[i % 4];
    const std::string ptx = std::string(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry ") + name +
                            "() { ret; }\n";
    CUmodule module;
    CUfunction function;
    if (load(&module, ptx.c_str()) != CUDA_SUCCESS || get(&function, module, name) != CUDA_SUCCESS) std::exit(22);
    for (int k = 0; k < 10; ++k)
      if (run(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_SUCCESS) std::exit(23);
    check(cudaDeviceSynchronize(), "synchronize");
    if (unload(module) != CUDA_SUCCESS) std::exit(24);
    count(name, 10);
    if (i % (rounds / 4 + 1) == 0) rss.push_back(rss_kb());
  }
}

void contexts(long n) {
  const auto create = driver<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
  const auto current = driver<CUresult (*)(CUcontext)>("cuCtxSetCurrent");
  const auto destroy = driver<CUresult (*)(CUcontext)>("cuCtxDestroy_v2");
  check(cudaFree(nullptr), "init");
  launch(n);
  CUcontext first, second;
  if (create(&first, 0, 0) != CUDA_SUCCESS || create(&second, 0, 0) != CUDA_SUCCESS) std::exit(25);
  for (int i = 0; i < 4; ++i) {
    current(i % 2 == 0 ? first : second);
    launch(n);
  }
  destroy(first);
  current(second);
  launch(n);
}

// ---- a profiler of the program's own, as careless as most: it knows its buffers only

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next;
  decltype(&cuptiFinalize) finalize;
} cupti;
std::atomic<long> own_records, own_buffers;

void open_cupti(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror()), std::exit(26);
#define BIND(member, name) cupti.member = reinterpret_cast<decltype(&name)>(dlsym(library, #name))
  BIND(register_callbacks, cuptiActivityRegisterCallbacks);
  BIND(enable, cuptiActivityEnable);
  BIND(disable, cuptiActivityDisable);
  BIND(flush, cuptiActivityFlushAll);
  BIND(next, cuptiActivityGetNextRecord);
  BIND(finalize, cuptiFinalize);
#undef BIND
}

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = 1 << 18;
  *most = 0;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  ++own_buffers;
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cupti.next(buffer, valid, &record) == CUPTI_SUCCESS)
    own_records += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? 1 : 0;
  std::free(buffer);
  --own_buffers;
}

// Launches of the profiler are counted under a name of its own; what it missed is the exit code.
int own_profiler(long runs, long each, bool shut_down) {
  long expected = 0;
  for (long i = 0; i < runs; ++i) {
    cupti.register_callbacks(&requested, &completed);
    cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    for (long k = 0; k < each; ++k) fault_node<<<1, 32>>>();
    check(cudaDeviceSynchronize(), "synchronize");
    expected += each;
    cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (shut_down) cupti.finalize();
    launch(each);
    if (i % (runs / 4 + 1) == 0) rss.push_back(rss_kb());
  }
  count("own profiler saw", own_records);
  count("own profiler should see", expected);
  count("own buffers not returned", own_buffers);
  return own_records == expected ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int at, double otherwise) { return argc > at ? std::atof(argv[at]) : otherwise; };
  const double n = number(2, 10000);
  int code = 0;
  if (mode == "dlsym-early") open_cupti(argv[3]);  // before CUDA is initialised
  if (mode == "loop") {
    launch(static_cast<long>(n));
  } else if (mode == "seconds") {
    for_seconds(n, [] { launch(256); });
  } else if (mode == "mixed" || mode == "mixed-streams") {  // … SECONDS FILE; the other: no graphs
    mixed(n, argc > 3 ? argv[3] : "", mode == "mixed");
  } else if (mode == "idle") {  // a second of launches, a long nothing, a second of launches
    for_seconds(1, [] { launch(256); });
    std::this_thread::sleep_for(std::chrono::duration<double>(n));
    for_seconds(1, [] { launch(256); });
  } else if (mode == "never-synchronises") {  // the stream's queue is the only brake
    for (long i = 0; i < n; ++i) fault_empty<<<1, 32>>>();
    count("fault_empty()", static_cast<long>(n));
  } else if (mode == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < static_cast<int>(number(3, 64)); ++i)
      threads.emplace_back([n] {
        cudaStream_t stream;
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
        launch(static_cast<long>(n), stream);
        check(cudaStreamDestroy(stream), "stream");
      });
    for (std::thread& thread : threads) thread.join();
  } else if (mode == "thread-churn") {  // CUPTI keeps a buffer for each thread that ever launched
    for (long i = 0; i < n; ++i) {
      std::thread([] { launch(10); }).join();
      if (i % (static_cast<long>(n) / 4 + 1) == 0) rss.push_back(rss_kb());
    }
    rss.push_back(rss_kb());
  } else if (mode == "modules") {
    modules(static_cast<long>(n));
  } else if (mode == "exit-in-kernel" || mode == "_exit-in-kernel") {
    launch(1000);
    fault_spin<<<1, 1>>>(static_cast<long long>(n * 1e9));
    count("fault_spin(long long)", 1);
    print(mode.c_str());
    if (mode[0] == '_') _exit(0);
    return 0;
  } else if (mode == "reset") {
    launch(static_cast<long>(n));
    check(cudaDeviceReset(), "reset");
    launch(static_cast<long>(n));
  } else if (mode == "contexts") {
    contexts(static_cast<long>(n));
  } else if (mode == "graph") {  // instantiated before capture's windows, replayed through them
    held_graph = make_graph(kNodes);
    for_seconds(n, &replay);
  } else if (mode == "graph-fresh") {  // instantiated, replayed and destroyed all the time
    for_seconds(n, &fresh_graph);
  } else if (mode == "fork") {
    launch(static_cast<long>(n));
    const pid_t child = fork();
    if (child == 0) _exit(7);  // one that has no use for the device
    int status = 0;
    waitpid(child, &status, 0);
    const pid_t second = fork();
    if (second == 0) execl("/proc/self/exe", "capture_faults", "loop", argv[2], static_cast<char*>(nullptr)), _exit(127);
    waitpid(second, &status, 0);
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    launch(static_cast<long>(n));
  } else if (mode == "fork-early") {  // the child is the one that uses CUDA
    const pid_t child = fork();
    int status = 0;
    if (child != 0) {
      waitpid(child, &status, 0);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }
    launch(static_cast<long>(n));
  } else if (mode == "exec") {
    launch(static_cast<long>(n));
    print(mode.c_str());
    execl("/proc/self/exe", "capture_faults", "loop", argv[2], static_cast<char*>(nullptr));
    return 127;
  } else if (mode == "abort") {
    launch(static_cast<long>(n));
    std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(number(3, 0))));
    print(mode.c_str());
    std::abort();
  } else if (mode == "hang") {  // to be killed
    launch(static_cast<long>(n));
    print(mode.c_str());
    std::this_thread::sleep_for(std::chrono::hours(1));
  } else if (mode == "own-profiler" || mode == "own-profiler-late" || mode == "finalizes") {
    // … RUNS LAUNCHES CUPTI; late: a while after its copy of CUPTI was loaded
    check(cudaFree(nullptr), "init");
    launch(1000);
    const char* path = argc > 4 ? argv[4] : "libcupti.so.13";
    if (mode == "own-profiler-late") {
      dlopen(path, RTLD_NOW | RTLD_LOCAL);
      std::this_thread::sleep_for(std::chrono::seconds(3));
    }
    open_cupti(path);
    code = own_profiler(static_cast<long>(n), static_cast<long>(number(3, 10)), mode == "finalizes");
  } else if (mode == "dlsym-early") {  // … LAUNCHES CUPTI: it resolved CUPTI's functions before CUDA was initialised
    check(cudaFree(nullptr), "init");
    launch(1000);
    // Purlin's kinds may be on for it too, so it may have more than it asked for.
    own_profiler(5, static_cast<long>(n), false);
    code = own_records >= 5 * static_cast<long>(n) ? 0 : 1;
  } else {
    std::fprintf(stderr, "no mode '%s'\n", mode.c_str());
    return 2;
  }
  rss.push_back(rss_kb());
  print(mode.c_str());
  return code;
}
