// SPDX-License-Identifier: Apache-2.0
// The devices' part of the graph: launches, the order of each stream, and events between streams.
// A profile holds no event's identity, so events are inferred: from cudaStreamWaitEvent and
// cudaEventRecord on the host, and from work that begins when that of another stream ends. Some
// traces name the streams of a wait.
#include "analyze/replay/draft.h"
#include "analyze/timeline/host.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::int64_t kHeldUp = 5'000;     // ns after launch and stream allow it: something else
constexpr std::int64_t kJustAfter = 8'000;  // ns from the end of what it waited for

class DeviceDraft {
 public:
  explicit DeviceDraft(Draft& draft) : draft_(draft), timeline_(draft.timeline) {
    stream_of_.assign(timeline_.activities.size(), kNone);
  }

  void run() {
    const auto& streams = draft_.streams.all();
    for (std::uint32_t s = 0; s < streams.size(); ++s) order(s, streams[s]);
    by_end();
    recorded_events();
    for (std::uint32_t s = 0; s < streams.size(); ++s) inferred_events(streams[s]);
  }

 private:
  bool inside(const Activity& activity) const {
    return begin_of(activity) >= draft_.graph.window.begin &&
           begin_of(activity) < draft_.graph.window.end;
  }
  const Activity& at(std::uint32_t activity) const { return timeline_.activities[activity]; }

  void order(std::uint32_t s, const StreamWork& stream) {
    std::uint32_t last = kNone;
    std::int64_t before = -kLatest;  // end of what comes before the window
    for (const std::uint32_t index : stream.activities) {
      const Activity& activity = at(index);
      if (!inside(activity)) {
        before = end_of(activity);
        continue;
      }
      stream_of_[index] = s;
      draft_.graph.work += 1;
      NodePair& nodes = draft_.graph.activities[index];
      nodes = {draft_.add_node(begin_of(activity)), draft_.add_node(end_of(activity))};
      const bool node_of_graph = is_graph_node(timeline_, activity);
      const NodePair call = draft_.of_call(activity.call);
      if (call.begin == kNone) {
        draft_.graph.unlinked += 1;
      } else {
        if (begin_of(activity) < draft_.times[call.begin]) draft_.graph.early += 1;
        draft_.add_edge(call.begin, nodes.begin,
                        node_of_graph ? EdgeKind::kGraphLaunch : EdgeKind::kLaunch);
      }
      if (last == kNone && before > draft_.launched(activity))
        draft_.add_edge(0, nodes.begin, EdgeKind::kStart);
      if (last != kNone) {
        const bool same_graph = node_of_graph && activity.call == at(last).call;
        draft_.add_edge(draft_.graph.activities[last].end, nodes.begin,
                        same_graph ? EdgeKind::kGraphOrder : EdgeKind::kStream);
      }
      draft_.add_edge(nodes.begin, nodes.end, EdgeKind::kRun);
      last = index;
    }
  }

  // Work of each process on each device, by end.
  void by_end() {
    for (std::uint32_t i = 0; i < stream_of_.size(); ++i)
      if (stream_of_[i] != kNone) ends_[at(i).process].push_back(i);
    for (auto& [process, list] : ends_)
      std::sort(list.begin(), list.end(),
                [&](std::uint32_t a, std::uint32_t b) { return end_of(at(a)) < end_of(at(b)); });
  }

  // The work of another stream that ended last in [oldest, by] and was asked for before `asked`.
  std::uint32_t last_ended(std::uint32_t index, std::int64_t by, std::int64_t asked,
                           std::int64_t oldest, std::uint32_t of_stream = kNone) const {
    const auto list = ends_.find(at(index).process);
    if (list == ends_.end()) return kNone;
    auto next = std::partition_point(list->second.begin(), list->second.end(),
                                     [&](std::uint32_t i) { return end_of(at(i)) <= by; });
    for (int looked = 0; next != list->second.begin() && looked < 64; ++looked) {
      const std::uint32_t other = *--next;
      if (end_of(at(other)) < oldest) return kNone;
      if (stream_of_[other] == stream_of_[index] || at(other).device != at(index).device) continue;
      if (of_stream != kNone && at(other).stream != of_stream) continue;
      if (draft_.launched(at(other)) < asked) return other;
    }
    return kNone;
  }

  void add_event(std::uint32_t from, std::uint32_t to) {
    if (from != kNone)
      draft_.add_edge(draft_.graph.activities[from].end, draft_.graph.activities[to].begin,
                      EdgeKind::kEvent);
  }

  struct StreamWait {
    std::int64_t record = 0;       // when the event was recorded
    std::uint32_t awaits = kNone;  // the stream of the event, where it is known
  };
  // What is launched next into the stream that cudaStreamWaitEvent names, or else by its thread,
  // waits for what had been launched when the event was recorded, where that had ended.
  void recorded_events() {
    std::vector<std::uint32_t> first(timeline_.calls.size(), kNone);
    for (std::uint32_t i = 0; i < stream_of_.size(); ++i)
      if (stream_of_[i] != kNone && at(i).call < first.size() && first[at(i).call] == kNone)
        first[at(i).call] = i;
    std::unordered_map<std::uint32_t, std::int64_t> recorded;  // process -> last record
    std::unordered_map<std::uint64_t, StreamWait> by_thread, by_stream;
    const auto end_wait = [&](auto& waits, std::uint64_t key, std::uint32_t work) {
      const auto wait = waits.find(key);
      if (wait == waits.end()) return;
      add_event(
          last_ended(work, begin_of(at(work)), wait->second.record, -kLatest, wait->second.awaits),
          work);
      waits.erase(wait);
    };
    const auto key_of = [](std::uint32_t process, std::uint32_t other) {
      return std::uint64_t{process} << 32 | other;
    };
    for (std::uint32_t c = 0; c < timeline_.calls.size(); ++c) {
      const Call& call = timeline_.calls[c];
      const std::string_view name =
          call.name < timeline_.names.size() ? timeline_.names[call.name] : std::string_view();
      if (name.find("EventRecord") != std::string_view::npos) {
        recorded[call.process] = begin_of(call);
      } else if (name.find("StreamWaitEvent") != std::string_view::npos) {
        const auto record = recorded.find(call.process);
        const StreamWait wait{record != recorded.end() ? record->second : begin_of(call),
                              call.awaits};
        (call.holds != kNone ? by_stream[key_of(call.process, call.holds)]
                             : by_thread[key_of(call.process, call.thread)]) = wait;
      } else if (first[c] != kNone) {
        end_wait(by_thread, key_of(call.process, call.thread), first[c]);
        end_wait(by_stream, key_of(call.process, at(first[c]).stream), first[c]);
      }
    }
  }

  // Neither the stream nor the launch held it up, and it begins when work of another stream ends.
  void inferred_events(const StreamWork& stream) {
    std::int64_t free = -kLatest;
    for (const std::uint32_t index : stream.activities) {
      if (stream_of_[index] == kNone) continue;
      const Activity& activity = at(index);
      const std::int64_t begin = begin_of(activity);
      const std::int64_t possible = std::max(free, draft_.launched(activity) + kHeldUp);
      free = end_of(activity);
      if (activity.call >= timeline_.calls.size() || begin - possible < kHeldUp) continue;
      add_event(last_ended(index, begin, draft_.launched(activity),
                           std::max(possible, begin - kJustAfter)),
                index);
    }
  }

  Draft& draft_;
  const Timeline& timeline_;
  std::vector<std::uint32_t> stream_of_;  // of each activity of the window
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> ends_;
};

}  // namespace

void draft_device(Draft& draft) { DeviceDraft(draft).run(); }

}  // namespace purlin::analyze
