// SPDX-License-Identifier: Apache-2.0
// Folding: Purlin's buffers of activity records, and what becomes of the records: rows of the
// session's recorder. CUPTI asks for buffers on whatever thread launches work and gives them back
// on a thread of its own or on the one that flushes.
//
// Owned by Capture. [MT] every method; takes no lock that is held while CUPTI is called. What CUPTI
// dropped or gave no times is counted as lost.
#pragma once

#include "profile/capture/cuda/attribution.h"
#include "profile/capture/cuda/buffers.h"
#include "profile/capture/cuda/cupti_library.h"
#include "profile/capture/recorder.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace purlin::profile::capture::cuda {

class Folding {
 public:
  Folding(const Cupti& cupti, Recorder& recorder, Attribution& attribution)
      : cupti_(cupti), recorder_(recorder), attribution_(attribution) {}

  bool owns(const std::uint8_t* buffer) { return buffers_.owns(buffer); }
  void lend(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
  // REQUIRES: owns(buffer).
  void take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid);

  // Losses and own time since the last call go to the recorder.
  void account();
  bool seen_records() const { return seen_records_; }
  std::uint64_t records() const { return records_; }  // folded so far, of kernels and copies

 private:
  void fold(const std::uint8_t* buffer, std::size_t valid);
  std::uint64_t take_calls(const std::uint8_t* buffer, std::size_t valid, Attribution::Batch& ops);

  const Cupti& cupti_;
  Recorder& recorder_;
  Attribution& attribution_;
  Buffers buffers_;
  std::atomic<bool> seen_records_ = false;
  std::atomic<std::int64_t> overhead_ns_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0, unfinished_ = 0, records_ = 0;
};

}  // namespace purlin::profile::capture::cuda
