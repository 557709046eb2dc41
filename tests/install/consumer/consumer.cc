// SPDX-License-Identifier: Apache-2.0
// The same as consumer.c through the C++ layer.
#include <cstdio>
#include <cstdlib>
#include <purlin/purlin.hpp>

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  purlin::Cache cache;
  const purlin::Op gemm = cache.op("gemm", {"M", "N", "K"}, cache.device("opencl:0"));
  const purlin::Hit hit = gemm.find(std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]));
  std::printf("%s %s\n", hit.outcome_name(), hit.options());
  return 0;
} catch (const purlin::Error& error) {
  std::fprintf(stderr, "consumer: %s\n", error.what());
  return 2;
}
