// SPDX-License-Identifier: Apache-2.0
// Synthetic kernel records, the functions of CUPTI that read them, and a ActivityAggregator to give
// them to: for tests and benchmarks. Buffers hold kernel records only, one after the other.
//
// Thread-safety: none.
#pragma once

#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/format/file.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace purlin::profile::capture::cuda {

using KernelRecord = CUpti_ActivityKernel10;

inline CUptiResult CUPTIAPI next_kernel_record(std::uint8_t* buffer, std::size_t valid,
                                               CUpti_Activity** record) {
  std::uint8_t* next =
      *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + sizeof(KernelRecord);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

// What a ActivityAggregator calls of CUPTI.
inline Cupti record_functions() {
  Cupti cupti;
  cupti.next_record = &next_kernel_record;
  cupti.dropped_records = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = 0;
    return CUPTI_SUCCESS;
  };
  return cupti;
}

// A kernel's, of a graph where `node` is not 0.
inline KernelRecord kernel_record(const char* name, std::int64_t start_ns, std::int64_t duration_ns,
                                  std::uint64_t node = 0) {
  KernelRecord result = {};
  result.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  result.name = name;
  result.gridX = result.gridY = result.gridZ = 1;
  result.blockX = result.blockY = result.blockZ = 1;
  result.start = static_cast<std::uint64_t>(start_ns);
  result.end = static_cast<std::uint64_t>(start_ns + duration_ns);
  result.graphId = node != 0 ? 3 : 0;
  result.graphNodeId = node;
  return result;
}

struct NoSource : Source {
  void collect(bool) override {}
};

// A ActivityAggregator with what it needs, of a session that writes no file.
struct AggregatorRig {
  explicit AggregatorRig(bool every_launch = false, const Cupti& functions = record_functions())
      : cupti(functions), session(options(every_launch), source) {}

  static SessionOptions options(bool every_launch) {
    SessionOptions result;
    result.layer = "cuda";
    result.every_launch = every_launch;
    return result;
  }
  // As CUPTI would: a buffer is asked for, and comes back full. At most a buffer's worth.
  void deliver(const std::vector<KernelRecord>& records) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, most = 0;
    aggregator.lend(&buffer, &size, &most);
    if (!records.empty()) std::memcpy(buffer, records.data(), records.size() * sizeof records[0]);
    aggregator.take(nullptr, 0, buffer, records.size() * sizeof(KernelRecord));
  }
  Result<Profile> profile() {
    session.recorder().set_meta(R"({"pid":1,"layer":"cuda"})", "[]");
    return decode_profile(session.recorder().drain(0, 1, true));
  }

  const Cupti cupti;
  NoSource source;
  CaptureSession session;
  Attribution attribution{cupti, session.recorder(), {OpsMode::kOff, false}};
  ActivityAggregator aggregator{cupti, session, attribution};
};

}  // namespace purlin::profile::capture::cuda
