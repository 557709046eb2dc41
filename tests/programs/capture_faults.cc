// SPDX-License-Identifier: Apache-2.0
// Awkward programs on the fake CUPTI, as tests/gpu/programs/capture_faults.cu has them for a real
// GPU. Each launches a kernel "work", counts its launches, and may run a profiler of its own, whose
// launches are "profiled".
//
//   capture_faults MODE [NUMBER [NUMBER]]
//
// Prints {"work": N, "profiled": N, "seen": N, "foreign": N, "rss_kb": [before, after]}: seen are
// the records its profiler got, foreign the buffers that were not its own. FAKE_CUPTI names
// libcupti.
#include "injection.h"

#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::uint64_t kDuration = 5000;
constexpr auto kKernels = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;

// One copy of libcupti as the program resolved it.
struct Copy {
  void* library = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiFinalize) finalize = nullptr;
  void (*launch)(const char*, int, std::uint64_t) = nullptr;
  void (*launch_graph)(const char*, int, std::uint64_t) = nullptr;
  void (*synchronize)() = nullptr;
  const char* (*load_module)(const char*) = nullptr;
  int (*enabled)(CUpti_ActivityKind) = nullptr;
};

template <class F>
void bind(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
}

Copy open_copy(const char* path) {
  Copy copy;
  copy.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (copy.library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(9);
  }
  bind(copy.library, "cuptiActivityRegisterCallbacks", copy.register_callbacks);
  bind(copy.library, "cuptiActivityEnable", copy.enable);
  bind(copy.library, "cuptiActivityDisable", copy.disable);
  bind(copy.library, "cuptiActivityFlushAll", copy.flush);
  bind(copy.library, "cuptiActivityGetNextRecord", copy.next);
  bind(copy.library, "cuptiFinalize", copy.finalize);
  bind(copy.library, "fake_launch", copy.launch);
  bind(copy.library, "fake_graph_launch", copy.launch_graph);
  bind(copy.library, "fake_synchronize", copy.synchronize);
  bind(copy.library, "fake_module_load", copy.load_module);
  bind(copy.library, "fake_enabled", copy.enabled);
  return copy;
}

const char* path() { return std::getenv("FAKE_CUPTI"); }

// The copy by which the program's profiler works, and all those that see its launches: as with the
// real one, each copy that is loaded traces on its own.
Copy cupti;
std::vector<Copy> copies;
std::atomic<long> work{0}, profiled{0}, seen{0}, foreign{0};
std::mutex mutex;
std::set<std::uint8_t*> lent;

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = 4096;
  *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
  *most = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  lent.insert(*buffer);
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (lent.erase(buffer) == 0) {
      ++foreign;
      std::free(buffer);  // no client looks whose it is
      return;
    }
  }
  CUpti_Activity* record = nullptr;
  while (cupti.next(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == kKernels &&
        std::strcmp(reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name, "profiled") == 0)
      ++seen;
  std::free(buffer);
}

void resolve() {
  if (copies.empty()) copies.push_back(open_copy(path()));
  if (cupti.library == nullptr) cupti = copies[0];
}

// As the driver does it within cuInit. The program resolves CUPTI's functions afterwards, where it
// has not yet.
void initialize_cuda() {
  inject();
  resolve();
}

void launch(const char* name, std::atomic<long>& count, int launches) {
  for (const Copy& copy : copies) copy.launch(name, launches, kDuration);
  count += launches;
}

void synchronize() {
  for (const Copy& copy : copies) copy.synchronize();
}

void begin_profiler() {
  cupti.register_callbacks(&requested, &completed);
  cupti.enable(kKernels);
}

void end_profiler() {
  synchronize();
  cupti.disable(kKernels);
  cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

void profile(int launches) {
  begin_profiler();
  launch("profiled", profiled, launches);
  end_profiler();
}

// Until Purlin records again, for at most a moment: some modes are of programs where it must not.
void wait_for_capture(int milliseconds) {
  const bool captured = std::getenv("CUDA_INJECTION64_PATH") != nullptr;
  for (int i = 0; captured && i < milliseconds && copies[0].enabled(kKernels) == 0; ++i)
    usleep(1000);
}

long rss_kb() {
  long size = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * 4;
}

void print(long rss_before) {
  std::printf(
      "{\"work\": %ld, \"profiled\": %ld, \"seen\": %ld, \"foreign\": %ld, \"rss_kb\": [%ld, "
      "%ld]}\n",
      work.load(), profiled.load(), seen.load(), foreign.load(), rss_before, rss_kb());
  std::fflush(stdout);
}

// A little of everything, until the file is there or the time is up.
void mixed(int seconds, const char* stop_file) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  const auto run = [&](auto step) {
    threads.emplace_back([&done, step] {
      while (!done) {
        step();
        usleep(500);
      }
      synchronize();
    });
  };
  for (int i = 0; i < 3; ++i) run([] { launch("work", work, 8); });
  run([] {
    copies[0].launch_graph("node", 20, kDuration);
    work += 20;
  });
  run([] {
    launch("module", work, 4);
    synchronize();
  });
  run([] {
    std::thread([] { launch("work", work, 1); }).join();
    usleep(5000);
  });
  std::printf("ready\n");
  std::fflush(stdout);
  for (int i = 0; i < seconds * 100 && access(stop_file, F_OK) != 0; ++i) usleep(10'000);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

int run_again(const char* mode, const char* number) {
  execl("/proc/self/exe", "capture_faults", mode, number, static_cast<char*>(nullptr));
  return 127;
}

// A child's exit code.
template <class F>
int in_child(F run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int n = argc > 2 ? std::atoi(argv[2]) : 1000;
  const int m = argc > 3 ? std::atoi(argv[3]) : 10;
  const char* again = argc > 2 ? argv[2] : "1000";
  int code = 0;

  // What some do before CUDA is initialised.
  if (mode == "profiled-first" || mode == "profiled-first-unseen") {
    // PyTorch's profiler started before the first use of CUDA.
    cupti = open_copy(path());
    copies.push_back(cupti);
    begin_profiler();
  } else if (mode == "resolved-first") {  // it has CUPTI's addresses before they are Purlin's
    cupti = open_copy(path());
    copies.push_back(cupti);
  } else if (mode == "two-copies") {
    dlopen(path(), RTLD_NOW | RTLD_LOCAL);
    dlopen(std::getenv("FAKE_CUPTI_2"), RTLD_NOW | RTLD_LOCAL);
  }
  if (mode == "fork-early")
    return in_child([&] {
      initialize_cuda();
      launch("work", work, n);
      std::exit(0);
      return 0;
    });
  initialize_cuda();
  const bool profiled_first = mode.rfind("profiled-first", 0) == 0;
  launch(profiled_first ? "profiled" : "work", profiled_first ? profiled : work, 100);
  if (mode == "profiled-first") cupti = open_copy(path());  // as a client's slots are rebound
  const long before = rss_kb();

  if (mode == "loop") {
    launch("work", work, n);
    synchronize();
  } else if (mode == "in-flight") {  // ends while its last launches run
    launch("work", work, n);
  } else if (mode == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < m; ++i)
      threads.emplace_back([n] {
        for (int k = 0; k < n; k += 10) launch("work", work, 10);
        synchronize();
      });
    for (std::thread& thread : threads) thread.join();
  } else if (mode == "modules") {
    for (int i = 0; i < n; ++i) {
      const std::string name = "module_" + std::to_string(i % 4);
      launch(copies[0].load_module(name.c_str()), work, 10);
      synchronize();
      if (i % 2 == 0) copies[0].flush(0);
    }
  } else if (mode == "graphs") {
    for (int i = 0; i < n; ++i) copies[0].launch_graph("node", m, kDuration);
    work += static_cast<long>(n) * m;
    synchronize();
  } else if (mode == "mixed") {
    mixed(n, argc > 3 ? argv[3] : "");
  } else if (mode == "hang") {
    launch("work", work, n);
    synchronize();
    print(before);
    pause();
  } else if (mode == "abort") {
    launch("work", work, n);
    print(before);
    std::abort();
  } else if (mode == "exec") {
    launch("work", work, n);
    return run_again("loop", again);
  } else if (mode == "fork") {  // one child without use for the device, one that is another program
    code = in_child([] { return 0; });
    code += in_child([&] { return run_again("loop", again); });
    launch("work", work, n);
  } else if (profiled_first) {
    launch("profiled", profiled, n);
    end_profiler();
    wait_for_capture(200);
    launch("work", work, n);
    profile(n);
    wait_for_capture(2000);
    launch("work", work, n);
  } else if (mode == "resolved-first") {
    usleep(200'000);  // Purlin's windows come and go
    profile(n);
    usleep(200'000);
    profile(n);
    begin_profiler();
    usleep(200'000);
    launch("profiled", profiled, n);
    end_profiler();
  } else if (mode == "two-copies" || mode == "two-copies-late") {
    if (mode == "two-copies-late") {
      dlopen(std::getenv("FAKE_CUPTI_2"), RTLD_NOW | RTLD_LOCAL);
      usleep(static_cast<useconds_t>(m) * 1000);
    }
    copies.push_back(open_copy(std::getenv("FAKE_CUPTI_2")));
    cupti = copies.back();
    profile(n);
    wait_for_capture(2000);
    launch("work", work, n);
    profile(n);
  } else if (mode == "profiles") {  // its profiler comes and goes
    for (int i = 0; i < n; ++i) {
      profile(m);
      if (i % 16 == 0) wait_for_capture(1000);
      launch("work", work, m);
    }
  } else if (mode == "profiles-threads") {  // … while others launch
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&done] {
        while (!done) {
          launch("work", work, 10);
          usleep(50);
        }
      });
    for (int i = 0; i < n; ++i) profile(m);
    done = true;
    for (std::thread& thread : threads) thread.join();
  } else if (mode == "finalizes") {
    profile(n);
    cupti.finalize();
    wait_for_capture(1000);
    launch("work", work, n);
    profile(n);
  } else {
    std::fprintf(stderr, "no mode '%s'\n", mode.c_str());
    return 2;
  }
  print(before);
  return code;
}
