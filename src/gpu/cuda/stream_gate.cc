// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/stream_gate.h"

#include <atomic>
#include <chrono>

namespace purlin::gpu {

std::unique_ptr<StreamGate> StreamGate::create(const CudaDriver& driver, double patience_s) {
  if (driver.cuStreamWaitValue32 == nullptr) return nullptr;
  void* word = nullptr;
  if (driver.cuMemHostAlloc(&word, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP) !=
      CUDA_SUCCESS)
    return nullptr;
  CUdeviceptr address = 0;
  if (driver.cuMemHostGetDevicePointer_v2(&address, word, 0) != CUDA_SUCCESS) {
    driver.cuMemFreeHost(word);
    return nullptr;
  }
  auto* typed = static_cast<std::uint32_t*>(word);
  *typed = 0;
  return std::unique_ptr<StreamGate>(new StreamGate(driver, patience_s, typed, address));
}

StreamGate::~StreamGate() {
  open();
  driver_.cuMemFreeHost(word_);
}

bool StreamGate::close(CUstream stream) {
  if (!usable_) return false;
  // Each closing waits for its own number, so the word never has to be reset under the device.
  ++turn_;
  if (driver_.cuStreamWaitValue32(stream, address_, turn_, CU_STREAM_WAIT_VALUE_GEQ) !=
      CUDA_SUCCESS) {
    usable_ = false;
    return false;
  }
  opened_ = false;
  watchdog_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    const auto patience = std::chrono::duration<double>(patience_s_);
    if (opened_changed_.wait_for(lock, patience, [this] { return opened_; })) return;
    usable_ = false;  // read again only after this thread was joined
    release();
  });
  return true;
}

void StreamGate::open() {
  if (!watchdog_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    opened_ = true;
    release();
  }
  opened_changed_.notify_one();
  watchdog_.join();
}

void StreamGate::release() {
  std::atomic_ref<std::uint32_t>(*word_).store(turn_, std::memory_order_release);
}

}  // namespace purlin::gpu
