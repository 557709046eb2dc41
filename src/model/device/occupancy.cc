// SPDX-License-Identifier: Apache-2.0
#include "model/device/occupancy.h"

#include "base/text.h"

#include <climits>
#include <fmt/core.h>

#include <algorithm>

namespace purlin {
namespace {

constexpr int kWarpSize = 32;
constexpr int kMaxThreadsPerBlock = 1024;
constexpr std::int64_t kKib = 1024;

struct ArchLimits {
  int number;  // 90 of sm_90
  int warps, blocks;
  std::int64_t shared_kib, shared_per_block_kib;
  int cluster_blocks = 0;
};

constexpr ArchLimits kArchs[] = {
    {50, 64, 32, 64, 48},        {52, 64, 32, 96, 48},        {53, 64, 32, 64, 48},
    {60, 64, 32, 64, 48},        {61, 64, 32, 96, 48},        {62, 64, 32, 64, 48},
    {70, 64, 32, 96, 96},        {72, 64, 32, 96, 96},        {75, 32, 16, 64, 64},
    {80, 64, 32, 164, 163},      {86, 48, 16, 100, 99},       {87, 48, 16, 164, 163},
    {88, 48, 16, 100, 99},       {89, 48, 24, 100, 99},       {90, 64, 32, 228, 227, 16},
    {100, 64, 32, 228, 227, 16}, {101, 48, 24, 228, 227, 16}, {103, 64, 32, 228, 227, 16},
    {110, 48, 24, 228, 227, 16}, {120, 48, 24, 100, 99, 8},   {121, 48, 24, 100, 99, 8},
};

int arch_number(std::string_view arch) {
  if (arch.substr(0, 3) != "sm_") return 0;
  int number = 0;
  std::size_t at = 3;
  for (; at < arch.size() && arch[at] >= '0' && arch[at] <= '9' && number < 1000; ++at)
    number = number * 10 + (arch[at] - '0');
  const std::string_view suffix = arch.substr(at);  // "a" and "f" name feature sets of one chip
  return suffix.empty() || suffix == "a" || suffix == "f" ? number : 0;
}

std::int64_t round_up(std::int64_t value, std::int64_t granularity) {
  return (value + granularity - 1) / granularity * granularity;
}

}  // namespace

std::optional<SmLimits> sm_limits(std::string_view arch) {
  const int number = arch_number(arch);
  for (const ArchLimits& row : kArchs) {
    if (row.number != number) continue;
    SmLimits limits;
    limits.warps = row.warps;
    limits.blocks = row.blocks;
    limits.shared_bytes = row.shared_kib * kKib;
    limits.shared_per_block = row.shared_per_block_kib * kKib;
    limits.shared_reserved = number >= 80 ? kKib : 0;
    limits.shared_granularity = number >= 80 ? 128 : 256;
    limits.cluster_blocks = row.cluster_blocks;
    if (number == 60) limits.partitions = 2;
    if (number == 53 || number == 62) limits.registers_per_block = 32768;
    return limits;
  }
  return std::nullopt;
}

std::string_view to_text(OccupancyLimiter limiter) {
  switch (limiter) {
    case OccupancyLimiter::kWarps:
      return "warps";
    case OccupancyLimiter::kBlocks:
      return "blocks";
    case OccupancyLimiter::kRegisters:
      return "registers";
    case OccupancyLimiter::kSharedMemory:
      return "shared memory";
  }
  return "";
}

namespace {

int registers_per_warp(int registers, const SmLimits& limits) {
  return static_cast<int>(
      round_up(std::int64_t{registers} * kWarpSize, limits.register_granularity));
}

// Warps are dealt to the partitions in turn, so a block is charged as if it filled all of them.
std::int64_t charged_registers(const LaunchShape& launch, int registers, const SmLimits& limits) {
  const auto threads = static_cast<int>(launch.threads_per_block());
  const int warps = (threads + kWarpSize - 1) / kWarpSize;
  return std::int64_t{registers_per_warp(registers, limits)} * round_up(warps, limits.partitions);
}

}  // namespace

std::string beyond_limits(const LaunchShape& launch, int registers,
                          std::int64_t static_shared_bytes, const SmLimits& limits) {
  const auto beyond = [](double asked, double most, std::string_view what) {
    return fmt::format("{:.0f} {}, at most {:.0f}", asked, what, most);
  };
  // Foreign figures: each dimension first, so that no product can overflow.
  for (const std::uint32_t extent : launch.block)
    if (extent > kMaxThreadsPerBlock) return beyond(extent, kMaxThreadsPerBlock, "threads a block");
  if (launch.threads_per_block() > kMaxThreadsPerBlock)
    return beyond(static_cast<double>(launch.threads_per_block()), kMaxThreadsPerBlock,
                  "threads a block");
  if (registers > limits.registers_per_thread)
    return beyond(registers, limits.registers_per_thread, "registers a thread");
  for (const std::uint32_t extent : launch.cluster)
    if (extent > kMaxThreadsPerBlock)
      return beyond(extent, limits.cluster_blocks, "blocks a cluster");
  const std::uint64_t cluster =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  if (cluster > 1 && cluster > static_cast<std::uint64_t>(limits.cluster_blocks))
    return beyond(static_cast<double>(cluster), limits.cluster_blocks, "blocks a cluster");
  if (const std::int64_t charged = charged_registers(launch, registers, limits);
      charged > limits.registers_per_block)
    return beyond(static_cast<double>(charged), limits.registers_per_block, "registers a block");
  if (const std::int64_t asked = static_shared_bytes + launch.dynamic_shared_bytes;
      asked > limits.shared_per_block)
    return fmt::format("{} of shared memory a block, at most {}",
                       format_bytes(static_cast<double>(asked)),
                       format_bytes(static_cast<double>(limits.shared_per_block)));
  return "";
}

std::optional<Occupancy> occupancy_of(const LaunchShape& launch, int registers,
                                      std::int64_t static_shared_bytes, const SmLimits& limits,
                                      int sms) {
  for (const Dim3& extents : {launch.block, launch.cluster})
    for (const std::uint32_t extent : extents)
      if (extent == 0) return std::nullopt;
  if (launch.blocks() == 0 || registers < 0 || static_shared_bytes < 0) return std::nullopt;
  if (!beyond_limits(launch, registers, static_shared_bytes, limits).empty()) return std::nullopt;

  const int threads = static_cast<int>(launch.threads_per_block());
  const int warps = (threads + kWarpSize - 1) / kWarpSize;
  Occupancy out;
  out.by_warps = limits.warps / warps;
  out.by_blocks = limits.blocks;

  out.by_registers = INT_MAX;
  if (registers > 0) {
    const int per_warp = registers_per_warp(registers, limits);
    const int warps_per_partition = limits.registers / limits.partitions / per_warp;
    out.by_registers = warps_per_partition * limits.partitions / warps;
  }

  out.by_shared = INT_MAX;
  const std::int64_t asked = static_shared_bytes + launch.dynamic_shared_bytes;
  const std::int64_t taken = round_up(asked + limits.shared_reserved, limits.shared_granularity);
  // The driver gives shared memory the carve-out it needs: the largest is what counts.
  if (taken > 0) out.by_shared = static_cast<int>(limits.shared_bytes / taken);

  // Of equal limits the last one below is named: with all warp slots filled there is no other.
  out.blocks_per_sm = out.by_blocks;
  out.limiter = OccupancyLimiter::kBlocks;
  const auto limit = [&](int blocks, OccupancyLimiter limiter) {
    if (blocks > out.blocks_per_sm) return;
    out.blocks_per_sm = blocks;
    out.limiter = limiter;
  };
  limit(out.by_shared, OccupancyLimiter::kSharedMemory);
  limit(out.by_registers, OccupancyLimiter::kRegisters);
  limit(out.by_warps, OccupancyLimiter::kWarps);
  if (out.blocks_per_sm == 0) return std::nullopt;
  out.warps_per_sm = out.blocks_per_sm * warps;
  out.theoretical = static_cast<double>(out.warps_per_sm) / limits.warps;
  out.estimated = out.theoretical;
  if (sms > 0) {
    const double per_sm = static_cast<double>(launch.blocks()) / sms;
    out.waves = per_sm / out.blocks_per_sm;
    // In threads, not warps, as kineto has it: half a warp counts half.
    out.estimated = std::min(per_sm, static_cast<double>(out.blocks_per_sm)) * threads /
                    (limits.warps * kWarpSize);
  }
  return out;
}

}  // namespace purlin
