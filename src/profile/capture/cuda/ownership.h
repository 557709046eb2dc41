// SPDX-License-Identifier: Apache-2.0
// Ownership: who uses CUPTI in this process, Purlin or another client, and how Purlin steps aside.
//
// CUPTI has one pair of buffer callbacks and one set of enabled kinds per process. Purlin registers
// its own pair for good and passes the client's buffers on, so a buffer always comes back to who
// lent it. When a client registers or enables something, Purlin's open tier is closed on the
// client's thread, its records are flushed and every further buffer is the client's. When the
// client has disabled all it enabled and has been silent for two seconds (PURLIN_CUPTI_GRACE_MS),
// Purlin owns CUPTI again. The client's calls are seen because its libcupti resolves to the hooks
// in injection.cc. No attribute of CUPTI is changed: they would be the client's too.
//
// One per process, owned by Capture; [MT].
#pragma once

#include "profile/capture/cuda/cupti_library.h"
#include "profile/capture/cuda/folding.h"
#include "profile/capture/recorder.h"

#include <atomic>
#include <mutex>
#include <set>

namespace purlin::profile::capture::cuda {

// Who uses CUPTI while Purlin owns it.
class Tenant {
 public:
  virtual ~Tenant() = default;
  // Switches off whatever it has switched on, now: a client waits. With the turn held.
  virtual void vacate() = 0;
};

class Ownership {
 public:
  // The right to call CUPTI's functions that switch things: nobody else does while one is held.
  // Never taken in CUPTI's callbacks.
  class Turn {
   public:
    explicit operator bool() const { return lock_.owns_lock(); }

   private:
    friend class Ownership;
    Turn() = default;
    explicit Turn(std::unique_lock<std::timed_mutex> lock) : lock_(std::move(lock)) {}
    std::unique_lock<std::timed_mutex> lock_;
  };

  Ownership(const Cupti& cupti, Recorder& recorder, Folding& folding, Tenant& tenant);

  // Registers the callbacks (see injection.cc). False: CUPTI refused, which is noted.
  bool begin(CUpti_BuffersCallbackRequestFunc requested,
             CUpti_BuffersCallbackCompleteFunc completed);
  // Empty where Purlin does not own CUPTI, or where a client is inside it now. At exit it is worth
  // a wait.
  Turn take_turn(bool wait = false);
  // Takes CUPTI back from a client that is done with it, and accounts for the time aside.
  void resume_if_idle();
  // CUPTI refuses what Purlin cannot do without: capture of CUDA ends. REQUIRES: a turn.
  void give_up(const char* cause, const std::string& text);

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

  void step_aside();            // with transition_ held
  bool client_is_idle() const;  // with transition_ held
  void take_back(std::unique_lock<std::timed_mutex>& lock);
  void account_time_aside();
  CUptiResult enable_for_client(CUcontext context, CUpti_ActivityKind kind);
  CUptiResult set_clock(CUpti_TimestampCallbackFunc clock);

  const Cupti& cupti_;
  Recorder& recorder_;
  Folding& folding_;
  Tenant& tenant_;
  std::int64_t grace_ns_ = 2'000'000'000;
  CUpti_BuffersCallbackRequestFunc own_requested_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc own_completed_ = nullptr;

  std::timed_mutex transition_;  // a turn holds it, and whoever changes the owner
  std::atomic<Owner> owner_ = Owner::kNobody;
  std::set<std::pair<CUcontext, CUpti_ActivityKind>> client_kinds_;
  std::atomic<std::int64_t> last_client_call_ns_ = 0;
  std::int64_t aside_since_ns_ = 0;
  std::atomic<CUpti_BuffersCallbackRequestFunc> client_requested_ = nullptr;
  std::atomic<CUpti_BuffersCallbackCompleteFunc> client_completed_ = nullptr;

  // The clock of the records: one per process too, and a client's need not count nanoseconds
  // (PyTorch's counts processor ticks). nullptr = CUPTI's own, which cannot be asked for again.
  CUpti_TimestampCallbackFunc client_clock_ = nullptr, clock_ = nullptr;
};

}  // namespace purlin::profile::capture::cuda
