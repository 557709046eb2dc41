// SPDX-License-Identifier: Apache-2.0
// Activity: CUPTI's kernel, copy and set records folded into the session, and the protocol by which
// Purlin steps aside for another CUPTI client in the process.
//
// CUPTI has one pair of buffer callbacks and one set of enabled kinds per process. Purlin registers
// its own pair for good and passes the client's buffers on, so a buffer always comes back to who
// lent it. When a client registers or enables something, Purlin's records are flushed, its kinds
// are disabled and every further buffer is the client's. When the client has disabled all it
// enabled and has been silent for two seconds (PURLIN_CUPTI_GRACE_MS), Purlin's kinds are enabled
// again. The client's calls are seen because its libcupti resolves to the hooks in injection.cc.
//
// No attribute of CUPTI is changed: they would be the client's too. One per process; [MT].
#pragma once

#include "profile/capture/cuda/buffers.h"
#include "profile/capture/cuda/cupti_library.h"
#include "profile/capture/session.h"

#include <atomic>
#include <mutex>
#include <set>

namespace purlin::profile::capture::cuda {

class Activity : public Source {
 public:
  Activity(const Cupti& cupti, const SessionOptions& options);

  Session& session() { return session_; }
  // Registers the callbacks (see injection.cc) and enables the kinds.
  void begin(CUpti_BuffersCallbackRequestFunc requested,
             CUpti_BuffersCallbackCompleteFunc completed);
  void refuse(const char* cause, const std::string& text) { session_.recorder().note(cause, text); }
  void collect(bool final) override;

  // CUPTI's callbacks.
  void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
  void buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                        std::size_t size, std::size_t valid);

  // What another client of the process calls.
  CUptiResult client_registers(CUpti_BuffersCallbackRequestFunc requested,
                               CUpti_BuffersCallbackCompleteFunc completed);
  CUptiResult client_enables(CUcontext context, CUpti_ActivityKind kind);
  CUptiResult client_disables(CUcontext context, CUpti_ActivityKind kind);
  CUptiResult client_flushes(std::uint32_t flag);
  CUptiResult client_sets_clock(CUpti_TimestampCallbackFunc clock);
  CUptiResult client_finalizes();

 private:
  enum class Owner { kNobody, kPurlin, kClient };

  CUptiResult enable_own_kinds();
  void disable_own_kinds();
  void step_aside();            // with transition_ held
  bool client_is_idle() const;  // with transition_ held
  void resume_if_idle(std::unique_lock<std::timed_mutex>& lock);
  void account_time_aside();
  CUptiResult enable_for_client(CUcontext context, CUpti_ActivityKind kind);
  CUptiResult set_clock(CUpti_TimestampCallbackFunc clock);
  void fold(const std::uint8_t* buffer, std::size_t valid);

  const Cupti& cupti_;
  std::int64_t grace_ns_ = 2'000'000'000;
  Session session_;
  Buffers buffers_;
  CUpti_BuffersCallbackRequestFunc own_requested_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc own_completed_ = nullptr;

  // Held while the owner changes and while Purlin calls CUPTI; never taken in CUPTI's callbacks.
  std::timed_mutex transition_;
  std::atomic<Owner> owner_ = Owner::kNobody;
  std::set<std::pair<CUcontext, CUpti_ActivityKind>> client_kinds_;
  std::atomic<std::int64_t> last_client_call_ns_ = 0;
  std::int64_t aside_since_ns_ = 0;
  std::atomic<CUpti_BuffersCallbackRequestFunc> client_requested_ = nullptr;
  std::atomic<CUpti_BuffersCallbackCompleteFunc> client_completed_ = nullptr;

  // The clock of the records: one per process too, and a client's need not count nanoseconds
  // (PyTorch's counts processor ticks). nullptr = CUPTI's own, which cannot be asked for again.
  CUpti_TimestampCallbackFunc client_clock_ = nullptr, clock_ = nullptr;

  std::atomic<bool> seen_records_ = false;
  bool devices_known_ = false;
  std::atomic<std::int64_t> overhead_ns_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0, unfinished_ = 0;
};

}  // namespace purlin::profile::capture::cuda
