// SPDX-License-Identifier: Apache-2.0
// bench_nvtx: what a range of NVTX costs the program, in ns for one push and its pop.
//
// In processes of their own: no tool; Purlin's capture library as the reader, no window open (how
// nearly all of a run is); and, in one with the log compiled in, while a window is open. Names are
// PyTorch's emit_nvtx's and a short one. Each figure is the least of 40 rounds, beside that of a
// clock read in the same process. Results: one JSON document.
#include "base/files.h"
#include "base/os/process.h"
#include "model/document.h"
#include "profile/capture/ranges/range_log.h"
#include "profile/launcher.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nvtx3/nvToolsExt.h>
#include <string>

using namespace purlin;

namespace {

constexpr const char* kShort = "forward";
constexpr const char* kLong =
    "aten::addmm, seq = 8, op_id = 14, sizes = [[128], [8, 1024], [1024, 128], [], []], "
    "input_op_ids = [(0,-1), (8,0), (11,0), (0,-1), (0,-1)]";
constexpr int kRounds = 40;

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Of the thread's own time, so that other work on the machine does not count.
template <class Act>
double least_ns(int count, Act act) {
  double least = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = cpu_ns();
    for (int i = 0; i < count; ++i) act();
    least = std::min(least, (cpu_ns() - begin) / count);
  }
  return least;
}

double clock_ns() {
  return least_ns(100'000, [] {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
  });
}

int child() {
  for (const char* name : {kShort, kLong})
    std::printf("%g ", least_ns(100'000, [name] {
                  nvtxRangePushA(name);
                  nvtxRangePop();
                }));
  std::printf("%g\n", clock_ns());
  return 0;
}

Result<Json> measured(const std::string& injected) {
  Process::Options options;
  options.argv = {join_path(executable_directory(), "bench_nvtx"), "child"};
  options.environment = {{"NVTX_INJECTION64_PATH", injected}};
  PURLIN_ASSIGN(const Captured ran, run_captured(options));
  const std::string& text = ran.out;
  double brief = 0, full = 0, clock = 0;
  if (std::sscanf(text.c_str(), "%lf %lf %lf", &brief, &full, &clock) != 3)
    return error(Code::kIo, "the child printed '{}'", text);
  return Json::object({{"short_name_ns", brief}, {"emit_nvtx_name_ns", full}, {"clock_ns", clock}});
}

class Nothing : public profile::capture::RangeLog::Reader {
 public:
  void thread(std::uint32_t, std::uint32_t) override {}
  void begin_window(std::int64_t) override {}
  void enter(std::int64_t, std::uint32_t, std::uint8_t) override {}
  void leave(std::int64_t, std::uint8_t) override {}
  void end() override {}
};

Json listening() {
  profile::capture::RangeLog& log = *profile::capture::RangeLog::instance();
  Nothing reader;
  const auto one = [&](std::string_view name) {
    return least_ns(100'000, [&, i = 0]() mutable {
      log.enter(name, 0);
      log.leave(0);
      if (++i % 50'000 == 0) log.drain(reader);
    });
  };
  log.start_listening();
  Json result = Json::object({{"short_name_ns", one(kShort)}, {"emit_nvtx_name_ns", one(kLong)}});
  log.stop_listening();
  result.set("closed_short_name_ns", one(kShort));
  result.set("clock_ns", clock_ns());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "child") return child();
  const std::string library = profile::find_capture_libraries().cuda;
  const Result<Json> without = measured("");
  const Result<Json> with = library.empty()
                                ? error(Code::kNotFound, "libpurlin_cuda.so is not built")
                                : measured(library);
  if (!without.is_ok() || !with.is_ok()) {
    std::fprintf(stderr, "bench_nvtx: %s\n",
                 (without.is_ok() ? with.status() : without.status()).message().c_str());
    return 2;
  }
  Json document = new_document("purlin.bench-nvtx/1", host_environment());
  document.set("no_tool", *without);
  document.set("no_window", *with);
  document.set("window_open", listening());
  std::printf("%s\n", document.dump(2).c_str());
  return 0;
}
