// SPDX-License-Identifier: Apache-2.0
// Occupancy: how many of an SM's warp slots a launch can fill, and what limits it. Necessary for
// hiding latency, not sufficient for speed. Limits are those of the CUDA programming guide
// ("technical specifications per compute capability") for sm_50 to sm_121. Pure functions;
// docs/concepts/occupancy.md.
#pragma once

#include "model/device/launch.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace purlin {

struct SmLimits {  // of one SM
  int warps = 0, blocks = 0;
  int registers = 65536, registers_per_block = 65536;
  int partitions = 4;                 // Register files: a warp's registers come from one of them.
  int register_granularity = 256;     // A warp's allocation is rounded up to it.
  int registers_per_thread = 256;     // As allocated; code can name 255.
  std::int64_t shared_bytes = 0;      // The largest carve-out.
  std::int64_t shared_per_block = 0;  // The maximum that a block can request.
  std::int64_t shared_reserved = 0;   // The driver's share, per block.
  std::int64_t shared_granularity = 256;
  int cluster_blocks = 0;  // maximum in a cluster, opted in; 0 = the architecture has no clusters
};

// By architecture, "sm_90" or "sm_90a"; nothing for what is no CUDA architecture or unknown.
std::optional<SmLimits> sm_limits(std::string_view arch);

enum class OccupancyLimiter { kWarps, kBlocks, kRegisters, kSharedMemory };
std::string_view to_text(OccupancyLimiter limiter);  // "shared memory"

struct Occupancy {
  int blocks_per_sm = 0, warps_per_sm = 0;
  // Blocks per SM that each resource alone would allow; INT_MAX where none of it is used.
  int by_warps = 0, by_blocks = 0, by_registers = 0, by_shared = 0;
  OccupancyLimiter limiter = OccupancyLimiter::kWarps;
  double theoretical = 0;  // share of warp slots with the SM full
  // The same with the blocks the grid has: what kineto calls "est. achieved occupancy". Needs the
  // number of SMs; without it, as the theoretical one.
  double estimated = 0;
  double waves = 0;  // of full SMs the grid makes; 0 without the number of SMs
};

// The first limit of the architecture that the launch is beyond, so that it cannot run: "4.0 MiB of
// shared memory a block, at most 227.0 KiB"; "" = none.
std::string beyond_limits(const LaunchShape& launch, int registers,
                          std::int64_t static_shared_bytes, const SmLimits& limits);
// Nothing where the launch cannot run on that architecture, or there is no block at all.
std::optional<Occupancy> occupancy_of(const LaunchShape& launch, int registers,
                                      std::int64_t static_shared_bytes, const SmLimits& limits,
                                      int sms = 0);

}  // namespace purlin
