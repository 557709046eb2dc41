// SPDX-License-Identifier: Apache-2.0
// A program on the fake CUPTI that launches as fast as it can: what windows that follow each other
// closely have to do with.
//
//   busy_client THREADS SECONDS NODES [CAPTURED]   each thread launches ten times, waits for them,
//   and so on; with NODES each is a graph of so many kernels, which count. With CAPTURED: before
//   the ten, so many launches are captured. Prints "ready", then how many launches it made.
#include "injection.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" void fake_launch(const char* name, int launches, std::uint64_t duration_ns);
extern "C" void fake_capture(int launches);
extern "C" void fake_graph_launch(const char* node, int nodes, std::uint64_t duration_ns);
extern "C" void fake_synchronize();

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const double seconds = std::atof(argv[2]);
  const int nodes = std::atoi(argv[3]);
  const int captured = argc > 4 ? std::atoi(argv[4]) : 0;
  load_driver();
  inject();
  std::puts("ready");
  std::fflush(stdout);
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  std::atomic<long> made = 0;
  const auto work = [&] {
    while (std::chrono::duration<double>(Clock::now() - began).count() < seconds) {
      fake_capture(captured);
      for (int i = 0; i < 10; ++i) {
        if (nodes > 0)
          fake_graph_launch("replayed", nodes, 2000);
        else
          fake_launch("launched", 1, 2000);
      }
      fake_synchronize();
      made += 10 * (nodes > 0 ? nodes : 1);
    }
  };
  std::vector<std::thread> all;
  for (int i = 1; i < threads; ++i) all.emplace_back(work);
  work();
  for (std::thread& thread : all) thread.join();
  std::printf("made %ld launches\n", made.load());
}
