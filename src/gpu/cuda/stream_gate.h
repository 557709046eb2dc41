// SPDX-License-Identifier: Apache-2.0
// StreamGate: holds a stream while work is queued behind it. Short kernels then run back to back
// on the device, not at the pace of the host's launches.
//
// The gate is a stream wait on a word of host memory. While it is closed nothing may wait for the
// stream: a profiler that serialises launches would never return. Therefore a watchdog opens the
// gate after `patience_s`, and it is not used again. Thread-safety: belongs to one thread. Failure:
// create() returns nullptr if the driver has no such wait, and timing continues without a gate.
#pragma once

#include "gpu/cuda/driver.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace purlin::gpu {

class StreamGate {
 public:
  static std::unique_ptr<StreamGate> create(const CudaDriver& driver, double patience_s = 2);
  ~StreamGate();
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  // Enqueues the wait. false: not closed, and it will not be any more.
  bool close(CUstream stream);
  // Lets the stream go on. No effect when open.
  void open();

 private:
  StreamGate(const CudaDriver& driver, double patience_s, std::uint32_t* word, CUdeviceptr address)
      : driver_(driver), patience_s_(patience_s), word_(word), address_(address) {}
  void release();

  const CudaDriver& driver_;
  double patience_s_;
  std::uint32_t* word_;  // page-locked, seen by the device at address_
  CUdeviceptr address_;
  std::uint32_t turn_ = 0;
  bool usable_ = true;
  std::thread watchdog_;
  std::mutex mutex_;
  std::condition_variable opened_changed_;
  bool opened_ = true;  // guarded by mutex_
};

}  // namespace purlin::gpu
