// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/link.h"

#include "profile/import/chrome/rows.h"
#include "profile/ops/graph_captures.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

namespace purlin::profile {
namespace {

// Sorts records by a small key; large records move once.
template <class Record, class Key>
void sort_records(std::vector<Record>& records, Key key) {
  const auto less = [&](const Record& a, const Record& b) { return key(a) < key(b); };
  if (std::is_sorted(records.begin(), records.end(), less)) return;
  std::vector<std::pair<decltype(key(records[0])), std::uint32_t>> order;
  order.reserve(records.size());
  for (std::uint32_t i = 0; i < records.size(); ++i) order.emplace_back(key(records[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<Record> sorted;
  sorted.reserve(records.size());
  for (const auto& [unused, from] : order) sorted.push_back(std::move(records[from]));
  records = std::move(sorted);
}

std::int64_t end_of(const Op& op) { return op.start_ns + op.duration_ns; }

// Ops and calls in the order of time, with the ops that are open on each thread.
class Nesting {
 public:
  explicit Nesting(Records& records) : ops_(records.ops), calls_(records.calls) {}

  void run() {
    std::size_t op = 0, call = 0;
    while (op < ops_.size() || call < calls_.size()) {
      // An op that starts with a call encloses it.
      const bool take_op = call >= calls_.size() ||
                           (op < ops_.size() && ops_[op].op.start_ns <= calls_[call].call.start_ns);
      if (take_op) {
        Op& entered = ops_[op].op;
        std::vector<std::uint32_t>& open = open_on(entered.process, entered.thread);
        entered.parent = innermost(open, entered.start_ns);
        open.push_back(static_cast<std::uint32_t>(op++));
      } else {
        Call& made = calls_[call++].call;
        made.op = innermost(open_on(made.process, made.thread), made.start_ns);
      }
    }
  }

 private:
  std::vector<std::uint32_t>& open_on(std::uint32_t process, std::uint32_t thread) {
    const std::uint64_t key = thread_key(process, thread);
    if (key == last_key_ && last_ != kNone) return stacks_[last_];
    const auto next = static_cast<std::uint32_t>(stacks_.size());
    std::uint32_t at = ids_.find_or_add(key * 0x9E3779B97F4A7C15ull, next);
    if (at == IdTable::kAbsent) {
      at = next;
      stacks_.emplace_back();
    }
    last_key_ = key;
    last_ = at;
    return stacks_[at];
  }
  std::uint32_t innermost(std::vector<std::uint32_t>& open, std::int64_t now) {
    while (!open.empty() && end_of(ops_[open.back()].op) <= now) open.pop_back();
    return open.empty() ? kNone : open.back();
  }

  std::vector<OpRecord>& ops_;
  std::vector<CallRecord>& calls_;
  std::vector<std::vector<std::uint32_t>> stacks_;
  IdTable ids_;
  std::uint64_t last_key_ = 0;
  std::uint32_t last_ = kNone;
};

// Ops by PyTorch's "External id". Built where it is asked for: in most traces the clock says all.
class OpsById {
 public:
  explicit OpsById(const std::vector<OpRecord>& ops) : ops_(ops) {}
  // The last of that id that starts by `time`, on any process; kNone.
  std::uint32_t find(std::uint64_t id, std::int64_t time) {
    if (!built_) build();
    const auto begin =
        std::lower_bound(by_id_.begin(), by_id_.end(), std::make_pair(id, std::uint32_t{0}));
    const auto end = std::upper_bound(begin, by_id_.end(), std::make_pair(id, kNone));
    const auto behind = std::partition_point(
        begin, end, [&](const auto& entry) { return ops_[entry.second].op.start_ns <= time; });
    return behind == begin ? kNone : std::prev(behind)->second;
  }

 private:
  void build() {
    built_ = true;
    for (std::uint32_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].external != kNoId) by_id_.emplace_back(ops_[i].external, i);
    std::sort(by_id_.begin(), by_id_.end());
  }
  const std::vector<OpRecord>& ops_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_id_;
  bool built_ = false;
};

bool is_ancestor(const std::vector<OpRecord>& ops, std::uint32_t ancestor, std::uint32_t of) {
  constexpr int kDeepest = 256;
  for (int i = 0; of != kNone && i < kDeepest; ++i, of = ops[of].op.parent)
    if (of == ancestor) return true;
  return false;
}

// Where times are whole microseconds, a call can seem to start as its op ends: then the id that
// PyTorch wrote decides, if its op was open at the time.
void mend_calls(Records& records, OpsById& by_id) {
  constexpr std::int64_t kRounding = 1000;
  for (CallRecord& record : records.calls) {
    Call& call = record.call;
    if (record.external == kNoId) continue;
    if (call.op != kNone && records.ops[call.op].external == record.external) continue;
    const std::uint32_t named = by_id.find(record.external, call.start_ns);
    if (named == kNone) continue;
    const Op& op = records.ops[named].op;
    const bool open = end_of(op) + kRounding >= call.start_ns && op.process == call.process;
    if (open && (call.op == kNone || !is_ancestor(records.ops, named, call.op))) call.op = named;
  }
}

// Calls by correlation id.
class CallsById {
 public:
  explicit CallsById(const std::vector<CallRecord>& calls)
      : calls_(calls), taken_(calls.size(), false) {
    by_id_.reserve(calls.size());
    for (std::uint32_t i = 0; i < calls.size(); ++i)
      if (calls[i].correlation != kNoId) by_id_.emplace_back(calls[i].correlation, i);
    if (!std::is_sorted(by_id_.begin(), by_id_.end())) std::sort(by_id_.begin(), by_id_.end());
  }
  // Of those with the id, which should be one: what does such work and was called last before the
  // work began. Where traces of several processes were merged, their calls have the same ids: a
  // call that no work has taken yet comes first.
  std::uint32_t find(const DeviceRecord& work) {
    if (work.correlation == kNoId) return kNone;
    const auto begin = by_id_.begin() + static_cast<std::ptrdiff_t>(first(work.correlation));
    if (begin == by_id_.end() || begin->first != work.correlation) return kNone;
    const auto end = std::upper_bound(begin, by_id_.end(), std::make_pair(work.correlation, kNone));
    const auto behind = std::partition_point(begin, end, [&](const auto& entry) {
      return calls_[entry.second].call.start_ns <= work.activity.start_ns;
    });
    constexpr std::ptrdiff_t kMaxLookedAt = 64;
    const auto stop = behind - std::min(kMaxLookedAt, behind - begin);
    std::uint32_t found = kNone;
    for (auto at = behind; at != stop;) {
      const std::uint32_t call = (--at)->second;
      const CallKind kind = calls_[call].call.kind;
      if (!fits(kind, work.activity.kind)) continue;
      if (found == kNone) found = call;
      if (kind != CallKind::kGraphLaunch && taken_[call]) continue;
      taken_[call] = true;
      return call;
    }
    if (found != kNone) return found;
    return behind != begin ? std::prev(behind)->second : behind->second;
  }
  // The first call of that id that launches and copies nothing.
  std::uint32_t find_wait(std::uint64_t id) {
    for (auto at = by_id_.begin() + static_cast<std::ptrdiff_t>(first(id));
         at != by_id_.end() && at->first == id; ++at) {
      const CallKind kind = calls_[at->second].call.kind;
      if (kind == CallKind::kSync || kind == CallKind::kOther) return at->second;
    }
    return kNone;
  }

 private:
  static bool fits(CallKind call, ActivityKind work) {
    if (call == CallKind::kGraphLaunch) return true;
    return call == (work == ActivityKind::kKernel ? CallKind::kLaunch : CallKind::kCopy);
  }
  std::size_t first(std::uint64_t id) {
    // Work comes in nearly the order of its calls: look near the last place before everywhere.
    constexpr std::size_t kNear = 64;
    auto begin = by_id_.begin(), end = by_id_.end();
    if (hint_ < by_id_.size() && by_id_[hint_].first < id)
      begin += static_cast<std::ptrdiff_t>(hint_);
    const std::size_t beyond = static_cast<std::size_t>(begin - by_id_.begin()) + kNear;
    if (beyond < by_id_.size() && by_id_[beyond].first >= id)
      end = by_id_.begin() + static_cast<std::ptrdiff_t>(beyond);
    const auto at = std::lower_bound(begin, end, std::make_pair(id, std::uint32_t{0}));
    hint_ = static_cast<std::size_t>(at - by_id_.begin());
    return hint_;
  }
  const std::vector<CallRecord>& calls_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_id_;
  std::vector<bool> taken_;  // by work, as calls_
  std::size_t hint_ = 0;
};

// The call, process and op of one piece of device work; the op is returned.
std::uint32_t bind(DeviceRecord& work, const Records& records, CallsById& calls, OpsById& ops,
                   LinkStats& stats) {
  Activity& activity = work.activity;
  if (records.host_is_amd && work.correlation == kNoId) work.correlation = work.external;
  activity.call = calls.find(work);
  if (activity.call != kNone) {
    const Call& call = records.calls[activity.call].call;
    activity.process = call.process;
    return call.op;
  }
  if (activity.kind == ActivityKind::kKernel) ++stats.kernels_without_call;
  if (work.external == kNoId || work.external == work.correlation) return kNone;
  const std::uint32_t op = ops.find(work.external, activity.start_ns);
  if (op != kNone) activity.process = records.ops[op].op.process;
  return op;
}

// Launching calls whose kernel is not there. The driver's call inside the runtime's launches the
// same kernel and has no other.
void count_lost(const Timeline& timeline, LinkStats& stats) {
  std::vector<bool> has_work(timeline.calls.size(), false);
  for (const Activity& activity : timeline.activities)
    if (activity.kind == ActivityKind::kKernel && activity.call != kNone)
      has_work[activity.call] = true;
  struct Outer {
    std::int64_t end = std::numeric_limits<std::int64_t>::min();
    bool lost = false;
  };
  std::unordered_map<std::uint64_t, Outer> threads;  // the last launch of each
  for (std::size_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    if (call.kind != CallKind::kLaunch) continue;
    Outer& outer = threads[thread_key(call.process, call.thread)];
    if (call.start_ns >= outer.end) {
      ++stats.launches;
      outer = {call.start_ns + call.duration_ns, !has_work[i]};
      if (outer.lost) ++stats.launches_without_work;
    } else if (outer.lost && has_work[i]) {
      outer.lost = false;
      --stats.launches_without_work;
    }
  }
}

template <class Item>
void shift(std::vector<Item>& items, std::int64_t by) {
  for (Item& item : items) item.start_ns += by;
}

}  // namespace

LinkStats link_trace(Records& records, const LinkOptions& options, Profile& profile) {
  LinkStats stats;
  sort_records(records.ops, [](const OpRecord& r) {
    return std::make_tuple(r.op.start_ns, -r.op.duration_ns, r.external);
  });
  sort_records(records.calls, [](const CallRecord& r) {
    return std::make_tuple(r.call.start_ns, -r.call.duration_ns);
  });
  Nesting(records).run();
  OpsById ops_by_id(records.ops);
  mend_calls(records, ops_by_id);

  const auto when = [](const DeviceRecord& r) {
    return std::make_tuple(r.activity.device, r.activity.start_ns, r.activity.stream);
  };
  for (std::vector<DeviceRecord>* work : {&records.kernels, &records.copies})
    for (DeviceRecord& record : *work)
      if (record.activity.device < options.device.size())
        record.activity.device = options.device[record.activity.device];
  sort_records(records.kernels, when);
  sort_records(records.copies, when);

  RowBuilder rows(records, options, stats);
  {
    CallsById calls(records.calls);
    for (DeviceRecord& record : records.kernels)
      rows.add(record, bind(record, records, calls, ops_by_id, stats));
    for (DeviceRecord& record : records.copies) bind(record, records, calls, ops_by_id, stats);
    for (const WaitRecord& wait : records.waits) {
      const std::uint32_t call = calls.find_wait(wait.correlation);
      if (call == kNone) continue;
      records.calls[call].call.awaits = wait.awaits;
      records.calls[call].call.holds = wait.holds;
    }
  }
  rows.add_overflow();
  rows.add_counters();
  profile.kernels = rows.take();
  profile.copies = std::move(records.copy_rows);
  for (CopyRow& row : profile.copies)
    if (static_cast<std::size_t>(row.device) < options.device.size())
      row.device = options.device[static_cast<std::size_t>(row.device)];
  profile.processes = std::move(records.processes);

  Timeline& timeline = profile.timeline;
  timeline.activities.reserve(records.kernels.size() + records.copies.size());
  for (std::vector<DeviceRecord>* work : {&records.kernels, &records.copies}) {
    for (const DeviceRecord& record : *work) timeline.activities.push_back(record.activity);
    std::vector<DeviceRecord>().swap(*work);
  }
  timeline.calls.reserve(records.calls.size());
  for (const CallRecord& record : records.calls) timeline.calls.push_back(record.call);
  std::vector<CallRecord>().swap(records.calls);
  timeline.ops.reserve(records.ops.size());
  for (const OpRecord& record : records.ops) timeline.ops.push_back(record.op);
  std::vector<OpRecord>().swap(records.ops);
  timeline.ranges = std::move(records.ranges);
  timeline.names = records.names.take();
  timeline.left_out = records.left_out_kernels + records.left_out_copies;
  shift(timeline.activities, options.base_ns);
  shift(timeline.calls, options.base_ns);
  shift(timeline.ops, options.base_ns);
  shift(timeline.ranges, options.base_ns);
  if (records.window_begin_ns <= records.window_end_ns) {
    timeline.begin_ns = std::min(records.window_begin_ns, records.first_ns) + options.base_ns;
    timeline.end_ns = std::max(records.window_end_ns, records.last_ns) + options.base_ns;
  }
  sort_timeline(timeline);
  stats.launches_captured = set_captured_apart(timeline);
  count_lost(timeline, stats);
  return stats;
}

}  // namespace purlin::profile
