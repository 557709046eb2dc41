// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/ownership.h"

#include "profile/capture/session.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

// What CUPTI uses of itself on Linux.
std::uint64_t CUPTIAPI wall_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Ownership::Ownership(const Cupti& cupti, Recorder& recorder, Folding& folding, Tenant& tenant)
    : cupti_(cupti), recorder_(recorder), folding_(folding), tenant_(tenant) {
  if (const char* grace = std::getenv("PURLIN_CUPTI_GRACE_MS"))
    grace_ns_ = std::strtoll(grace, nullptr, 10) * 1'000'000;
}

bool Ownership::begin(CUpti_BuffersCallbackRequestFunc requested,
                      CUpti_BuffersCallbackCompleteFunc completed) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  own_requested_ = requested;
  own_completed_ = completed;
  const CUptiResult result = cupti_.register_callbacks(requested, completed);
  if (result == CUPTI_SUCCESS) {
    owner_ = Owner::kPurlin;
    return true;
  }
  give_up("cupti_refused", "CUDA is not captured: CUPTI answered " + cupti_.text_of(result) +
                               "; another profiler may hold it, or the driver may be older than " +
                               cupti_.path);
  return false;
}

Ownership::Turn Ownership::take_turn(bool wait) {
  std::unique_lock<std::timed_mutex> lock(transition_, std::defer_lock);
  const bool locked = wait ? lock.try_lock_for(std::chrono::seconds(2)) : lock.try_lock();
  if (!locked || owner_ != Owner::kPurlin) return {};
  return Turn(std::move(lock));
}

void Ownership::give_up(const char* cause, const std::string& text) {
  owner_ = Owner::kNobody;
  recorder_.note(cause, text);
}

// ---- buffers ----

void Ownership::buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                 std::size_t* most_records) {
  // Where nobody owns CUPTI, Purlin has given up and the client is alone.
  const CUpti_BuffersCallbackRequestFunc client = client_requested_;
  if (owner_ != Owner::kPurlin && client != nullptr) return client(buffer, size, most_records);
  folding_.lend(buffer, size, most_records);
}

void Ownership::buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid) {
  if (buffer == nullptr) return;
  if (folding_.owns(buffer)) return folding_.take(context, stream, buffer, valid);
  const CUpti_BuffersCallbackCompleteFunc client = client_completed_;
  if (client != nullptr) client(context, stream, buffer, size, valid);
}

// ---- another client ----

void Ownership::step_aside() {
  last_client_call_ns_ = monotonic_ns();
  if (owner_ != Owner::kPurlin) return;
  // What is complete is ours; the client must find neither our buffers nor our kinds.
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  tenant_.vacate();
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  owner_ = Owner::kClient;
  aside_since_ns_ = monotonic_ns();
  set_clock(client_clock_);
}

CUptiResult Ownership::set_clock(CUpti_TimestampCallbackFunc clock) {
  if (clock == nullptr || clock == clock_) return CUPTI_SUCCESS;
  const CUptiResult result = cupti_.register_timestamp(clock);
  if (result == CUPTI_SUCCESS) clock_ = clock;
  return result;
}

void Ownership::account_time_aside() {
  const std::int64_t now = monotonic_ns();
  recorder_.note("stood_aside",
                 "another CUPTI client of the program (a profiler such as PyTorch's) was active: "
                 "launches of that time are not here",
                 0, static_cast<double>(now - aside_since_ns_) * 1e-9);
  aside_since_ns_ = now;
}

bool Ownership::client_is_idle() const {
  return owner_ == Owner::kClient && client_kinds_.empty() &&
         monotonic_ns() - last_client_call_ns_ >= grace_ns_;
}

void Ownership::resume_if_idle() {
  std::unique_lock<std::timed_mutex> lock(transition_, std::try_to_lock);
  if (!lock || owner_ != Owner::kClient) return;
  account_time_aside();
  take_back(lock);
}

void Ownership::take_back(std::unique_lock<std::timed_mutex>& lock) {
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
    return;
  }
  give_up("not_resumed",
          "capture ended when another CUPTI client did: CUPTI answered " + cupti_.text_of(result));
}

CUptiResult Ownership::client_registers(CUpti_BuffersCallbackRequestFunc requested,
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

CUptiResult Ownership::client_enables(CUcontext context, CUpti_ActivityKind kind) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  if (client_requested_ == nullptr && owner_ == Owner::kPurlin) {
    // Without callbacks it takes no records yet (some only want CUPTI to load early).
    client_kinds_.emplace(context, kind);
    return CUPTI_SUCCESS;
  }
  if (client_requested_ != nullptr) step_aside();
  const CUptiResult result = enable_for_client(context, kind);
  if (result == CUPTI_SUCCESS) client_kinds_.emplace(context, kind);
  return result;
}

CUptiResult Ownership::enable_for_client(CUcontext context, CUpti_ActivityKind kind) {
  return context != nullptr ? cupti_.enable_context(context, kind) : cupti_.enable(kind);
}

CUptiResult Ownership::client_disables(CUcontext context, CUpti_ActivityKind kind) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  last_client_call_ns_ = monotonic_ns();
  client_kinds_.erase({context, kind});
  // While Purlin owns CUPTI nothing is enabled for the client: what is on is Purlin's.
  if (owner_ == Owner::kPurlin) return CUPTI_SUCCESS;
  return context != nullptr ? cupti_.disable_context(context, kind) : cupti_.disable(kind);
}

CUptiResult Ownership::client_flushes(std::uint32_t flag) {
  last_client_call_ns_ = monotonic_ns();
  return cupti_.flush_all(flag);
}

// A new clock leaves records that are still under way without times, so ours are flushed first.
CUptiResult Ownership::client_sets_clock(CUpti_TimestampCallbackFunc clock) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  step_aside();
  const CUptiResult result = cupti_.register_timestamp(clock);
  if (result == CUPTI_SUCCESS) client_clock_ = clock_ = clock;
  return result;
}

// May be called from inside a CUPTI callback, where waiting for the session's thread could be
// waiting for oneself.
CUptiResult Ownership::client_finalizes() {
  std::unique_lock<std::timed_mutex> lock(transition_, std::defer_lock);
  const bool locked = lock.try_lock_for(std::chrono::seconds(2));
  last_client_call_ns_ = monotonic_ns();
  if (locked) {
    if (owner_ == Owner::kPurlin) {
      cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
      tenant_.vacate();
    }
    client_kinds_.clear();
  }
  if (owner_ == Owner::kClient) account_time_aside();
  give_up("cupti_finalized",
          "another CUPTI client shut CUPTI down: capture ended there, for the program's safety");
  return cupti_.finalize();
}

}  // namespace purlin::profile::capture::cuda
