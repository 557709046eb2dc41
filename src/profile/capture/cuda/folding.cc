// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/folding.h"

#include "profile/capture/session.h"

#include <cstddef>
#include <optional>

namespace purlin::profile::capture::cuda {
namespace {

// CUPTI appends fields to its records and renames the type; what is read here has been in the same
// place since CUDA 12.0, the oldest version load_cupti accepts.
#define PURLIN_SAME_PLACE(newer, older, field) \
  static_assert(offsetof(newer, field) == offsetof(older, field))
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, registersPerThread);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, start);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, deviceId);
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
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, streamId);
#undef PURLIN_SAME_PLACE

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

// A record that was flushed before the work ended has no end.
bool has_times(std::uint64_t start, std::uint64_t end) { return start != 0 && end >= start; }

std::uint32_t count(std::int32_t value) {
  return value > 0 ? static_cast<std::uint32_t>(value) : 0;
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
  return facts;
}

// Of a copy or a set.
template <class Record>
CopyFacts facts_of(const Record& record, const char* kind) {
  CopyFacts facts;
  facts.kind = kind;
  facts.device = record.deviceId;
  facts.stream = record.streamId;
  facts.bytes = record.bytes;
  facts.start_ns = static_cast<std::int64_t>(record.start);
  facts.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  return facts;
}

}  // namespace

void Folding::lend(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  const std::int64_t began = monotonic_ns();
  *buffer = buffers_.lend();
  *size = *buffer != nullptr ? Buffers::kBytes : 0;
  *most_records = 0;
  overhead_ns_ += monotonic_ns() - began;
}

void Folding::take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                   std::size_t valid) {
  const std::int64_t began = monotonic_ns();
  std::size_t dropped = 0;  // asked before any lock is taken: CUPTI may hold its own
  if (cupti_.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) dropped_ += dropped;
  if (valid > 0) fold(buffer, valid);
  buffers_.give_back(buffer);
  overhead_ns_ += monotonic_ns() - began;
}

// A buffer's calls come before its launches: most launches then find theirs at once.
std::uint64_t Folding::take_calls(const std::uint8_t* buffer, std::size_t valid,
                                  Attribution::Batch& ops) {
  CUpti_Activity* record = nullptr;
  std::uint64_t count = 0;
  while (cupti_.next_record(const_cast<std::uint8_t*>(buffer), valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_RUNTIME && record->kind != CUPTI_ACTIVITY_KIND_DRIVER)
      continue;
    ops.call(*reinterpret_cast<const CUpti_ActivityAPI*>(record));
    ++count;
  }
  return count;
}

void Folding::fold(const std::uint8_t* buffer, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  std::uint64_t count = 0;
  std::optional<Attribution::Batch> ops;  // its lock is taken before the recorder's
  if (attribution_.active()) ops.emplace(attribution_);
  Recorder::Batch batch(recorder_);
  if (ops) {
    ops->begin(batch);
    take_calls(buffer, valid, *ops);
  }
  while (cupti_.next_record(const_cast<std::uint8_t*>(buffer), valid, &record) == CUPTI_SUCCESS) {
    ++count;
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        if (has_times(kernel.start, kernel.end)) {
          LaunchFacts facts = facts_of(kernel);
          if (!ops || ops->place(facts, kernel.correlationId)) batch.launch(facts);
        } else {
          ++unfinished_;
        }
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        if (!has_times(copy.start, copy.end)) break;
        CopyFacts facts = facts_of(copy, copy_kind(copy.copyKind));
        if (ops) ops->place(facts, copy.correlationId);
        batch.copy(facts);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        if (!has_times(set.start, set.end)) break;
        CopyFacts facts = facts_of(set, "memset");
        if (ops) ops->place(facts, set.correlationId);
        batch.copy(facts);
        break;
      }
      default:
        break;
    }
  }
  records_ += count;
  seen_records_ = true;
}

void Folding::account() {
  if (const std::uint64_t dropped = dropped_.exchange(0); dropped > 0)
    recorder_.lose_launches(static_cast<double>(dropped), "records_dropped",
                            "records CUPTI dropped for want of buffer space");
  if (const std::uint64_t unfinished = unfinished_.exchange(0); unfinished > 0)
    recorder_.lose_launches(static_cast<double>(unfinished), "unfinished_launches",
                            "launches that had not ended when their record had to be taken, or "
                            "that CUPTI gave no times");
  recorder_.add_overhead_ns(static_cast<double>(overhead_ns_.exchange(0)));
}

}  // namespace purlin::profile::capture::cuda
