// SPDX-License-Identifier: Apache-2.0
// A CUPTI without a GPU, for tests of the CUDA capture library: the activity part of the API as
// the real one documents it, and fake_… functions by which a test program launches work.
//
// As CUPTI 13.0 does, it keeps a buffer for each launching thread, requested from the
// subscriber then registered and given back to the one registered when it completes: what makes two
// careless clients lose each other's records. A graph that is first launched while kernels are
// recorded for the first time has its nodes recorded from then on, until the kind has been enabled
// and disabled once more. Full buffers complete on a thread of its own. A clock
// that is set takes the times from the records not yet delivered. A flush that is not forced keeps
// buffers with work in flight. A process has one copy of it: what is asked of another is refused. A
// name belongs to its module and is written over when that is gone.
//
//   FAKE_CUPTI_LAG=N         a launch is in flight until its thread has made N more, or
//   synchronises FAKE_CUPTI_FAIL=F:R:A:N  function F answers R to N calls, from the A-th on
//   FAKE_CUPTI_SLOW=F:US[:A[:spin]]  function F takes that many microseconds from the A-th call on,
//                            its lock held for none of it; spin: of the processor's time
//   FAKE_CUPTI_CLOCKED=NS    work is in flight until its end by the wall clock, each thread having
//   a device of its own, and what is recorded takes its thread so much longer to launch
//   FAKE_CUPTI_LOG=FILE      at exit: calls of each function, buffers and records, as JSON; and the
//                            shortest time from a flush to the enabling of a kind, -1: there was
//                            none
#include <cupti.h>
#include <cupti_runtime_cbid.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <pthread.h>
#include <set>
#include <string>
#include <sys/auxv.h>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

struct Buffer {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0, used = 0;
  // Of the records in flight: where they are, and their end.
  std::deque<std::pair<std::size_t, std::uint64_t>> in_flight;
  std::uint64_t done_ns = 0;  // of a full one, by the wall clock
};

struct Fault {
  std::string function;
  int answer = 0;
  long first = 0, count = 0;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  CUpti_BuffersCallbackRequestFunc requested = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed = nullptr;
  std::set<CUpti_ActivityKind> kinds;
  long kernel_disables = 0;
  std::map<std::string, bool> graphs;  // made while kernels were recorded for the first time
  std::map<std::thread::id, Buffer> buffers;
  std::deque<Buffer> full;    // to be completed by the worker, or by a flush
  std::set<long> delivering;  // numbers of the deliveries under way
  long deliveries = 0;
  bool worker = false;
  std::uint64_t now_ns = 1'700'000'000'000'000'000;
  CUpti_TimestampCallbackFunc clock = nullptr;
  std::set<CUpti_CallbackId> silent_calls;  // of the runtime
  bool context = true;
  std::size_t dropped = 0;
  CUpti_SubscriberHandle subscriber = nullptr;

  std::size_t lag = 0;
  bool clocked = false;
  std::chrono::nanoseconds recording{0};
  Fault fault;
  std::string slow;
  std::chrono::microseconds slowness{0};
  long slow_from = 0;
  bool spins = false;
  std::map<std::string, long> calls;
  std::chrono::steady_clock::time_point flushed;  // last
  std::chrono::microseconds flush_to_enabling{-1};
  long buffers_lent = 0, buffers_out = 0, most_buffers_out = 0, records = 0, illegal_calls = 0;
};

std::string part(const char* variable, int index) {
  const char* value = std::getenv(variable);
  std::string text = value != nullptr ? value : "";
  for (; index > 0; --index) {
    const std::size_t colon = text.find(':');
    text = colon == std::string::npos ? "" : text.substr(colon + 1);
  }
  return text.substr(0, text.find(':'));
}

long number(const char* variable, int index) {
  return std::strtol(part(variable, index).c_str(), nullptr, 10);
}

State* made() {
  auto* s = new State;
  s->lag = static_cast<std::size_t>(number("FAKE_CUPTI_LAG", 0));
  s->clocked = std::getenv("FAKE_CUPTI_CLOCKED") != nullptr;
  s->recording = std::chrono::nanoseconds(number("FAKE_CUPTI_CLOCKED", 0));
  s->fault = {part("FAKE_CUPTI_FAIL", 0), static_cast<int>(number("FAKE_CUPTI_FAIL", 1)),
              number("FAKE_CUPTI_FAIL", 2), number("FAKE_CUPTI_FAIL", 3)};
  s->slow = part("FAKE_CUPTI_SLOW", 0);
  s->slowness = std::chrono::microseconds(number("FAKE_CUPTI_SLOW", 1));
  s->slow_from = number("FAKE_CUPTI_SLOW", 2);
  s->spins = part("FAKE_CUPTI_SLOW", 3) == "spin";
  return s;
}

State*& slot() {
  static State* instance = made();
  return instance;
}
State& state() { return *slot(); }

// The copy of the library that was used first, in the environment, where another copy finds it.
constexpr const char* kHolder = "FAKE_CUPTI_HOLDER";

// In a child nothing of the parent's threads is left, as with the real one: it has no use of CUDA.
const int forks = pthread_atfork(nullptr, nullptr, [] {
  slot() = made();
  unsetenv(kHolder);
});

bool hold() {
  std::uint64_t program = 0;  // of this process: exec keeps the environment
  std::memcpy(&program, reinterpret_cast<const void*>(getauxval(AT_RANDOM)), sizeof program);
  const std::string ours = std::to_string(program) + '@';
  const std::string mine = ours + std::to_string(reinterpret_cast<std::uintptr_t>(&forks));
  const char* holder = std::getenv(kHolder);
  if (holder != nullptr && std::strncmp(holder, ours.c_str(), ours.size()) == 0)
    return mine == holder;
  setenv(kHolder, mine.c_str(), 1);
  return true;
}

thread_local int in_callback = 0;

// The calling thread's processor time.
std::int64_t thread_us() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::int64_t{used.tv_sec} * 1'000'000 + used.tv_nsec / 1000;
}

// Every entry point: counted, slowed, made to fail as the environment says.
CUptiResult enter(const char* function, bool legal_in_callbacks = false) {
  State& s = state();
  std::unique_lock<std::mutex> lock(s.mutex);
  if (!hold()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const long call = ++s.calls[function];
  if (in_callback > 0 && !legal_in_callbacks) ++s.illegal_calls;
  const bool slow = s.slow == function && s.slowness.count() > 0 && call >= s.slow_from;
  const bool fails =
      s.fault.function == function && call >= s.fault.first && call < s.fault.first + s.fault.count;
  lock.unlock();
  if (slow && !s.spins) std::this_thread::sleep_for(s.slowness);
  const std::int64_t began = slow && s.spins ? thread_us() : 0;
  while (slow && s.spins && thread_us() < began + s.slowness.count()) {
  }
  return fails ? static_cast<CUptiResult>(s.fault.answer) : CUPTI_SUCCESS;
}
#define ENTER(...)                                                            \
  if (const CUptiResult refused = enter(__func__ __VA_OPT__(, ) __VA_ARGS__); \
      refused != CUPTI_SUCCESS)                                               \
  return refused

constexpr std::uint64_t kTicksPerNs = 3;

std::size_t size_of(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    default:
      return sizeof(CUpti_ActivityKernel10);
  }
}

void set_end(std::uint8_t* at, std::uint64_t end) {
  auto* record = reinterpret_cast<CUpti_Activity*>(at);
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      reinterpret_cast<CUpti_ActivityMemcpy6*>(record)->end = end;
      break;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      reinterpret_cast<CUpti_ActivityKernel10*>(record)->end = end;
      break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      reinterpret_cast<CUpti_ActivitySynchronization2*>(record)->end = end;
      break;
    default:
      break;
  }
}

// Calls the client with no lock of ours, on this thread. A registered pair is needed: without one
// there were no buffers.
void deliver(std::unique_lock<std::mutex>& lock, const Buffer& buffer) {
  State& s = state();
  const auto callback = s.completed;
  const long mine = ++s.deliveries;
  s.delivering.insert(mine);
  --s.buffers_out;
  lock.unlock();
  ++in_callback;
  if (callback != nullptr) callback(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
  --in_callback;
  lock.lock();
  s.delivering.erase(mine);
  s.changed.notify_all();
}

std::uint64_t wall_clock() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

// Those that are full now, as others may fill as fast, and whose work is done.
void deliver_full(std::unique_lock<std::mutex>& lock, bool forced = false) {
  State& s = state();
  for (std::size_t left = s.full.size(); left > 0 && !s.full.empty(); --left) {
    if (!forced && s.full.front().done_ns > wall_clock()) return;
    const Buffer buffer = std::move(s.full.front());
    s.full.pop_front();
    deliver(lock, buffer);
  }
}

void work(State* s) {
  std::unique_lock<std::mutex> lock(s->mutex);
  for (;;) {
    s->changed.wait(lock, [&] { return !s->full.empty(); });
    deliver_full(lock);
    if (!s->full.empty()) s->changed.wait_for(lock, std::chrono::milliseconds(1));
  }
}

void retire(std::unique_lock<std::mutex>& lock, Buffer& buffer) {
  State& s = state();
  s.full.push_back(std::move(buffer));
  buffer = {};
  if (!s.worker) {
    s.worker = true;
    lock.unlock();  // the new thread takes it
    std::thread(work, &s).detach();
    lock.lock();
  }
  s.changed.notify_all();
}

void land(Buffer& buffer, std::size_t left_in_flight) {
  const std::uint64_t now = state().clocked ? wall_clock() : 0;
  while (buffer.in_flight.size() > left_in_flight ||
         (!buffer.in_flight.empty() && buffer.in_flight.front().second < now)) {
    set_end(buffer.bytes + buffer.in_flight.front().first, buffer.in_flight.front().second);
    buffer.in_flight.pop_front();
  }
}

template <class Record>
void append(Record record, bool always = false) {
  State& s = state();
  std::unique_lock<std::mutex> lock(s.mutex);
  if ((!always && s.kinds.count(record.kind) == 0) || s.requested == nullptr) return;
  Buffer* buffer = &s.buffers[std::this_thread::get_id()];
  if (buffer->bytes != nullptr && buffer->size - buffer->used < sizeof record) {
    if (s.clocked && !buffer->in_flight.empty()) buffer->done_ns = buffer->in_flight.back().second;
    land(*buffer, 0);
    retire(lock, *buffer);
  }
  if (buffer->bytes == nullptr) {
    std::size_t most = 0;
    const auto callback = s.requested;
    lock.unlock();
    Buffer fresh;
    ++in_callback;
    callback(&fresh.bytes, &fresh.size, &most);
    --in_callback;
    lock.lock();
    if (fresh.bytes == nullptr) {
      ++s.dropped;
      return;
    }
    ++s.buffers_lent;
    s.most_buffers_out = std::max(s.most_buffers_out, ++s.buffers_out);
    buffer = &s.buffers[std::this_thread::get_id()];
    *buffer = std::move(fresh);
  }
  ++s.records;
  const std::size_t at = buffer->used;
  std::memcpy(buffer->bytes + at, &record, sizeof record);
  buffer->used += sizeof record;
  if constexpr (requires { record.end; } && !std::is_same_v<Record, CUpti_ActivityAPI>) {
    if (s.lag == 0 && !s.clocked) return;
    buffer->in_flight.emplace_back(at, std::uint64_t{record.end});
    set_end(buffer->bytes + at, 0);
    land(*buffer, s.clocked ? buffer->in_flight.size() : s.lag);
    lock.unlock();
    const auto until = std::chrono::steady_clock::now() + s.recording;
    while (s.recording.count() > 0 && std::chrono::steady_clock::now() < until) {
    }
  }
}

void append_context() {
  CUpti_ActivityContext3 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  append(record);
}

}  // namespace

extern "C" {

// A clock to register that counts ticks. Any other is taken to count nanoseconds: CUPTI finds out
// by calibration.
std::uint64_t CUPTIAPI fake_ticks() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().now_ns * kTicksPerNs;
}
}

namespace {

thread_local std::uint64_t device_ns =
    0;  // where each thread has a device of its own: until when it works

// Begin and end of something that takes so long, and begins once it was asked for.
std::pair<std::uint64_t, std::uint64_t> advance(std::uint64_t ns) {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  const std::uint64_t scale = s.clock == &fake_ticks ? kTicksPerNs : 1;
  std::uint64_t& now_ns = s.clocked ? device_ns : s.now_ns;
  const std::uint64_t begin = now_ns = std::max(now_ns + (s.clocked ? 0 : 1000), wall_clock());
  const std::uint64_t end = now_ns += ns;
  return {begin * scale, end * scale};
}

// A call of the runtime by this thread, now by the wall clock: calls happen on the host. Its number
// is also that of the work it makes.
std::uint32_t call(CUpti_CallbackId id, CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_RUNTIME) {
  static std::atomic<std::uint32_t> numbers = 0;
  CUpti_ActivityAPI record = {};
  record.kind = kind;
  record.cbid = id;
  record.correlationId = ++numbers;
  record.threadId = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pthread_self()));
  record.start = record.end = wall_clock();
  bool silent = false;
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    silent = kind == CUPTI_ACTIVITY_KIND_RUNTIME && state().silent_calls.count(id) > 0;
  }
  if (!silent) append(record);
  return record.correlationId;
}

CUpti_ActivityKernel10 kernel(const char* name, std::uint64_t duration_ns) {
  CUpti_ActivityKernel10 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = name;
  record.gridX = 128, record.gridY = record.gridZ = 1;
  record.blockX = 256, record.blockY = record.blockZ = 1;
  record.registersPerThread = 40;
  record.streamId = 7;
  const auto [start, end] = advance(duration_ns);
  record.start = start;
  record.end = end;
  return record;
}

}  // namespace

extern "C" {

void fake_launch(const char* name, int launches, std::uint64_t duration_ns) {
  for (int i = 0; i < launches; ++i) {
    const std::uint32_t correlation = call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    CUpti_ActivityKernel10 record = kernel(name, duration_ns);
    record.correlationId = correlation;
    append(record);
  }
}

// What is captured into a graph has numbers and no records.
void fake_capture(int launches) {
  for (int i = 0; i < launches; ++i) call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
}

// Of the driver, where it is the fake one.
void fake_driver_version() {
  call(CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion, CUPTI_ACTIVITY_KIND_DRIVER);
}

void fake_copy(std::uint64_t bytes) {
  CUpti_ActivityMemcpy6 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  record.bytes = bytes;
  record.correlationId = call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
  const auto [start, end] = advance(500);
  record.start = start;
  record.end = end;
  append(record);
}

// One record for the graph, or one for each of its nodes: never both, as in CUPTI.
void fake_graph_launch(const char* node, int nodes, std::uint64_t duration_ns) {
  State& s = state();
  bool whole = false, instrumented = false;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    whole = s.kinds.count(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) > 0;
    const bool recorded = s.kinds.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) > 0;
    instrumented = s.graphs.try_emplace(node, recorded && s.kernel_disables == 0).first->second;
  }
  const std::uint32_t correlation = call(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
  if (!whole) {
    for (int i = 0; i < nodes; ++i) {
      CUpti_ActivityKernel10 record = kernel(node, duration_ns);
      record.correlationId = correlation;
      record.graphId = 1;
      record.graphNodeId = static_cast<std::uint64_t>(i) + 1;
      append(record, instrumented);
    }
    return;
  }
  CUpti_ActivityGraphTrace2 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  record.graphId = 1;
  record.streamId = 7;
  const auto [start, end] = advance(duration_ns * static_cast<std::uint64_t>(nodes));
  record.start = start;
  record.end = end;
  append(record);
}

// What this thread has in flight ends.
void fake_synchronize() {
  CUpti_ActivitySynchronization2 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  const auto [start, end] = advance(2000);
  record.start = start;
  record.end = end;
  append(record);
  while (state().clocked && wall_clock() <= device_ns) {
  }
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  const auto mine = s.buffers.find(std::this_thread::get_id());
  if (mine != s.buffers.end()) land(mine->second, 0);
}

// A module with a kernel of this name. Unloading gives the place of its name to the next one.
const char* fake_module_load(const char* name) {
  static std::mutex mutex;
  static auto* names = new std::vector<std::array<char, 64>*>;
  static std::size_t next = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  if (names->empty())
    for (int i = 0; i < 2; ++i) names->push_back(new std::array<char, 64>{});
  std::array<char, 64>& place = *(*names)[next++ % names->size()];
  std::snprintf(place.data(), place.size(), "%s", name);
  return place.data();
}

// Whether there is a context whose record can be dumped; one that is new is told of.
void fake_context(int exists) {
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    if (std::exchange(state().context, exists != 0) || exists == 0) return;
  }
  append_context();
}

int fake_enabled(CUpti_ActivityKind kind) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().kinds.count(kind) > 0 ? 1 : 0;
}

long fake_calls(const char* function) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().calls[function];
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
  ENTER();
  if (requested == nullptr || completed == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().requested = requested;
  state().completed = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  ENTER();
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  const auto apart =
      std::chrono::floor<std::chrono::microseconds>(std::chrono::steady_clock::now() - s.flushed);
  if (s.calls.count("cuptiActivityFlushAll") > 0 &&
      (s.flush_to_enabling.count() < 0 || apart < s.flush_to_enabling))
    s.flush_to_enabling = apart;
  s.kinds.insert(kind);
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) s.silent_calls.clear();
  return CUPTI_SUCCESS;
}

// Only in a kind that is enabled, as CUPTI 13.0 does once there is a context.
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, std::uint8_t enable) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (enable != 0) state().silent_calls.erase(id);
  if (enable == 0) state().silent_calls.insert(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; }

// The record of the context that exists. What it is for: CUPTI asks the subscriber for a
// buffer.
CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  ENTER();
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    state().kinds.insert(kind);
    if (kind != CUPTI_ACTIVITY_KIND_CONTEXT || !state().context) return CUPTI_SUCCESS;
  }
  append_context();
  return CUPTI_SUCCESS;
}

// By way of the public function, as a library may that is not linked against itself.
CUptiResult cuptiActivityEnableContext(CUcontext, CUpti_ActivityKind kind) {
  ENTER();
  return cuptiActivityEnable(kind);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  ENTER();
  const std::lock_guard<std::mutex> lock(state().mutex);
  const bool was_on = state().kinds.erase(kind) > 0;
  if (was_on && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && ++state().kernel_disables > 1)
    for (auto& [graph, instrumented] : state().graphs) instrumented = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisableContext(CUcontext, CUpti_ActivityKind kind) {
  ENTER();
  return cuptiActivityDisable(kind);
}

CUptiResult cuptiActivityFlushAll(std::uint32_t flag) {
  ENTER();
  State& s = state();
  std::unique_lock<std::mutex> lock(s.mutex);
  s.flushed = std::chrono::steady_clock::now();
  if (s.requested == nullptr) return CUPTI_SUCCESS;  // whatever its documentation says
  for (auto& [thread, buffer] : s.buffers) {
    if (s.clocked) land(buffer, buffer.in_flight.size());
    const bool complete = buffer.in_flight.empty();
    if (buffer.bytes == nullptr || (!complete && (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == 0))
      continue;
    s.full.push_back(std::move(buffer));
    buffer = {};
  }
  deliver_full(lock, (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  // What another thread is delivering is delivered when this returns, unless that is this thread.
  const long last = s.deliveries;
  if (in_callback == 0)
    s.changed.wait(lock, [&] { return s.delivering.empty() || *s.delivering.begin() > last; });
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
  ENTER(true);
  const std::lock_guard<std::mutex> lock(state().mutex);
  *dropped = std::exchange(state().dropped, 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  ENTER();
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  s.clock = clock;
  for (auto& [thread, buffer] : s.buffers) {
    buffer.in_flight.clear();
    for (std::size_t at = 0; at < buffer.used;) {
      set_end(buffer.bytes + at, 0);
      at += size_of(*reinterpret_cast<CUpti_Activity*>(buffer.bytes + at));
    }
  }
  return CUPTI_SUCCESS;
}

// One per process, as CUPTI has it before its version 13.3.
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
  ENTER();
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (state().subscriber != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  state().subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&state());
  *subscriber = state().subscriber;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  ENTER();
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().subscriber = nullptr;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize() {
  ENTER();
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  s.kinds.clear();
  s.requested = nullptr;
  s.completed = nullptr;
  s.buffers.clear();
  s.full.clear();
  s.buffers_out = 0;
  s.clock = nullptr;
  s.subscriber = nullptr;
  return CUPTI_SUCCESS;
}
}

namespace {

struct Log {
  ~Log() {
    const char* path = std::getenv("FAKE_CUPTI_LOG");
    FILE* out = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (out == nullptr) return;
    State& s = state();
    const std::lock_guard<std::mutex> lock(s.mutex);
    std::fprintf(out, "{\"buffers_lent\": %ld, \"buffers_out\": %ld, \"most_buffers_out\": %ld, ",
                 s.buffers_lent, s.buffers_out, s.most_buffers_out);
    std::fprintf(out, "\"records\": %ld, \"illegal_calls\": %ld, ", s.records, s.illegal_calls);
    std::fprintf(out, "\"flush_to_enabling_us\": %lld, \"calls\": {",
                 static_cast<long long>(s.flush_to_enabling.count()));
    const char* comma = "";
    for (const auto& [function, calls] : s.calls) {
      std::fprintf(out, "%s\"%s\": %ld", comma, function.c_str(), calls);
      comma = ", ";
    }
    std::fprintf(out, "}}\n");
    std::fclose(out);
  }
} log_at_exit;

}  // namespace
