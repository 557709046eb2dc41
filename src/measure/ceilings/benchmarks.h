// SPDX-License-Identifier: Apache-2.0
// The micro-benchmarks that measure a device's ceilings: the kernel of each, and its amount of
// work. Private to measure/ceilings. The sources are in the binary, so they are available on every
// machine. Pure functions.
#pragma once

#include "model/device/device.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::measure {

enum class CeilingWork {
  kRead,     // buffer a, once
  kWrite,    // buffer a, once
  kCopy,     // a to b
  kTriad,    // a = b + s * c
  kL2Read,   // a small buffer, again and again
  kCompute,  // only arithmetic
};

struct CeilingBenchmark {
  std::string ceiling;  // the measured one: "dram", "l2", "f32", "bf16 tensor"
  std::string method;   // "triad", "mma.sync m16n8k16", "wgmma m64n256k16"
  CeilingWork work = CeilingWork::kCompute;
  std::string source, entry;
  std::vector<std::string> options;
  int block = 256;  // threads
  // kCompute: FLOPs of one block in one iteration.
  double flops = 0;
  std::vector<int> blocks_per_unit;  // grids tried, the best counts
};

// Those that the device's language and architecture can run; `language` as gpu::Device::language().
std::vector<CeilingBenchmark> ceiling_benchmarks(const DeviceInfo& device,
                                                 std::string_view language);

// Behind it.
std::vector<CeilingBenchmark> cuda_ceiling_benchmarks(int arch, bool arch_specific);
std::vector<CeilingBenchmark> opencl_ceiling_benchmarks(bool cpu);

}  // namespace purlin::measure
