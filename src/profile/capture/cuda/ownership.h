// SPDX-License-Identifier: Apache-2.0
// Ownership: decides which client uses CUPTI in this process, Purlin or another one. Purlin yields
// to every other client.
//
// CUPTI has one pair of buffer callbacks and one set of enabled kinds per process. Purlin registers
// its own pair for good and passes the client's buffers on, so each buffer returns to its owner.
// When a client registers or enables something, Purlin's open tier is closed on the client's
// thread, its records are flushed and all further buffers are the client's. Purlin owns CUPTI again
// after the client has disabled all its kinds and made no call for two seconds
// (PURLIN_CUPTI_GRACE_MS). With TEARDOWN_CUPTI=1 Kineto shuts CUPTI down at a later call of CUDA,
// so Purlin waits for a minute. The hooks (cupti/hooks.h) show the client's calls. No attribute of
// CUPTI is changed: the client would get it, too.
//
// One per process, owned by Capture; [MT].
#pragma once

#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/recording/recorder.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <pthread.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace purlin::profile::capture::cuda {

// The user of CUPTI while Purlin owns it.
class Tenant {
 public:
  virtual ~Tenant() = default;
  // Switches off all that it has switched on, now: a client waits. With the turn held.
  virtual void vacate() = 0;
  // Gives up, for good, the functions that CUPTI allows to one client only.
  virtual void yield() {}
};

class Ownership {
 public:
  // The right to call CUPTI's functions that switch things: only its holder calls them. Never taken
  // in CUPTI's callbacks.
  class Turn {
   public:
    explicit operator bool() const { return lock_.owns_lock(); }

    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class Ownership;
    explicit Turn(std::unique_lock<std::timed_mutex> lock = {});
    std::unique_lock<std::timed_mutex> lock_;
  };

  Ownership(const Cupti& cupti, Recorder& recorder, ActivityAggregator& aggregator, Tenant& tenant);

  // Registers the callbacks (see injection.cc). `later`: at the first need, because CUPTI in the
  // process slows every launch. False: CUPTI refused, which is noted, or a client is active.
  bool begin(CUpti_BuffersCallbackRequestFunc requested,
             CUpti_BuffersCallbackCompleteFunc completed, bool later);
  // That first need. False as above. REQUIRES: a turn.
  bool need();
  bool registered() const { return registered_; }
  // When CUPTI was last asked for its records from here; monotonic.
  std::int64_t flushed_ns() const { return flushed_ns_; }
  // Empty if Purlin does not own CUPTI, or if a client is inside it now. At exit `wait` is useful.
  Turn take_turn(bool wait = false);
  // Whether this thread has a turn: calls that CUPTI then makes itself are not a client's.
  static bool has_turn();
  // Takes CUPTI back from a client that is done with it, and notes the time of the client's use.
  void resume_if_idle();
  // Whether the program has a context. From the first call on CUPTI reports new contexts at once
  // (buffer_requested). True if contexts cannot be detected. If only primary ones can, true after
  // half a minute without one (PURLIN_CONTEXT_WAIT_MS), which is noted. REQUIRES: a turn.
  bool has_context();
  // Whether the registered callbacks are still Purlin's; if not three times, capture ends.
  // REQUIRES: a turn, of a thread on which the program launches nothing.
  bool confirm();
  // CUPTI refuses a call that Purlin needs: capture of CUDA ends. REQUIRES: a turn.
  void give_up(const char* cause, const std::string& text);

  // CUPTI's callbacks.
  void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
  void buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                        std::size_t size, std::size_t valid);

  // The calls of another client of the process.
  CUptiResult client_registers(CUpti_BuffersCallbackRequestFunc requested,
                               CUpti_BuffersCallbackCompleteFunc completed);
  CUptiResult client_enables(CUcontext context, CUpti_ActivityKind kind);
  CUptiResult client_disables(CUcontext context, CUpti_ActivityKind kind);
  CUptiResult client_flushes(std::uint32_t flag);
  CUptiResult client_sets_clock(CUpti_TimestampCallbackFunc clock);
  // Once until a client uses CUPTI again: Kineto calls it in a callback of each thread that is in
  // CUDA at that moment, and CUPTI does not stand two calls.
  CUptiResult client_finalizes();
  // Callbacks, counters or sampling, by `pass`. Purlin's records go on.
  CUptiResult client_takes_profiler(const std::function<CUptiResult()>& pass);

 private:
  enum class Owner { kNobody, kPurlin, kClient };

  using ClientKind = std::pair<CUcontext, CUpti_ActivityKind>;

  std::unique_lock<std::timed_mutex> wait_for_turn();  // of a client; may come back without
  void yield_to_client(bool has_turn);
  CUptiResult flush(std::uint32_t flag);
  void clear_buffers();  // of Purlin's records, once its kinds are off
  bool client_is_idle() const;
  bool answers();
  void unwatch_context();
  bool context_wait_is_over();
  void take_back(std::unique_lock<std::timed_mutex>& lock);
  void account_client_time();
  void note_unasked();
  CUptiResult set_clock(CUpti_TimestampCallbackFunc clock);
  std::vector<ClientKind> client_kinds() const;
  CUptiResult enable_for_client(const ClientKind& each);
  CUptiResult disable_for_client(const ClientKind& each);
  CUptiResult register_own();
  void refused(CUptiResult result);

  const Cupti& cupti_;
  Recorder& recorder_;
  ActivityAggregator& aggregator_;
  Tenant& tenant_;
  const pthread_t programs_thread_;  // that initialised CUDA
  std::int64_t grace_ns_ = 2'000'000'000;
  CUpti_BuffersCallbackRequestFunc own_requested_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc own_completed_ = nullptr;
  std::atomic<bool> registered_ = false;

  std::timed_mutex transition_;  // held by a turn and by a change of the owner
  std::atomic<Owner> owner_ = Owner::kNobody;
  std::atomic<bool> clear_up_ = false;  // a client went ahead while the tier was open
  std::atomic<bool> heard_ = false;     // from CUPTI, since the last confirmation
  std::atomic<std::int64_t> flushed_ns_ = 0;
  bool watches_context_ = false;
  std::int64_t longest_wait_ns_ = 30'000'000'000, unwatched_since_ns_ = 0;
  bool has_answered_ = false;  // CUPTI asked Purlin for a buffer when it had to
  int silences_ = 0;
  // Of the calls of clients, which need not hold the transition. Never held while CUPTI is called.
  mutable std::mutex clients_mutex_;
  std::set<ClientKind> client_kinds_;
  std::atomic<std::int64_t> last_client_call_ns_ = 0;
  std::atomic<std::int64_t> client_since_ns_ = 0;
  std::atomic<bool> client_leaves_ = false;  // it is about to shut CUPTI down
  std::atomic<bool> shut_down_ = false;      // or being shut down
  std::atomic<CUpti_BuffersCallbackRequestFunc> client_requested_ = nullptr;
  std::atomic<CUpti_BuffersCallbackCompleteFunc> client_completed_ = nullptr;

  // The clock of the records: one per process too, and a client's need not count nanoseconds
  // (PyTorch's counts processor ticks). nullptr = CUPTI's own, which cannot be asked for again.
  CUpti_TimestampCallbackFunc client_clock_ = nullptr, clock_ = nullptr;
};

}  // namespace purlin::profile::capture::cuda
