// SPDX-License-Identifier: Apache-2.0
// RangeLog: the named ranges that each thread of the program entered and left, with times, while a
// listener is active. A thread writes into its own chunks and takes a lock only for a new chunk or
// a new name. One reader at a time reads the chunks.
//
// Without a listener only the depth of ranges is counted; such ranges are not known later. Memory
// is bounded: names beyond kMaxNames lose their sizes, then their identity. Ranges beyond
// kMaxChunks of unread events are left out with their ends, and counted.
//
// One per process, never destroyed. [MT] all methods except drain(), whose caller holds a lock.
// Nothing throws: if memory runs out a range is left out.
#pragma once

#include "profile/capture/ranges/op_text.h"
#include "profile/capture/ranges/span_log.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::profile::capture {

enum class NameKind : std::uint8_t {
  kRange,  // the user's
  kOp,     // a framework's op, perhaps with sizes
  kGemm,   // a product of a library call: gemm_text.h
};

struct RangeName {
  std::string text;
  NameKind kind = NameKind::kRange;
};

// Ranges of different domains need not nest. The last one is shared by all domains beyond.
constexpr std::size_t kMaxDomains = 16;
constexpr std::uint8_t kDefaultDomain = 0, kLibraryDomain = 1;

class RangeLog {
 public:
  static constexpr std::size_t kMaxNames = 8192;
  static constexpr std::size_t kMaxChunks = 1024;  // of 16 KiB
  static constexpr std::uint32_t kNoName = 0;      // of ranges that could not be named

  // Of the thread that reads: what happened on another, in its order.
  class Reader {
   public:
    virtual ~Reader() = default;
    // `self` is pthread_self cut to 32 bits, `system` the number that the system shows.
    virtual void thread(std::uint32_t self, std::uint32_t system) = 0;
    virtual void begin_window(std::int64_t time_ns) = 0;  // no range is open
    virtual void enter(std::int64_t time_ns, std::uint32_t name, std::uint8_t domain) = 0;
    virtual void leave(std::int64_t time_ns, std::uint8_t domain) = 0;
    virtual void end() = 0;  // the thread ended: its numbers may be another's next
  };

  // The process's, made on first use; null where memory ran out.
  static RangeLog* instance();

  // Of the program's threads. How deep the thread is in ranges of the domain, before and after.
  // A terminated name is read while a listener is active, and never null.
  int enter(std::string_view name, std::uint8_t domain);
  int enter(const char* name, std::uint8_t domain);
  int enter(const wchar_t* name, std::uint8_t domain);
  int enter(NameKind kind, std::string_view text, std::uint8_t domain);
  int leave(std::uint8_t domain);

  bool listening() const { return window_.load(std::memory_order_relaxed) % 2 == 1; }
  // Every start is a new window.
  void start_listening();
  void stop_listening();
  // Whether the program names ranges itself; NCCL's do not count.
  bool used() const { return used_.load(std::memory_order_relaxed); }
  void set_used();
  // Called on the thread that names the first range, if one is set by then.
  void on_first_use(void (*call)()) { on_first_use_.store(call); }

  void drain(Reader& reader);
  RangeName name(std::uint32_t id);
  std::uint64_t take_lost();  // ranges left out since the last call

  SpanLog& spans() { return spans_; }

 private:
  struct Chunk;
  struct Thread;
  struct ThreadState;
  static ThreadState& state();
  static void thread_ended(void* thread);
  static void forked();

  RangeLog();
  int enter_while_listening(NameKind kind, std::string_view text, std::uint8_t domain);
  std::uint32_t id_of(Thread& thread, NameKind kind, std::string_view text);
  std::uint32_t add_name(NameKind kind, std::string_view text);
  Thread* thread_of(ThreadState& state);
  struct Event;
  bool has_room(Thread& thread, std::uint32_t events);
  bool append(Thread& thread, const Event& event);
  Chunk* take_chunk();

  std::atomic<std::uint32_t> window_ = 0;  // odd while a listener is active
  std::atomic<bool> used_ = false;
  std::atomic<void (*)()> on_first_use_ = nullptr;
  std::atomic<std::uint64_t> lost_ = 0;
  SpanLog spans_;

  std::mutex threads_mutex_;
  std::vector<Thread*> threads_;
  std::mutex chunks_mutex_;
  std::vector<Chunk*> free_chunks_;
  std::size_t chunks_ = 0;
  std::mutex names_mutex_;
  std::vector<RangeName> names_;
  std::unordered_map<std::string, std::uint32_t> ids_;  // by kind and text
};

}  // namespace purlin::profile::capture
