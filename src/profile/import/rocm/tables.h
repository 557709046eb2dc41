// SPDX-License-Identifier: Apache-2.0
// The tables of rocprof, rocprofv2, rocprofv3 and rocprof-compute by their headers: what a table
// is, and in which column it has what. Each version spells the columns its own way. Pure functions
// and values.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

enum class RocprofTable {
  kNone,
  kAgents,    // *_agent_info.csv
  kCalls,     // *_hip_api_trace.csv, *_hsa_api_trace.csv, *_marker_api_trace.csv
  kKernels,   // *_kernel_trace.csv, results.csv, pmc_perf.csv: a row per launch
  kCopies,    // *_memory_copy_trace.csv
  kCounters,  // *_counter_collection.csv: a row per launch and counter
  kSystem,    // sysinfo.csv of rocprof-compute: the GPU
  kRoofline,  // roofline.csv of rocprof-compute: measured ceilings
  kStats,     // *.stats.csv, *_kernel_stats.csv: totals per name
};

class RocprofColumns {
 public:
  enum Name : std::size_t {
    kKernelName,
    kFunction,
    kName,
    kKind,
    kDomain,
    kDirection,
    kStart,
    kEnd,
    kDuration,
    kAgent,
    kSourceAgent,
    kTargetAgent,
    kQueue,
    kStream,
    kProcess,
    kThread,
    kCorrelation,
    kDispatch,
    kGrid,
    kGridX,
    kGridY,
    kGridZ,
    kGroup,
    kGroupX,
    kGroupY,
    kGroupZ,
    kShared,
    kScratch,
    kRegisters,
    kAccumulators,
    kWaveSize,
    kCounterName,
    kCounterValue,
    kCalls,
    kTotal,
    kNode,
    kLogicalNode,
    kAgentType,
    kProduct,
    kUnits,
    kClock,
    kSharedKb,
    kArch,
    kModel,
    kBandwidth,
    kNames,
  };

  explicit RocprofColumns(std::span<const std::string_view> header);
  RocprofTable table() const;
  bool has(Name name) const { return at_[name] != kAbsent; }
  std::string_view get(Name name, std::span<const std::string_view> fields) const {
    return at_[name] < fields.size() ? fields[at_[name]] : "";
  }
  std::size_t size() const { return size_; }
  // Columns that no table has of itself: counters, by index and name.
  const std::vector<std::pair<std::size_t, std::string>>& counters() const { return counters_; }

 private:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::array<std::size_t, kNames> at_;
  std::size_t size_ = 0;
  std::vector<std::pair<std::size_t, std::string>> counters_;
};

// "k(int) [clone .kd]", "k(int) (.kd)" -> "k(int)": marks of the code object, not of the kernel.
std::string_view without_clone_marks(std::string_view kernel);

}  // namespace purlin::profile
