// SPDX-License-Identifier: Apache-2.0
// A CUPTI without a GPU, for tests of the CUDA capture library: the activity part of the API as
// the real one documents it, and fake_launch, which records a kernel the way a launch would. One
// buffer at a time, requested from whoever registered last and given back to whoever is registered
// when it completes: what makes two careless clients lose each other's records. A clock that is set
// takes the times from the records not yet delivered, as CUPTI 13.0 does.
#include <cupti.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>

namespace {

struct State {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc requested = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed = nullptr;
  std::set<CUpti_ActivityKind> kinds;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, used = 0;
  std::uint64_t now_ns = 1'700'000'000'000'000'000;
  CUpti_TimestampCallbackFunc clock = nullptr;
};

State& state() {
  static auto* instance = new State;
  return *instance;
}

constexpr std::uint64_t kTicksPerNs = 3;

std::size_t size_of(const CUpti_Activity& record) {
  return record.kind == CUPTI_ACTIVITY_KIND_MEMCPY ? sizeof(CUpti_ActivityMemcpy6)
                                                   : sizeof(CUpti_ActivityKernel10);
}

void complete(std::unique_lock<std::mutex>& lock) {
  State& s = state();
  if (s.buffer == nullptr) return;
  std::uint8_t* buffer = s.buffer;
  const std::size_t size = s.size, used = s.used;
  const auto callback = s.completed;
  s.buffer = nullptr;
  s.size = s.used = 0;
  lock.unlock();
  callback(nullptr, 0, buffer, size, used);
  lock.lock();
}

template <class Record>
void append(const Record& record) {
  State& s = state();
  std::unique_lock<std::mutex> lock(s.mutex);
  if (s.kinds.count(record.kind) == 0 || s.requested == nullptr) return;
  if (s.buffer != nullptr && s.size - s.used < sizeof record) complete(lock);
  if (s.buffer == nullptr) {
    std::size_t most = 0;
    const auto callback = s.requested;
    lock.unlock();
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    callback(&buffer, &size, &most);
    lock.lock();
    s.buffer = buffer, s.size = size, s.used = 0;
    if (buffer == nullptr) return;
  }
  std::memcpy(s.buffer + s.used, &record, sizeof record);
  s.used += sizeof record;
}

}  // namespace

extern "C" {

// A clock to register that counts ticks. Any other is taken to count nanoseconds: CUPTI finds out
// by calibration.
std::uint64_t CUPTIAPI fake_ticks() { return state().now_ns * kTicksPerNs; }
}

namespace {

std::uint64_t advance(std::uint64_t ns) {
  State& s = state();
  s.now_ns += ns;
  return s.clock == &fake_ticks ? fake_ticks() : s.now_ns;
}

}  // namespace

extern "C" {

void fake_launch(const char* name, int launches, std::uint64_t duration_ns) {
  for (int i = 0; i < launches; ++i) {
    CUpti_ActivityKernel10 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = name;
    record.gridX = 128, record.gridY = record.gridZ = 1;
    record.blockX = 256, record.blockY = record.blockZ = 1;
    record.registersPerThread = 40;
    record.streamId = 7;
    record.start = advance(1000);
    record.end = advance(duration_ns);
    append(record);
  }
}

void fake_copy(std::uint64_t bytes) {
  CUpti_ActivityMemcpy6 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  record.bytes = bytes;
  record.start = advance(1000);
  record.end = advance(500);
  append(record);
}

int fake_enabled(CUpti_ActivityKind kind) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().kinds.count(kind) > 0 ? 1 : 0;
}

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_FAKE";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  if (requested == nullptr || completed == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().requested = requested;
  state().completed = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().kinds.insert(kind);
  return CUPTI_SUCCESS;
}

// By way of the public function, as a library may that is not linked against itself.
CUptiResult cuptiActivityEnableContext(CUcontext, CUpti_ActivityKind kind) {
  return cuptiActivityEnable(kind);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().kinds.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisableContext(CUcontext, CUpti_ActivityKind kind) {
  return cuptiActivityDisable(kind);
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  std::unique_lock<std::mutex> lock(state().mutex);
  complete(lock);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record) {
  std::uint8_t* next =
      *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + size_of(**record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  s.clock = clock;
  for (std::size_t at = 0; at < s.used;) {
    auto* record = reinterpret_cast<CUpti_Activity*>(s.buffer + at);
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      auto* copy = reinterpret_cast<CUpti_ActivityMemcpy6*>(record);
      copy->start = copy->end = 0;
    } else {
      auto* kernel = reinterpret_cast<CUpti_ActivityKernel10*>(record);
      kernel->start = kernel->end = 0;
    }
    at += size_of(*record);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().kinds.clear();
  state().requested = nullptr;
  state().completed = nullptr;
  state().buffer = nullptr;
  state().clock = nullptr;
  return CUPTI_SUCCESS;
}
}
