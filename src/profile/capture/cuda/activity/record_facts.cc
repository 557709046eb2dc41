// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/record_facts.h"

#include <cstddef>
#include <cstring>

namespace purlin::profile::capture::cuda {
namespace {

// CUPTI appends fields to its records and renames the type. The fields that are read here have the
// same place since CUDA 12.0, the oldest version that load_cupti accepts.
#define PURLIN_SAME_PLACE(newer, older, field) \
  static_assert(offsetof(newer, field) == offsetof(older, field))
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, registersPerThread);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, start);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, queued);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, contextId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, gridX);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, localMemoryPerThread);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, name);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, correlationId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, graphId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, correlationId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, correlationId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, clusterX);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, start);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, contextId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, contextId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, graphNodeId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, graphNodeId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, graphId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, graphNodeId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, graphId);
#undef PURLIN_SAME_PLACE

std::uint32_t count(std::int32_t value) {
  return value > 0 ? static_cast<std::uint32_t>(value) : 0;
}

// Kernels that wait for other processes, which may be late as they are recorded. Names are mangled.
bool may_wait(const char* name) {
  if (name == nullptr || name[0] != '_' || name[1] != 'Z') return false;
  for (name += 2; *name >= '0' && *name <= '9';) ++name;
  return std::strncmp(name, "nccl", 4) == 0 || std::strncmp(name, "nvshmem", 7) == 0;
}

}  // namespace

DeviceBusy::Work work_of(const CUpti_ActivityKernel10& record) {
  DeviceBusy::Work work = work_of<CUpti_ActivityKernel10>(record);
  work.kernel = true;
  work.may_wait = may_wait(record.name);
  return work;
}

const char* copy_kind(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return "h2d";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return "d2h";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "h2h";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "p2p";
    default:
      return "d2d";
  }
}

LaunchFacts facts_of(const CUpti_ActivityKernel10& record) {
  LaunchFacts facts;
  facts.name = record.name != nullptr ? record.name : "(unnamed kernel)";
  facts.grid = {count(record.gridX), count(record.gridY), count(record.gridZ)};
  facts.block = {count(record.blockX), count(record.blockY), count(record.blockZ)};
  if (record.clusterX > 0) facts.cluster = {record.clusterX, record.clusterY, record.clusterZ};
  facts.dynamic_shared_bytes = count(record.dynamicSharedMemory);
  facts.static_shared_bytes = count(record.staticSharedMemory);
  facts.registers = record.registersPerThread;
  facts.local_bytes = record.localMemoryPerThread;
  facts.device = record.deviceId;
  facts.stream = record.streamId;
  facts.graph = record.graphId;
  facts.start_ns = static_cast<std::int64_t>(record.start);
  facts.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  // Of a node CUPTI reports a time of the graph's making.
  if (record.graphId == 0) facts.queued_ns = static_cast<std::int64_t>(record.queued);
  if (record.graphId != 0) facts.origin = LaunchOrigin::kGraph;
  return facts;
}

const char* wait_kind(CUpti_ActivitySynchronizationType type) {
  switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
      return "event";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
      return "stream";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
      return "context";
    default:
      return nullptr;
  }
}

WaitFacts facts_of(const CUpti_ActivitySynchronization2& record) {
  WaitFacts facts;
  facts.kind = wait_kind(record.type);
  facts.start_ns = static_cast<std::int64_t>(record.start);
  facts.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  return facts;
}

}  // namespace purlin::profile::capture::cuda
