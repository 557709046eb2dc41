// SPDX-License-Identifier: Apache-2.0
// The same as consumer.c through the C++ layer.
#include <cstdio>
#include <cstdlib>
#include <purlin/purlin.hpp>

// As a program with a context would; the C++ layer is instantiated here.
purlin_choice launch(purlin::Cache& cache, void* context, void* queue, void* a, void* b, void* c) {
  purlin::DispatcherOptions options;
  options.backend = "opencl";
  options.context = context;
  purlin::Dispatcher gemm(cache, "gemm.toml", options);
  gemm.prepare({256, 256, 256});
  gemm(queue, {256, 256, 256}, a, b, c, 256, 256, 256);
  return gemm.choice({256, 256, 256});
}

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  purlin::Cache cache;
  const purlin::Op gemm = cache.op("gemm", {"M", "N", "K"}, cache.device("opencl:0"));
  const purlin::Hit hit = gemm.find(std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]));
  std::printf("%s %s\n", hit.outcome_name(), hit.options());
  try {
    launch(cache, nullptr, nullptr, nullptr, nullptr, nullptr);
    return 2;
  } catch (const purlin::Error& error) {
    if (error.status() != PURLIN_NOT_FOUND) throw;  // there is no such spec here
  }
  return 0;
} catch (const purlin::Error& error) {
  std::fprintf(stderr, "consumer: %s\n", error.what());
  return 2;
}
