// SPDX-License-Identifier: Apache-2.0
// Correlation: finds the op of a launch. A launch's record and the record of its call have the same
// id. The call's record has a thread and a time, and the RangeLog has the ranges that the thread
// had open at that time. CUPTI offers the second step itself, with ids pushed around each op
// (EXTERNAL_CORRELATION). On an H200 that takes about 800 ns for an op of one launch, this about
// 270. It also returns no times for a timeline, which needs the log anyway.
//
// A *context* is a number for "inside aten::linear of these sizes, inside aten::addmm of these":
// rows differ by it. 0 = nothing known.
//
// Owned by Attribution; thread-safety: none. Memory is bounded by the constants; launches beyond
// them have no op. Calls are looked up by the thread's number as CUPTI writes it: pthread_self cut
// to 32 bits, or the system's number if another client of CUPTI asked for that.
#pragma once

#include "profile/capture/ranges/range_log.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::profile::capture {

constexpr std::uint32_t kNoCall = 0xFFFFFFFFu;

// The part of a row that comes from its context.
struct OpFacts {
  // The ops around the launch from the outside in, joined by kInside; as named, with sizes.
  std::string op;
  std::string shape, dtype;  // where a library was asked for a product
};
constexpr char kInside = '\x1f';

class Correlation : private RangeLog::Reader {
 public:
  static constexpr std::size_t kMaxContexts = 16'384;
  static constexpr std::size_t kMaxCalls = 262'144;   // whose launch has not been seen, twice that
  static constexpr std::size_t kMaxChanges = 65'536;  // of a thread's context, kept
  static constexpr std::uint32_t kMaxChain = 6;       // ops in a context
  static constexpr std::size_t kMaxOpsText = 2048;

  struct Place {
    std::uint32_t context = 0;
    std::uint32_t call = kNoCall;  // as given to add_call
    std::int64_t begin_ns = 0;     // of the call
    bool graph = false;            // it launches a graph
  };
  // A range that ended, for a timeline.
  struct Span {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t thread = 0;  // the system's number
    std::uint32_t name = 0;    // of the log
  };

  explicit Correlation(RangeLog* log) : log_(log) {}  // null: nothing may be drained

  // Calls and ranges before this are another window's.
  void open_window(std::int64_t time_ns);
  using Ended = std::function<void(const Span&)>;  // may be empty
  // Ranges that are still open end here.
  void close_window(std::int64_t time_ns, const Ended& ended);
  // Reads what threads have logged.
  void drain(const Ended& ended);
  // Calls from before this time will not be asked for.
  void forget_before(std::int64_t time_ns);

  // The context at a time on a thread; drained before.
  std::uint32_t context_of(std::uint32_t thread, std::int64_t time_ns) const;
  // The thread's number as the system shows it, where the log knows it.
  std::uint32_t system_thread(std::uint32_t thread) const;
  void add_call(std::uint32_t correlation, const Place& place);
  // A graph's launches are many to a call.
  std::optional<Place> find(std::uint32_t correlation, bool again);
  OpFacts facts_of(std::uint32_t context);
  const RangeName& name_of(std::uint32_t name);

 private:
  struct Context {
    std::uint32_t parent = 0, name = 0, depth = 0;
    NameKind kind = NameKind::kRange;
  };
  struct Open {
    std::uint32_t name = 0, context = 0;
    std::int64_t begin_ns = 0;
    std::uint8_t domain = 0;
  };
  struct Change {
    std::int64_t time_ns = 0;
    std::uint32_t context = 0;
  };
  struct Thread {
    std::uint32_t self = 0, system = 0;
    bool ended = false;
    std::vector<Open> open;
    std::deque<Change> changes;
  };

  void thread(std::uint32_t self, std::uint32_t system) override;
  void begin_window(std::int64_t time_ns) override;
  void enter(std::int64_t time_ns, std::uint32_t name, std::uint8_t domain) override;
  void leave(std::int64_t time_ns, std::uint8_t domain) override;
  void end() override;

  const Thread* thread_of(std::uint32_t number) const;
  void change(Thread& thread, std::int64_t time_ns);
  void report(const Thread& thread, const Open& range, std::int64_t end_ns) const;
  std::uint32_t inner(std::uint32_t around, std::uint32_t name);
  std::uint32_t context(std::uint32_t parent, std::uint32_t name, NameKind kind);

  RangeLog* const log_;
  std::unordered_map<std::uint32_t, Thread> threads_;        // by self
  std::unordered_map<std::uint32_t, std::uint32_t> system_;  // to self
  Thread* current_ = nullptr;
  const Ended* ended_ = nullptr;
  std::deque<std::int64_t> windows_;  // when they opened
  std::vector<Context> contexts_ = {{}};
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;  // by parent and name
  std::unordered_map<std::uint32_t, RangeName> names_;
  std::unordered_map<std::uint32_t, Place> calls_, earlier_calls_;
};

}  // namespace purlin::profile::capture
