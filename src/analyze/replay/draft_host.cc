// SPDX-License-Identifier: Apache-2.0
// The host's part of the graph: calls of a thread one after another, with the host's own time
// between them, and the hand-over from one thread to another. A thread that stood still while
// another of its process made calls was waiting for it: autograd's worker begins after the forward
// pass, the main thread goes on after the worker.
#include "analyze/replay/draft.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::int64_t kStoodStill = 20'000;  // ns without an op or call: it may have waited
constexpr double kOwnShare = 0.5;             // of a pause with ops: the thread worked
constexpr std::size_t kManyThreads = 64;

struct HostThread {
  std::uint32_t last = kNone, before = kNone;  // outermost calls; the last one and that before
  std::int64_t busy_until = -kLatest;          // end of the outermost call under way
  std::vector<Interval> ops;                   // outermost, in order
  std::vector<std::int64_t> op_begins;         // of all
  std::size_t op = 0;                          // how far they are read
};

class HostDraft {
 public:
  explicit HostDraft(Draft& draft) : draft_(draft), timeline_(draft.timeline) {}

  void run() {
    find_window();
    read_ops();
    for (std::uint32_t i = 0; i < timeline_.calls.size(); ++i) add(i);
  }

 private:
  // Of each process: from the first call that launched work of the window to the window's end.
  void find_window() {
    const Interval window = draft_.graph.window;
    for (const Activity& activity : timeline_.activities) {
      if (begin_of(activity) < window.begin || begin_of(activity) >= window.end) continue;
      Interval& host = host_.try_emplace(activity.process, window).first->second;
      host.end = std::max(host.end, end_of(activity));
      if (activity.call < timeline_.calls.size())
        host.begin = std::min(host.begin, begin_of(timeline_.calls[activity.call]));
    }
  }

  void read_ops() {
    for (const Op& op : timeline_.ops) {
      HostThread& thread = threads_[thread_key(op.process, op.thread)];
      if (thread.ops.empty() || begin_of(op) >= thread.ops.back().end)
        thread.ops.push_back(interval_of(op));
      thread.op_begins.push_back(begin_of(op));
    }
  }

  void add(std::uint32_t index) {
    const Call& call = timeline_.calls[index];
    const auto host = host_.find(call.process);
    if (host == host_.end()) return;
    const std::uint64_t key = thread_key(call.process, call.thread);
    HostThread& thread = threads_[key];
    if (begin_of(call) < host->second.begin) {
      thread.busy_until = std::max(thread.busy_until, end_of(call));
      return;
    }
    if (begin_of(call) > host->second.end) return;
    if (thread.last != kNone && begin_of(call) < thread.busy_until) {
      draft_.graph.outer[index] = thread.last;
      return;
    }
    const NodePair nodes{draft_.add_node(begin_of(call)), draft_.add_node(end_of(call))};
    draft_.graph.calls[index] = nodes;
    follow(thread, key, call, nodes.begin);
    draft_.add_edge(nodes.begin, nodes.end, EdgeKind::kCall);
    draft_.edges.back().ops = ops_in(thread, interval_of(call));
    if (thread.last == kNone) members_[call.process].push_back(key);
    thread.before = thread.last;
    thread.last = index;
    thread.busy_until = end_of(call);
  }

  // The first call of a thread comes after the window's begin, or after a call before it.
  void follow(HostThread& thread, std::uint64_t key, const Call& call, std::uint32_t node) {
    std::uint32_t from = kNone;
    Interval pause{thread.busy_until, begin_of(call)};
    if (thread.last != kNone) {
      from = draft_.graph.calls[thread.last].end;
    } else {
      pause.begin = std::max(pause.begin, draft_.graph.window.begin);
      if (pause.begin >= pause.end) return;
      from = draft_.add_node(pause.begin);
    }
    const std::int64_t own = own_time(thread, pause);
    draft_.add_edge(from, node, EdgeKind::kHostTime);
    draft_.edges.back().ops = ops_in(thread, pause);
    if (pause.length() < kStoodStill) return;
    if (static_cast<double>(own) > kOwnShare * static_cast<double>(pause.length())) return;
    const std::uint32_t other = last_of_others(call.process, key, pause);
    if (other == kNone) return;
    draft_.edges.back().weight = static_cast<double>(own);
    draft_.add_edge(draft_.graph.calls[other].end, node, EdgeKind::kHandOver);
  }

  static float ops_in(const HostThread& thread, Interval pause) {
    const auto& begins = thread.op_begins;
    const auto from = std::lower_bound(begins.begin(), begins.end(), pause.begin);
    return static_cast<float>(std::lower_bound(from, begins.end(), pause.end) - from);
  }

  // The time in ops of the thread.
  static std::int64_t own_time(HostThread& thread, Interval pause) {
    while (thread.op < thread.ops.size() && thread.ops[thread.op].end <= pause.begin) ++thread.op;
    std::int64_t own = 0;
    for (std::size_t i = thread.op; i < thread.ops.size() && thread.ops[i].begin < pause.end; ++i)
      own += clip(thread.ops[i], pause).length();
    return own;
  }

  // The call of another thread of the process that ended last in the pause.
  std::uint32_t last_of_others(std::uint32_t process, std::uint64_t key, Interval pause) const {
    const auto members = members_.find(process);
    if (members == members_.end() || members->second.size() > kManyThreads) return kNone;
    std::uint32_t best = kNone;
    std::int64_t latest = pause.begin;
    for (const std::uint64_t other : members->second) {
      if (other == key) continue;
      const HostThread& thread = threads_.at(other);
      for (const std::uint32_t index : {thread.last, thread.before}) {
        if (index == kNone) continue;
        const std::int64_t end = end_of(timeline_.calls[index]);
        if (end > pause.end || end <= latest) continue;
        latest = end;
        best = index;
      }
    }
    return best;
  }

  Draft& draft_;
  const Timeline& timeline_;
  std::map<std::uint32_t, Interval> host_;  // by process
  std::unordered_map<std::uint64_t, HostThread> threads_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> members_;  // threads with calls
};

}  // namespace

void draft_host(Draft& draft) { HostDraft(draft).run(); }

}  // namespace purlin::analyze
