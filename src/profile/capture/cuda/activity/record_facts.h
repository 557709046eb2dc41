// SPDX-License-Identifier: Apache-2.0
// The facts of CUPTI's activity records, in the recorder's types. The newest record types also read
// older records: these fields have the same place since CUDA 12.0.
//
// Pure functions. The duration of a record without an end is invalid: check has_times().
#pragma once

#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/recording/recorder.h"
#include "profile/capture/sampling/device_busy.h"

#include <cstdint>

namespace purlin::profile::capture::cuda {

// A record that was flushed before the work ended has no end.
inline bool has_times(std::uint64_t start, std::uint64_t end) { return start != 0 && end >= start; }

const char* copy_kind(std::uint8_t kind);
// nullptr: not a wait of the host (a stream that waits for an event does not block the host).
const char* wait_kind(CUpti_ActivitySynchronizationType type);

LaunchFacts facts_of(const CUpti_ActivityKernel10& record);
WaitFacts facts_of(const CUpti_ActivitySynchronization2& record);
// Of a memcpy or memset.
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

// The stream and time that the work used.
DeviceBusy::Work work_of(const CUpti_ActivityKernel10& record);
template <class Record>
DeviceBusy::Work work_of(const Record& record) {
  DeviceBusy::Work work;
  work.stream = {record.deviceId, record.contextId, record.streamId};
  work.start_ns = static_cast<std::int64_t>(record.start);
  work.end_ns = static_cast<std::int64_t>(record.end);
  work.kernel = false;
  work.node = record.graphId != 0;
  return work;
}

}  // namespace purlin::profile::capture::cuda
