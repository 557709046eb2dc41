// SPDX-License-Identifier: Apache-2.0
// Calls of the host that wait for a device: synchronisations, copies to pageable memory, frees,
// and launches into a full queue. A profile does not say what a call waited for. It is taken to be
// the work, launched before the call, that ended last before the call did.
#include "analyze/replay/draft.h"
#include "analyze/timeline/host.h"
#include "model/profile/copy_kind.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::int64_t kAfterReturn = 2'000;  // ns that clocks may differ by
constexpr std::int64_t kShortWait = 20'000;   // ns: a wait below it need not be explained
constexpr std::int64_t kBlocked = 20'000;     // ns that a launch takes only into a full queue
constexpr std::size_t kQueue = 900;           // launches that wait in a full queue, at least

enum class WaitFor { kNothing, kAny, kAll };  // the work that ended last; of every stream

class WaitDraft {
 public:
  explicit WaitDraft(Draft& draft) : draft_(draft), timeline_(draft.timeline) {
    kinds_.resize(timeline_.names.size());
    for (std::size_t i = 0; i < kinds_.size(); ++i) kinds_[i] = by_name(timeline_.names[i]);
  }

  void run() {
    gather_streams();
    gather_copies();
    for (std::uint32_t i = 0; i < timeline_.calls.size(); ++i) {
      if (draft_.of_call(i).begin == kNone) continue;
      const WaitFor kind = kind_of(i);
      if (kind != WaitFor::kNothing) {
        wait(i, kind);
      } else if (timeline_.calls[i].kind == CallKind::kLaunch) {
        full_queue(i);
      }
    }
  }

 private:
  struct StreamEnds {  // work of the window, in order
    std::uint32_t process = 0, stream = 0;
    std::vector<std::uint32_t> work;
  };

  static WaitFor by_name(std::string_view name) {
    const auto has = [&](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    };
    const bool free = has("Free") && !has("Async") && !has("FreeArray");
    return has("DeviceSync") || has("CtxSync") || has("ContextSync") || free ? WaitFor::kAll
                                                                             : WaitFor::kAny;
  }

  WaitFor kind_of(std::uint32_t index) const {
    const Call& call = timeline_.calls[index];
    const WaitFor named = call.name < kinds_.size() ? kinds_[call.name] : WaitFor::kAny;
    if (call.kind == CallKind::kAllocation)
      return named == WaitFor::kAll ? WaitFor::kAll : WaitFor::kNothing;
    return waits_for_device(timeline_, call) ? named : WaitFor::kNothing;
  }

  void gather_streams() {
    for (const StreamWork& stream : draft_.streams.all()) {
      StreamEnds out{stream.process, stream.stream, {}};
      for (const std::uint32_t index : stream.activities)
        if (draft_.graph.activities[index].begin != kNone) out.work.push_back(index);
      if (!out.work.empty()) streams_.push_back(std::move(out));
    }
  }

  // A copy to pageable memory returns when it has ended, also where its name has "Async".
  void gather_copies() {
    for (std::uint32_t i = 0; i < timeline_.activities.size(); ++i) {
      const Activity& activity = timeline_.activities[i];
      if (activity.kind != ActivityKind::kCopy || draft_.graph.activities[i].begin == kNone)
        continue;
      const NodePair call = draft_.of_call(activity.call);
      if (call.begin == kNone || activity.row >= draft_.profile.copies.size()) continue;
      if (copy_direction(draft_.profile.copies[activity.row].kind) == "d2h" &&
          end_of(activity) <= draft_.times[call.end])
        draft_.add_edge(draft_.graph.activities[i].end, call.end, EdgeKind::kWait);
    }
  }

  // Of a stream: what was launched before the call and ended last before it returned.
  std::uint32_t waited_for(const StreamEnds& stream, const Call& call) const {
    const std::int64_t by = end_of(call) + kAfterReturn;
    auto next = std::partition_point(stream.work.begin(), stream.work.end(), [&](std::uint32_t i) {
      return end_of(timeline_.activities[i]) <= by;
    });
    while (next != stream.work.begin()) {
      const std::uint32_t index = *--next;
      if (draft_.launched(timeline_.activities[index]) <= begin_of(call)) return index;
      // What the call launched itself.
      const std::uint32_t from = timeline_.activities[index].call;
      if (from < timeline_.calls.size() &&
          draft_.of_call(from).begin == draft_.of_call(index_of(call)).begin)
        return index;
    }
    return kNone;
  }
  std::uint32_t index_of(const Call& call) const {
    return static_cast<std::uint32_t>(&call - timeline_.calls.data());
  }

  void wait(std::uint32_t index, WaitFor kind) {
    const Call& call = timeline_.calls[index];
    const NodePair nodes = draft_.of_call(index);
    draft_.graph.waits += 1;
    std::uint32_t last = kNone;
    std::int64_t latest = -kLatest;
    for (const StreamEnds& stream : streams_) {
      if (stream.process != call.process) continue;
      if (call.awaits != kNone && call.awaits != stream.stream) continue;
      const std::uint32_t work = waited_for(stream, call);
      if (work == kNone) continue;
      if (kind == WaitFor::kAll)
        draft_.add_edge(draft_.graph.activities[work].end, nodes.end, EdgeKind::kWait);
      if (end_of(timeline_.activities[work]) <= latest) continue;
      latest = end_of(timeline_.activities[work]);
      last = work;
    }
    if (kind == WaitFor::kAny && last != kNone)
      draft_.add_edge(draft_.graph.activities[last].end, nodes.end, EdgeKind::kWait);
    if (end_of(call) - begin_of(call) > kShortWait && end_of(call) - latest > kShortWait)
      draft_.graph.unrecovered += 1;
  }

  // A launch that took long while a thousand others waited: it went on when one of them began.
  void full_queue(std::uint32_t index) {
    const Call& call = timeline_.calls[index];
    if (end_of(call) - begin_of(call) < kBlocked) return;
    for (const StreamEnds& stream : streams_) {
      if (stream.process != call.process) continue;
      const auto begun = std::partition_point(
          stream.work.begin(), stream.work.end(),
          [&](std::uint32_t i) { return begin_of(timeline_.activities[i]) <= end_of(call); });
      const auto asked = std::partition_point(begun, stream.work.end(), [&](std::uint32_t i) {
        return draft_.launched(timeline_.activities[i]) < begin_of(call);
      });
      if (begun == stream.work.begin() || static_cast<std::size_t>(asked - begun) < kQueue)
        continue;
      draft_.add_edge(draft_.graph.activities[*(begun - 1)].begin, draft_.of_call(index).end,
                      EdgeKind::kQueueFull);
    }
  }

  Draft& draft_;
  const Timeline& timeline_;
  std::vector<WaitFor> kinds_;  // by name
  std::vector<StreamEnds> streams_;
};

}  // namespace

void draft_waits(Draft& draft) { WaitDraft(draft).run(); }

}  // namespace purlin::analyze
