// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/range_log.h"

#include "profile/capture/session/clock.h"

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin::profile::capture {
namespace {

constexpr std::size_t kChunkEvents = 1023;
constexpr std::size_t kKnownNames = 256;  // per thread
constexpr std::string_view kOtherNames = "(other ranges)";

pthread_key_t end_of_thread;
std::atomic<RangeLog*> the_log = nullptr;
pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

struct RangeLog::Event {
  enum Kind : std::uint8_t { kEnter, kLeave, kWindow };
  Kind kind = kEnter;
  std::uint8_t domain = 0;
  std::uint32_t name = 0;
  std::int64_t time_ns = 0;
};

struct RangeLog::Chunk {
  std::atomic<std::uint32_t> used = 0;
  std::atomic<Chunk*> next = nullptr;
  Event events[kChunkEvents];
};

// Written by its thread, except for the reader's members.
struct RangeLog::Thread {
  std::uint32_t self = 0, system = 0;
  std::uint32_t window = 0;  // of the last event
  // Ranges of this window that are open, by domain, and those within one that was left out.
  std::array<std::uint16_t, kMaxDomains> open = {}, left_out = {};
  struct Known {
    std::uint64_t hash = 0;
    std::uint32_t id = 0;
  };
  std::array<Known, kKnownNames> known = {};
  std::uint32_t open_in_all = 0;
  Chunk* tail = nullptr;
  Chunk* spare = nullptr;  // for the ends of what is open
  std::atomic<bool> ended = false;
  // The reader's.
  std::atomic<Chunk*> head = nullptr;
  std::uint32_t read = 0;
};

struct RangeLog::ThreadState {
  std::array<int, kMaxDomains> depth;
  Thread* thread;
};

RangeLog::ThreadState& RangeLog::state() {
  static thread_local ThreadState mine = {};
  return mine;
}

RangeLog::RangeLog() { names_.push_back({std::string(kOtherNames), NameKind::kRange}); }

RangeLog* RangeLog::instance() {
  if (RangeLog* log = the_log.load(std::memory_order_acquire)) return log;
  pthread_mutex_lock(&making);
  RangeLog* log = the_log.load(std::memory_order_acquire);
  if (log == nullptr) {
    try {
      static const bool prepared =
          pthread_key_create(&end_of_thread, &RangeLog::thread_ended) == 0 &&
          pthread_atfork(nullptr, nullptr, &RangeLog::forked) == 0;
      if (prepared) log = new RangeLog;
    } catch (...) {
    }
    the_log.store(log, std::memory_order_release);
  }
  pthread_mutex_unlock(&making);
  return log;
}

// In the child, where only this thread exists: another may have held any of the locks.
void RangeLog::forked() {
  making = PTHREAD_MUTEX_INITIALIZER;
  the_log.store(nullptr, std::memory_order_release);
  state().thread = nullptr;
  pthread_setspecific(end_of_thread, nullptr);
}

void RangeLog::thread_ended(void* thread) {
  state().thread = nullptr;
  static_cast<Thread*>(thread)->ended.store(true, std::memory_order_release);
}

void RangeLog::set_used() {
  if (used_.exchange(true)) return;
  if (void (*call)() = on_first_use_.load()) call();
}

void RangeLog::start_listening() {
  const std::uint32_t window = window_.load(std::memory_order_relaxed);
  window_.store(window + 1 + window % 2, std::memory_order_release);
}

void RangeLog::stop_listening() {
  const std::uint32_t window = window_.load(std::memory_order_relaxed);
  window_.store(window + window % 2, std::memory_order_release);
}

int RangeLog::enter(std::string_view name, std::uint8_t domain) {
  if (!listening()) return state().depth[domain]++;
  OpText text;
  read_range_name(name, text);
  return enter_while_listening(text.is_op ? NameKind::kOp : NameKind::kRange, text.view(), domain);
}

int RangeLog::enter(const char* name, std::uint8_t domain) {
  if (!listening()) return state().depth[domain]++;
  return enter(std::string_view(name, ::strnlen(name, kMaxRangeName)), domain);
}

int RangeLog::enter(const wchar_t* name, std::uint8_t domain) {
  if (!listening()) return state().depth[domain]++;
  OpText text;
  read_range_name(name, text);
  return enter_while_listening(text.is_op ? NameKind::kOp : NameKind::kRange, text.view(), domain);
}

int RangeLog::enter(NameKind kind, std::string_view text, std::uint8_t domain) {
  if (!listening()) return state().depth[domain]++;
  return enter_while_listening(kind, text, domain);
}

int RangeLog::enter_while_listening(NameKind kind, std::string_view text, std::uint8_t domain) {
  ThreadState& mine = state();
  const int depth = mine.depth[domain]++;
  try {
    Thread* thread = thread_of(mine);
    if (thread == nullptr) return ++lost_, depth;
    const std::uint32_t window = window_.load(std::memory_order_relaxed);
    if (thread->window != window) {
      thread->open = thread->left_out = {};
      thread->open_in_all = 0;
      if (has_room(*thread, 1) && append(*thread, {Event::kWindow, 0, 0, wall_ns()}))
        thread->window = window;
    }
    // With room for its end and those of the ranges around it.
    if (thread->window != window || thread->left_out[domain] > 0 ||
        !has_room(*thread, thread->open_in_all + 2) ||
        !append(*thread, {Event::kEnter, domain, id_of(*thread, kind, text), wall_ns()})) {
      ++thread->left_out[domain];
      ++lost_;
    } else {
      ++thread->open[domain];
      ++thread->open_in_all;
    }
  } catch (...) {
    ++lost_;
  }
  return depth;
}

int RangeLog::leave(std::uint8_t domain) {
  ThreadState& mine = state();
  // More ends than beginnings are the program's mistake.
  const int depth = mine.depth[domain] > 0 ? --mine.depth[domain] : -1;
  Thread* thread = mine.thread;
  if (thread == nullptr || !listening() ||
      thread->window != window_.load(std::memory_order_relaxed))
    return depth;
  if (thread->left_out[domain] > 0) {
    --thread->left_out[domain];
  } else if (thread->open[domain] > 0) {  // else it was entered before the window
    --thread->open[domain];
    --thread->open_in_all;
    append(*thread, {Event::kLeave, domain, 0, wall_ns()});
  }
  return depth;
}

RangeLog::Thread* RangeLog::thread_of(ThreadState& mine) {
  if (mine.thread != nullptr) return mine.thread;
  auto thread = std::make_unique<Thread>();
  thread->self = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pthread_self()));
  thread->system = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  Chunk* first = take_chunk();
  if (first == nullptr) return nullptr;
  thread->tail = first;
  thread->head.store(first, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(threads_mutex_);
  threads_.push_back(thread.get());
  pthread_setspecific(end_of_thread, thread.get());
  return mine.thread = thread.release();
}

RangeLog::Chunk* RangeLog::take_chunk() {
  const std::lock_guard<std::mutex> lock(chunks_mutex_);
  if (!free_chunks_.empty()) {
    Chunk* chunk = free_chunks_.back();
    free_chunks_.pop_back();
    chunk->used.store(0, std::memory_order_relaxed);
    chunk->next.store(nullptr, std::memory_order_relaxed);
    return chunk;
  }
  if (chunks_ >= kMaxChunks) return nullptr;
  free_chunks_.reserve(chunks_ + 1);  // so that giving back never allocates
  auto* chunk = new (std::nothrow) Chunk;
  if (chunk != nullptr) ++chunks_;
  return chunk;
}

bool RangeLog::has_room(Thread& thread, std::uint32_t events) {
  const std::uint32_t left = kChunkEvents - thread.tail->used.load(std::memory_order_relaxed);
  if (events <= left) return true;
  if (thread.spare == nullptr) thread.spare = take_chunk();
  return thread.spare != nullptr && events <= left + kChunkEvents;
}

bool RangeLog::append(Thread& thread, const Event& event) {
  std::uint32_t at = thread.tail->used.load(std::memory_order_relaxed);
  if (at == kChunkEvents) {
    Chunk* next = thread.spare != nullptr ? std::exchange(thread.spare, nullptr) : take_chunk();
    if (next == nullptr) return false;
    thread.tail->next.store(next, std::memory_order_release);
    thread.tail = next;
    at = 0;
  }
  thread.tail->events[at] = event;
  thread.tail->used.store(at + 1, std::memory_order_release);
  return true;
}

std::uint32_t RangeLog::id_of(Thread& thread, NameKind kind, std::string_view text) {
  if (text.empty()) return kNoName;
  const std::uint64_t hash =
      XXH3_64bits_withSeed(text.data(), text.size(), static_cast<std::uint64_t>(kind) + 1);
  Thread::Known& known = thread.known[hash % kKnownNames];
  if (known.hash == hash) return known.id;
  const std::uint32_t id = add_name(kind, text);
  known = {hash, id};
  return id;
}

std::uint32_t RangeLog::add_name(NameKind kind, std::string_view text) {
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const auto find_or_add = [&](std::string_view wanted, std::size_t most) {
    std::string key(1, static_cast<char>('0' + static_cast<int>(kind)));
    key += wanted;
    if (const auto known = ids_.find(key); known != ids_.end()) return known->second;
    if (names_.size() >= most) return kNoName;
    const auto id = static_cast<std::uint32_t>(names_.size());
    names_.push_back({std::string(wanted), kind});
    ids_.emplace(std::move(key), id);
    return id;
  };
  const std::uint32_t id = find_or_add(text, kMaxNames);
  const std::string_view bare = op_name(text);
  return id != kNoName || bare.size() == text.size() ? id : find_or_add(bare, kMaxNames * 5 / 4);
}

RangeName RangeLog::name(std::uint32_t id) {
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return names_[id < names_.size() ? id : kNoName];
}

std::uint64_t RangeLog::take_lost() { return lost_.exchange(0); }

void RangeLog::drain(Reader& reader) {
  std::vector<Thread*> threads;
  {
    const std::lock_guard<std::mutex> lock(threads_mutex_);
    threads = threads_;
  }
  for (Thread* thread : threads) {
    const bool ended = thread->ended.load(std::memory_order_acquire);
    Chunk* chunk = thread->head.load(std::memory_order_relaxed);
    if (!ended && chunk->used.load(std::memory_order_acquire) == thread->read &&
        chunk->next.load(std::memory_order_acquire) == nullptr)
      continue;
    reader.thread(thread->self, thread->system);
    std::vector<Chunk*> done;
    while (true) {
      const std::uint32_t used = chunk->used.load(std::memory_order_acquire);
      for (; thread->read < used; ++thread->read) {
        const Event& event = chunk->events[thread->read];
        if (event.kind == Event::kWindow) {
          reader.begin_window(event.time_ns);
        } else if (event.kind == Event::kEnter) {
          reader.enter(event.time_ns, event.name, event.domain);
        } else {
          reader.leave(event.time_ns, event.domain);
        }
      }
      Chunk* next = chunk->next.load(std::memory_order_acquire);
      if (next == nullptr || used < kChunkEvents) break;
      done.push_back(chunk);
      chunk = next;
      thread->read = 0;
    }
    thread->head.store(chunk, std::memory_order_relaxed);
    if (ended) {
      reader.end();
      done.push_back(chunk);
      if (thread->spare != nullptr) done.push_back(thread->spare);
      const std::lock_guard<std::mutex> lock(threads_mutex_);
      std::erase(threads_, thread);
      delete thread;
    }
    const std::lock_guard<std::mutex> lock(chunks_mutex_);
    free_chunks_.insert(free_chunks_.end(), done.begin(), done.end());
  }
}

}  // namespace purlin::profile::capture
