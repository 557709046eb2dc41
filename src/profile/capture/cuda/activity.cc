// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity.h"

#include "profile/capture/cuda/devices.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr CUpti_ActivityKind kOwnKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                            CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

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
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, clusterX);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, start);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, streamId);
#undef PURLIN_SAME_PLACE

bool own_kind(CUpti_ActivityKind kind) {
  return std::find(std::begin(kOwnKinds), std::end(kOwnKinds), kind) != std::end(kOwnKinds);
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

// What CUPTI uses of itself on Linux.
std::uint64_t CUPTIAPI wall_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Activity::Activity(const Cupti& cupti, const SessionOptions& options)
    : cupti_(cupti), session_(options, *this) {
  if (const char* grace = std::getenv("PURLIN_CUPTI_GRACE_MS"))
    grace_ns_ = std::strtoll(grace, nullptr, 10) * 1'000'000;
}

void Activity::begin(CUpti_BuffersCallbackRequestFunc requested,
                     CUpti_BuffersCallbackCompleteFunc completed) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  own_requested_ = requested;
  own_completed_ = completed;
  CUptiResult result = cupti_.register_callbacks(requested, completed);
  if (result == CUPTI_SUCCESS) result = enable_own_kinds();
  if (result != CUPTI_SUCCESS) {
    refuse("cupti_refused", "CUDA is not captured: CUPTI answered " + cupti_.text_of(result) +
                                "; another profiler may hold it, or the driver may be older than " +
                                cupti_.path);
    return;
  }
  owner_ = Owner::kPurlin;
}

CUptiResult Activity::enable_own_kinds() {
  for (const CUpti_ActivityKind kind : kOwnKinds) {
    const CUptiResult result = cupti_.enable(kind);
    if (result != CUPTI_SUCCESS) return disable_own_kinds(), result;
  }
  return CUPTI_SUCCESS;
}

void Activity::disable_own_kinds() {
  for (const CUpti_ActivityKind kind : kOwnKinds) cupti_.disable(kind);
}

// ---- records ----

void Activity::buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                std::size_t* most_records) {
  // Where nobody owns CUPTI, Purlin has given up and the client is alone.
  const CUpti_BuffersCallbackRequestFunc client = client_requested_;
  if (owner_ != Owner::kPurlin && client != nullptr) return client(buffer, size, most_records);
  const std::int64_t began = monotonic_ns();
  *buffer = buffers_.lend();
  *size = *buffer != nullptr ? Buffers::kBytes : 0;
  *most_records = 0;
  overhead_ns_ += monotonic_ns() - began;
}

void Activity::buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                std::size_t size, std::size_t valid) {
  if (buffer == nullptr) return;
  if (!buffers_.owns(buffer)) {
    const CUpti_BuffersCallbackCompleteFunc client = client_completed_;
    if (client != nullptr) client(context, stream, buffer, size, valid);
    return;
  }
  const std::int64_t began = monotonic_ns();
  std::size_t dropped = 0;  // asked before any lock is taken: CUPTI may hold its own
  if (cupti_.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) dropped_ += dropped;
  if (valid > 0) fold(buffer, valid);
  buffers_.give_back(buffer);
  overhead_ns_ += monotonic_ns() - began;
}

void Activity::fold(const std::uint8_t* buffer, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  Recorder::Batch batch(session_.recorder());
  while (cupti_.next_record(const_cast<std::uint8_t*>(buffer), valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        if (has_times(kernel.start, kernel.end)) {
          batch.launch(facts_of(kernel));
        } else {
          ++unfinished_;
        }
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        if (has_times(copy.start, copy.end)) batch.copy(facts_of(copy, copy_kind(copy.copyKind)));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        if (has_times(set.start, set.end)) batch.copy(facts_of(set, "memset"));
        break;
      }
      default:
        break;
    }
  }
  seen_records_ = true;
}

// ---- the session's thread ----

void Activity::collect(bool final) {
  std::unique_lock<std::timed_mutex> lock(transition_, std::defer_lock);
  // A client may be inside CUPTI with the lock: the next period will do. At exit it is worth a
  // wait.
  const bool locked = final ? lock.try_lock_for(std::chrono::seconds(2)) : lock.try_lock();
  if (locked) {
    if (owner_ == Owner::kPurlin) cupti_.flush_all(final ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    if (owner_ == Owner::kClient) {
      account_time_aside();
      if (!final) resume_if_idle(lock);
    }
    if (lock.owns_lock()) lock.unlock();
  }
  Recorder& recorder = session_.recorder();
  if (seen_records_ && !devices_known_) {
    devices_known_ = true;
    session_.set_devices(describe_devices());
  }
  if (const std::uint64_t dropped = dropped_.exchange(0); dropped > 0)
    recorder.lose_launches(static_cast<double>(dropped), "records_dropped",
                           "records CUPTI dropped for want of buffer space");
  if (const std::uint64_t unfinished = unfinished_.exchange(0); unfinished > 0)
    recorder.lose_launches(static_cast<double>(unfinished), "unfinished_launches",
                           "launches that had not ended when their record had to be taken, or that "
                           "CUPTI gave no times");
  recorder.add_overhead_ns(static_cast<double>(overhead_ns_.exchange(0)));
}

// ---- another client ----

void Activity::step_aside() {
  last_client_call_ns_ = monotonic_ns();
  if (owner_ != Owner::kPurlin) return;
  // What is complete is ours; the client must find neither our buffers nor our kinds.
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  disable_own_kinds();
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  owner_ = Owner::kClient;
  aside_since_ns_ = monotonic_ns();
  set_clock(client_clock_);
}

CUptiResult Activity::set_clock(CUpti_TimestampCallbackFunc clock) {
  if (clock == nullptr || clock == clock_) return CUPTI_SUCCESS;
  const CUptiResult result = cupti_.register_timestamp(clock);
  if (result == CUPTI_SUCCESS) clock_ = clock;
  return result;
}

void Activity::account_time_aside() {
  const std::int64_t now = monotonic_ns();
  session_.recorder().note("stood_aside",
                           "another CUPTI client of the program (a profiler such as PyTorch's) was "
                           "active: launches of that time are not here",
                           0, static_cast<double>(now - aside_since_ns_) * 1e-9);
  aside_since_ns_ = now;
}

bool Activity::client_is_idle() const {
  return owner_ == Owner::kClient && client_kinds_.empty() &&
         monotonic_ns() - last_client_call_ns_ >= grace_ns_;
}

void Activity::resume_if_idle(std::unique_lock<std::timed_mutex>& lock) {
  if (!client_is_idle()) return;
  // The client's last buffers go to the client before ours are lent; not under our lock, which its
  // other threads may be waiting for with a lock that its callback needs.
  lock.unlock();
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (!lock.try_lock()) return;
  if (!client_is_idle()) return;
  CUptiResult result = CUPTI_SUCCESS;
  if (client_clock_ != nullptr) result = set_clock(&wall_clock);  // else its ticks would be our ns
  if (result == CUPTI_SUCCESS) {
    owner_ = Owner::kPurlin;
    result = enable_own_kinds();
  }
  if (result == CUPTI_SUCCESS) return;
  owner_ = Owner::kNobody;
  refuse("not_resumed",
         "capture ended when another CUPTI client did: CUPTI answered " + cupti_.text_of(result));
}

CUptiResult Activity::client_registers(CUpti_BuffersCallbackRequestFunc requested,
                                       CUpti_BuffersCallbackCompleteFunc completed) {
  if (requested == nullptr || completed == nullptr)
    return cupti_.register_callbacks(requested, completed);
  const std::lock_guard<std::timed_mutex> lock(transition_);
  step_aside();
  client_requested_ = requested;
  client_completed_ = completed;
  for (const auto& [context, kind] : client_kinds_)  // asked for before it had callbacks
    enable_for_client(context, kind);
  return cupti_.register_callbacks(own_requested_, own_completed_);
}

CUptiResult Activity::client_enables(CUcontext context, CUpti_ActivityKind kind) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  if (client_requested_ == nullptr && owner_ == Owner::kPurlin && own_kind(kind)) {
    // Without callbacks it takes no records yet (some only want CUPTI to load early).
    client_kinds_.emplace(context, kind);
    return CUPTI_SUCCESS;
  }
  if (client_requested_ != nullptr) step_aside();
  const CUptiResult result = enable_for_client(context, kind);
  if (result == CUPTI_SUCCESS) client_kinds_.emplace(context, kind);
  return result;
}

CUptiResult Activity::enable_for_client(CUcontext context, CUpti_ActivityKind kind) {
  return context != nullptr ? cupti_.enable_context(context, kind) : cupti_.enable(kind);
}

CUptiResult Activity::client_disables(CUcontext context, CUpti_ActivityKind kind) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  last_client_call_ns_ = monotonic_ns();
  client_kinds_.erase({context, kind});
  // What is enabled for Purlin is not the client's to switch off.
  if (owner_ == Owner::kPurlin && own_kind(kind)) return CUPTI_SUCCESS;
  return context != nullptr ? cupti_.disable_context(context, kind) : cupti_.disable(kind);
}

CUptiResult Activity::client_flushes(std::uint32_t flag) {
  last_client_call_ns_ = monotonic_ns();
  return cupti_.flush_all(flag);
}

// A new clock leaves records that are still under way without times, so ours are flushed first.
CUptiResult Activity::client_sets_clock(CUpti_TimestampCallbackFunc clock) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  step_aside();
  const CUptiResult result = cupti_.register_timestamp(clock);
  if (result == CUPTI_SUCCESS) client_clock_ = clock_ = clock;
  return result;
}

// May be called from inside a CUPTI callback, where waiting for the session's thread could be
// waiting for oneself.
CUptiResult Activity::client_finalizes() {
  std::unique_lock<std::timed_mutex> lock(transition_, std::defer_lock);
  const bool locked = lock.try_lock_for(std::chrono::seconds(2));
  last_client_call_ns_ = monotonic_ns();
  if (locked) {
    if (owner_ == Owner::kPurlin) cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    client_kinds_.clear();
  }
  if (owner_ == Owner::kClient) account_time_aside();
  owner_ = Owner::kNobody;
  refuse("cupti_finalized",
         "another CUPTI client shut CUPTI down: capture ended there, for the program's safety");
  return cupti_.finalize();
}

}  // namespace purlin::profile::capture::cuda
