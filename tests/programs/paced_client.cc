// SPDX-License-Identifier: Apache-2.0
// A program on the fake CUPTI that launches at a rate for a while: what a governor has to do with.
//
//   paced_client SECONDS LAUNCHES_PER_MS [NODES [NS]]   prints "ready", then how many launches it
//   made; with NODES (0: none) each is one of a graph of so many kernels, which count, and each
//   kernel takes so many NS (500), with FAKE_CUPTI_CLOCKED of a device, which is then given 50 ms
//   of work ahead. FAKE_CUDA names a driver to load. PAUSE_AFTER=S: after so many seconds it only
//   waits. COPIES=1: a copy with each batch of launches; prints how many there were, too.
//   CONTEXT_AT=FILE: it has no context, and its time does not begin, until FILE exists. SIGTERM
//   ends its time.
#include "injection.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

extern "C" void fake_launch(const char* name, int launches, std::uint64_t duration_ns);
extern "C" void fake_graph_launch(const char* node, int nodes, std::uint64_t duration_ns);
extern "C" void fake_context(int exists);
extern "C" void fake_copy(std::uint64_t bytes);
extern "C" void fake_synchronize();

namespace {

volatile std::sig_atomic_t ended = 0;

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const double seconds = std::atof(argv[1]);
  const int per_ms = std::atoi(argv[2]);
  const int nodes = argc > 3 ? std::atoi(argv[3]) : 0;
  const std::uint64_t ns = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 500;
  const long ahead = argc > 4 ? static_cast<long>(50'000'000 / std::max<std::uint64_t>(ns, 1)) : 0;
  std::signal(SIGTERM, [](int) { ended = 1; });
  load_driver();
  const char* context = std::getenv("CONTEXT_AT");
  if (context != nullptr) fake_context(0);
  inject();
  const char* pause = std::getenv("PAUSE_AFTER");
  const double busy = pause != nullptr ? std::atof(pause) : seconds;
  std::puts("ready");
  std::fflush(stdout);
  if (context != nullptr) {
    while (!ended && !std::filesystem::exists(context))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!ended) fake_context(1);
  }
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const bool copies = std::getenv("COPIES") != nullptr;
  long made = 0, copied = 0;
  // By the clock, not by sleeps: a busy machine makes steps longer, not fewer launches.
  for (;;) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - began).count();
    if (elapsed >= seconds || ended != 0) break;
    const long due = static_cast<long>(std::min(elapsed, busy) * 1000 * per_ms) + ahead;
    if (due > made && nodes == 0) fake_launch("paced", static_cast<int>(due - made), ns);
    for (long i = made; i < due && nodes > 0; ++i) fake_graph_launch("replayed", nodes, ns);
    if (due > made && copies) fake_copy(4096), ++copied;
    made = due > made ? due : made;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  fake_synchronize();
  std::printf("made %ld launches\n", made * (nodes > 0 ? nodes : 1));
  if (copies) std::printf("made %ld copies\n", copied);
}
