// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks of the runtime: a small spec, entries for it, a dispatcher on a fake
// context.
#pragma once

#include "gpu/fake/fake_app_context.h"
#include "runtime/dispatcher.h"

#include <memory>
#include <string>

namespace purlin::runtime {

// out = x, N elements; the grid tells the config's BLOCK, and a scalar its ITEMS.
inline KernelSpec sample_spec() {
  constexpr std::string_view kSpec = R"toml(
schema = "purlin.spec/1"
name = "copy"
op = "elementwise"
summary = "a copy"
constraints = ["N % ITEMS == 0"]
[problem]
N = 1024
[kernel]
entry = "copy"
[kernel.opencl]
file = "copy.cl"
[parameters]
BLOCK = {values = [32, 64, 128], default = 32}
ITEMS = {values = [1, 2, 4], default = 1}
[launch]
grid = ["ceil_div(N, BLOCK * ITEMS)"]
block = ["BLOCK"]
[[arguments]]
name = "x"
role = "input"
dtype = "f32"
shape = ["N"]
[[arguments]]
name = "out"
role = "output"
dtype = "f32"
shape = ["N"]
[[arguments]]
name = "N"
role = "scalar"
dtype = "i32"
value = "N"
[reference]
entry = "copy"
[reference.opencl]
file = "copy.cl"
[reference.launch]
grid = ["N"]
block = [1]
[bucket]
N = "pow2"
)toml";
  return parse_spec(kSpec, "copy.toml",
                    [](const std::string&) { return Result<std::string>("kernel void copy();"); })
      .value();
}

inline Config sample_config(std::int64_t block, std::int64_t items) {
  Config config;
  config.set("BLOCK", block);
  config.set("ITEMS", items);
  return config;
}

// A winner for N on the fake context.
inline cache::Entry sample_winner(const KernelSpec& spec, std::int64_t n, const Config& config) {
  ProblemShape problem;
  problem.set("N", n);
  cache::Entry entry =
      cache::new_entry(spec, problem, gpu::FakeAppContext().info(), /*cold_cache=*/false).value();
  entry.config = config;
  entry.default_config = default_config(spec);
  entry.time_ms = 0.5;
  entry.default_time_ms = 1;
  entry.verified = true;
  return entry;
}

}  // namespace purlin::runtime
