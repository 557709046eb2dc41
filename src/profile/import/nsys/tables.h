// SPDX-License-Identifier: Apache-2.0
// What the readers of nsys's tables share: the open file, the profile under construction, progress.
// Private to profile/import/nsys. One owner, one thread.
#pragma once

#include "profile/import/assembly.h"
#include "profile/import/import.h"
#include "profile/import/nsys/session.h"
#include "profile/import/nsys/sqlite_file.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace purlin::profile {

inline constexpr std::string_view kNsysKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
inline constexpr std::string_view kNsysConcurrentKernels =
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL";  // nvprof
inline constexpr std::string_view kNsysCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
inline constexpr std::string_view kNsysSets = "CUPTI_ACTIVITY_KIND_MEMSET";
inline constexpr std::string_view kNsysGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
inline constexpr std::string_view kNsysCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
inline constexpr std::string_view kNsysDriverCalls = "CUPTI_ACTIVITY_KIND_DRIVER";  // nvprof
inline constexpr std::string_view kNsysSyncs = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
inline constexpr std::string_view kNsysRanges = "NVTX_EVENTS";

inline std::uint32_t nsys_u32(std::optional<std::int64_t> value) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(value.value_or(0), 0, std::numeric_limits<std::uint32_t>::max()));
}

struct NsysTables {
  const SqliteFile& file;
  const ImportOptions& options;
  Profile& profile;
  Assembly& assembly;
  NsysSession& session;
  std::string_view order;  // column by which rows must come, "" = in any order
  std::uint64_t done = 0, total = 0, device_events = 0;

  // A damaged table costs what is behind the damage, and no other table.
  void attempt(const Status& status) const {
    if (status.is_ok()) return;
    profile.partial = true;
    assembly.note("damaged", status.message());
  }

  Result<bool> next(SqliteFile::Rows& rows) {
    constexpr std::uint64_t kProgressEvery = 1 << 16;
    if (++done % kProgressEvery == 0 && options.progress && total > 0)
      options.progress(std::min(done, total) * (file.file_bytes() / total + 1), file.file_bytes());
    return rows.next();
  }

  // Room kept for the devices' events while those of the host are read.
  std::size_t reserve() const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(device_events, options.max_timeline_events / 2));
  }
};

}  // namespace purlin::profile
