// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/ownership.h"

#include "profile/capture/cuda/cupti/flush_times.h"
#include "profile/capture/cuda/devices.h"
#include "profile/capture/session/session.h"
#include "profile/capture/session/timed_lock.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <thread>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

// The clock that CUPTI uses by default on Linux.
std::uint64_t CUPTIAPI wall_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// A kind of record that CUPTI makes on request: of objects, not of work.
constexpr CUpti_ActivityKind kOnRequest = CUPTI_ACTIVITY_KIND_CONTEXT;

constexpr std::uint32_t kBuffersPerThread = 130000;
constexpr int kPatience = 20;  // milliseconds
constexpr int kSilences = 3;   // of CUPTI, until another client is assumed to have taken it over
constexpr std::int64_t kLeaveNs = 60'000'000'000;  // for Kineto to shut CUPTI down

// That CUPTI called back on this thread; that this thread has a turn.
thread_local bool called_back = false, with_turn = false;

}  // namespace

Ownership::Ownership(const Cupti& cupti, Recorder& recorder, ActivityAggregator& aggregator,
                     Tenant& tenant)
    : cupti_(cupti),
      recorder_(recorder),
      aggregator_(aggregator),
      tenant_(tenant),
      programs_thread_(pthread_self()) {
  if (const char* grace = ::secure_getenv("PURLIN_CUPTI_GRACE_MS"))
    grace_ns_ = std::strtoll(grace, nullptr, 10) * 1'000'000;
  if (const char* wait = ::secure_getenv("PURLIN_CONTEXT_WAIT_MS"))
    longest_wait_ns_ = std::strtoll(wait, nullptr, 10) * 1'000'000;
}

bool Ownership::begin(CUpti_BuffersCallbackRequestFunc requested,
                      CUpti_BuffersCallbackCompleteFunc completed, bool later) {
  const std::lock_guard<std::timed_mutex> lock(transition_);
  own_requested_ = requested;
  own_completed_ = completed;
  if (client_requested_ != nullptr) {  // it came first, and was seen
    owner_ = Owner::kClient;
    client_since_ns_ = monotonic_ns();
    return false;
  }
  // Kinds that a client enabled before it takes records are on for it when it does.
  for (const ClientKind& each : client_kinds()) disable_for_client(each);
  owner_ = Owner::kPurlin;
  return later || need();
}

bool Ownership::need() {
  if (registered_) return true;
  const CUptiResult result = register_own();
  if (result != CUPTI_SUCCESS) refused(result);
  return registered_;
}

CUptiResult Ownership::register_own() {
  const CUptiResult result = cupti_.register_callbacks(own_requested_, own_completed_);
  registered_ = result == CUPTI_SUCCESS;
  return result;
}

void Ownership::refused(CUptiResult result) {
  give_up("cupti_refused", "CUDA is not captured: CUPTI answered " + cupti_.text_of(result) +
                               "; another profiler may hold it, or the driver may be older than " +
                               cupti_.path);
}

Ownership::Turn::Turn(std::unique_lock<std::timed_mutex> lock) : lock_(std::move(lock)) {
  with_turn = lock_.owns_lock();
}

Ownership::Turn::~Turn() { with_turn = false; }

bool Ownership::has_turn() { return with_turn; }

Ownership::Turn Ownership::take_turn(bool wait) {
  std::unique_lock<std::timed_mutex> lock(transition_, std::defer_lock);
  const bool locked = wait ? lock_in_time(lock) : lock.try_lock();
  if (!locked || owner_ != Owner::kPurlin) return Turn();
  return Turn(std::move(lock));
}

// CUPTI has to ask for a buffer, on this thread, or to give one back.
bool Ownership::answers() {
  called_back = false;
  const CUptiResult result = cupti_.enable_and_dump(kOnRequest);
  cupti_.disable(kOnRequest);
  if (result == CUPTI_SUCCESS && !called_back) flush(0);  // it had one of the last time
  return called_back;
}

bool Ownership::has_context() {
  if (!need()) return false;
  const Contexts primary = primary_contexts();
  if (!watches_context_)
    watches_context_ =
        cupti_.enable_and_dump != nullptr && cupti_.enable_and_dump(kOnRequest) == CUPTI_SUCCESS;
  // Nothing else is on that CUPTI would need a buffer for.
  const bool has = heard_ || primary == Contexts::kSome ||
                   (!watches_context_ && (primary == Contexts::kUnknown || context_wait_is_over()));
  if (has) unwatch_context();
  return has;
}

// If CUPTI does not report contexts, a context that is not primary (cuCtxCreate) is not seen.
bool Ownership::context_wait_is_over() {
  const std::int64_t now = monotonic_ns();
  if (unwatched_since_ns_ == 0) unwatched_since_ns_ = now;
  if (now - unwatched_since_ns_ < longest_wait_ns_) return false;
  recorder_.note(
      "context_untold",
      "this CUPTI does not report CUDA contexts of the program, and no device has a primary one: "
      "recording began after this time, because there may be a context of another kind. If there "
      "was none, later launches of some threads may be missing",
      0, static_cast<double>(now - unwatched_since_ns_) * 1e-9);
  return true;
}

void Ownership::unwatch_context() {
  if (std::exchange(watches_context_, false)) cupti_.disable(kOnRequest);
}

bool Ownership::confirm() {
  // A thread that launches may hold a buffer with running work, which is not given back; before
  // CUDA 13 all threads may.
  if (cupti_.enable_and_dump == nullptr || cupti_.version < kBuffersPerThread ||
      pthread_equal(pthread_self(), programs_thread_) != 0)
    return true;
  // If CUPTI has called back meanwhile, it need not be asked while threads launch.
  if (heard_.exchange(false) || answers()) {
    heard_ = false;
    silences_ = 0;
    return has_answered_ = true;
  }
  // Without a context, not yet or no longer (cudaDeviceReset), CUPTI has nothing to report.
  const Contexts contexts = primary_contexts();
  if (contexts == Contexts::kNone || (contexts == Contexts::kUnknown && !has_answered_)) {
    silences_ = 0;
    return true;
  }
  if (++silences_ < kSilences) return false;
  give_up("client_unseen",
          "another CUPTI client took CUPTI over unseen (it had CUPTI's functions before CUDA was "
          "initialised): capture ended there, and that client may have records of the time since "
          "the window before");
  return false;
}

void Ownership::give_up(const char* cause, const std::string& text) {
  owner_ = Owner::kNobody;
  recorder_.note(cause, text);
}

// ---- buffers ----

void Ownership::buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                 std::size_t* most_records) {
  // Without an owner of CUPTI, Purlin has given up and the client is alone.
  const CUpti_BuffersCallbackRequestFunc client = client_requested_;
  if (owner_ != Owner::kPurlin && client != nullptr) return client(buffer, size, most_records);
  called_back = true;
  heard_ = true;
  aggregator_.lend(buffer, size, most_records);
}

void Ownership::buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid) {
  if (buffer == nullptr) return;
  if (aggregator_.owns(buffer)) {
    called_back = true;
    heard_ = true;
    return aggregator_.take(context, stream, buffer, valid);
  }
  const CUpti_BuffersCallbackCompleteFunc client = client_completed_;
  if (client != nullptr) client(context, stream, buffer, size, valid);
}

// ---- another client ----

// Purlin may be waiting, inside CUPTI, for a lock that the client's thread holds.
std::unique_lock<std::timed_mutex> Ownership::wait_for_turn() {
  std::unique_lock<std::timed_mutex> lock(transition_, std::defer_lock);
  (void)lock_in_time(lock);
  return lock;
}

CUptiResult Ownership::flush(std::uint32_t flag) {
  const CUptiResult result = cupti_.flush_all(flag);
  flushed_ns_ = monotonic_ns();
  return result;
}

// A forced flush takes records whose work has not ended. They have no times, and CUPTI 13.0 never
// reuses their device memory, nor any that it fills later (bench/results/capture_faults_h200.md).
// So the work gets a moment to end.
void Ownership::clear_buffers() {
  for (int attempt = 0; attempt < kPatience; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    flush(0);
    if (aggregator_.lent_buffers() == 0) return;
  }
  flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

void Ownership::yield_to_client(bool has_turn) {
  last_client_call_ns_ = monotonic_ns();
  if (owner_ != Owner::kPurlin) return;
  if (has_turn) {
    // The client must find neither our buffers nor our kinds.
    tenant_.vacate();
    unwatch_context();
    clear_buffers();
    // It is about to enable its own kinds (flush_times.h).
    std::this_thread::sleep_for(std::chrono::nanoseconds(FlushTimes::kApartNs));
  } else {
    clear_up_ = true;
    recorder_.note(
        "client_not_awaited",
        "another CUPTI client could not wait until Purlin had released CUPTI: either may "
        "have records of that moment that are the other's",
        1);
  }
  client_since_ns_ = monotonic_ns();
  owner_ = Owner::kClient;
  if (has_turn) set_clock(client_clock_);
}

CUptiResult Ownership::set_clock(CUpti_TimestampCallbackFunc clock) {
  if (clock == nullptr || clock == clock_) return CUPTI_SUCCESS;
  const CUptiResult result = cupti_.register_timestamp(clock);
  if (result == CUPTI_SUCCESS) clock_ = clock;
  return result;
}

void Ownership::account_client_time() {
  const std::int64_t now = monotonic_ns();
  recorder_.note("stood_aside",
                 "another CUPTI client of the program (a profiler such as PyTorch's) was active: "
                 "launches of that time are not here",
                 0, static_cast<double>(now - client_since_ns_) * 1e-9);
  client_since_ns_ = now;
}

bool Ownership::client_is_idle() const {
  if (owner_ != Owner::kClient) return false;
  const std::int64_t patience = client_leaves_ ? std::max(grace_ns_, kLeaveNs) : grace_ns_;
  const std::lock_guard<std::mutex> clients(clients_mutex_);
  return client_kinds_.empty() && monotonic_ns() - last_client_call_ns_ >= patience;
}

// Records of a known client that still arrive have no meaning.
void Ownership::note_unasked() {
  const std::uint64_t records = aggregator_.take_unasked();
  if (records == 0 || client_requested_ != nullptr) return;
  recorder_.note("client_replaced",
                 "records of kinds that Purlin did not ask for: another CUPTI client was active "
                 "before CUDA was initialised, and since then its records come to Purlin; start it "
                 "later, or without Purlin",
                 static_cast<double>(records));
}

void Ownership::resume_if_idle() {
  note_unasked();
  std::unique_lock<std::timed_mutex> lock(transition_, std::try_to_lock);
  if (!lock || owner_ != Owner::kClient) return;
  if (clear_up_.exchange(false)) {
    tenant_.vacate();
    unwatch_context();
  }
  account_client_time();
  take_back(lock);
}

void Ownership::take_back(std::unique_lock<std::timed_mutex>& lock) {
  if (!client_is_idle()) return;
  // The client's last buffers go to the client before ours are lent; not under our lock, which its
  // other threads may be waiting for with a lock that its callback needs.
  lock.unlock();
  flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (!lock.try_lock()) return;
  if (!client_is_idle()) return;
  CUptiResult result = CUPTI_SUCCESS;
  if (client_clock_ != nullptr) result = set_clock(&wall_clock);  // else its ticks would be our ns
  if (result == CUPTI_SUCCESS && !registered_) result = register_own();
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
  const std::unique_lock<std::timed_mutex> lock = wait_for_turn();
  shut_down_ = false;
  yield_to_client(lock.owns_lock());
  client_requested_ = requested;
  client_completed_ = completed;
  for (const ClientKind& each : client_kinds())  // asked for before it had callbacks
    enable_for_client(each);
  // Purlin's own pair passes the client's on; before Purlin has begun it has none.
  return own_requested_ != nullptr ? register_own()
                                   : cupti_.register_callbacks(requested, completed);
}

std::vector<Ownership::ClientKind> Ownership::client_kinds() const {
  const std::lock_guard<std::mutex> clients(clients_mutex_);
  return {client_kinds_.begin(), client_kinds_.end()};
}

CUptiResult Ownership::client_enables(CUcontext context, CUpti_ActivityKind kind) {
  const std::unique_lock<std::timed_mutex> lock = wait_for_turn();
  shut_down_ = false;
  const ClientKind wanted = {context, kind};
  CUptiResult result = CUPTI_SUCCESS;
  // Without callbacks it takes no records yet (some only want CUPTI to load early).
  const bool takes_records = client_requested_ != nullptr;
  if (takes_records) yield_to_client(lock.owns_lock());
  if (takes_records || owner_ != Owner::kPurlin) result = enable_for_client(wanted);
  if (result != CUPTI_SUCCESS) return result;
  const std::lock_guard<std::mutex> clients(clients_mutex_);
  client_kinds_.insert(wanted);
  return result;
}

CUptiResult Ownership::enable_for_client(const ClientKind& each) {
  return each.first != nullptr ? cupti_.enable_context(each.first, each.second)
                               : cupti_.enable(each.second);
}

CUptiResult Ownership::disable_for_client(const ClientKind& each) {
  return each.first != nullptr ? cupti_.disable_context(each.first, each.second)
                               : cupti_.disable(each.second);
}

CUptiResult Ownership::client_disables(CUcontext context, CUpti_ActivityKind kind) {
  const std::unique_lock<std::timed_mutex> lock = wait_for_turn();
  last_client_call_ns_ = monotonic_ns();
  // Read on the client's thread, which may have just set it.
  const char* const teardown = std::getenv("TEARDOWN_CUPTI");
  client_leaves_ = teardown != nullptr && std::strcmp(teardown, "1") == 0;
  {
    const std::lock_guard<std::mutex> clients(clients_mutex_);
    client_kinds_.erase({context, kind});
  }
  // While Purlin owns CUPTI nothing is enabled for the client: what is on is Purlin's.
  if (owner_ == Owner::kPurlin) return CUPTI_SUCCESS;
  return disable_for_client({context, kind});
}

CUptiResult Ownership::client_flushes(std::uint32_t flag) {
  last_client_call_ns_ = monotonic_ns();
  return flush(flag);
}

// A new clock leaves records that are still under way without times, so ours are flushed first.
CUptiResult Ownership::client_sets_clock(CUpti_TimestampCallbackFunc clock) {
  const std::unique_lock<std::timed_mutex> lock = wait_for_turn();
  yield_to_client(lock.owns_lock());
  const CUptiResult result = cupti_.register_timestamp(clock);
  if (result == CUPTI_SUCCESS) client_clock_ = clock_ = clock;
  return result;
}

// May be called from inside a CUPTI callback, where waiting for the session's thread could be
// waiting for oneself. Afterwards Purlin does not come back: shut down a second time, CUPTI 13.0
// breaks every launch of a program with CUDA graphs (H200).
CUptiResult Ownership::client_finalizes() {
  if (shut_down_.exchange(true)) return CUPTI_SUCCESS;
  const std::unique_lock<std::timed_mutex> lock = wait_for_turn();
  last_client_call_ns_ = monotonic_ns();
  if (lock && owner_ == Owner::kPurlin) {
    flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    tenant_.vacate();
  }
  {
    const std::lock_guard<std::mutex> clients(clients_mutex_);
    client_kinds_.clear();
  }
  if (owner_ == Owner::kClient) account_client_time();
  registered_ = false;
  give_up("cupti_finalized",
          "another CUPTI client shut CUPTI down: capture ended there, for the program's safety");
  return cupti_.finalize();
}

CUptiResult Ownership::client_takes_profiler(const std::function<CUptiResult()>& pass) {
  const std::unique_lock<std::timed_mutex> lock = wait_for_turn();
  shut_down_ = false;
  tenant_.yield();
  return pass();
}

}  // namespace purlin::profile::capture::cuda
