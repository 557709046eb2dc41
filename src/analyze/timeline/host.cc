// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/host.h"

#include "model/profile/copy_kind.h"

#include <algorithm>
#include <string_view>

namespace purlin::analyze {
namespace {

// False where it was merged into the interval before it.
template <class Record>
bool add(NamedIntervals& list, const Record& record) {
  const Interval interval = interval_of(record);
  const bool apart = list.empty() || interval.begin > list.back().interval.end;
  if (apart) list.push_back({interval, record.name, -1});
  NamedInterval& last = list.back();
  const bool nested = !apart && interval.begin < last.interval.end;
  last.interval.end = std::max(last.interval.end, interval.end);
  if (interval.length() > last.longest_ns) {
    last.longest_ns = interval.length();
    last.name = record.name;
  }
  return !nested;
}

}  // namespace

bool is_host_wait(CallKind kind, std::string_view call) {
  const auto has = [&](std::string_view part) { return call.find(part) != std::string_view::npos; };
  if (kind == CallKind::kSync) return !has("Query") && !has("WaitEvent");
  const bool known = call.starts_with("cudaMemcpy") || call.starts_with("cuMemcpy") ||
                     call.starts_with("hipMemcpy");
  return kind == CallKind::kCopy && known && !has("Async") && !has("DtoD");
}

bool waits_for_device(const Timeline& timeline, const Call& call) {
  return is_host_wait(call.kind, call.name < timeline.names.size()
                                     ? std::string_view(timeline.names[call.name])
                                     : std::string_view());
}

bool allocates_outside_of_streams(const Timeline& timeline, const Call& call) {
  if (call.kind != CallKind::kAllocation) return false;
  const std::string_view name =
      call.name < timeline.names.size() ? std::string_view(timeline.names[call.name]) : "";
  return name.find("Async") == std::string_view::npos;  // cudaMallocAsync, hipFreeAsync, …
}

bool knows_calls(const Timeline& timeline) {
  const auto is_timed = [](const Call& call) {
    return call.kind != CallKind::kLaunch || call.duration_ns > 0;
  };
  // Where launches have a time only, the calls next to them are those that wait, and no others.
  const auto is_untimed = [](const Call& call) {
    return call.kind == CallKind::kLaunch && call.duration_ns == 0 && call.thread == kNone;
  };
  return std::any_of(timeline.calls.begin(), timeline.calls.end(), is_timed) &&
         std::none_of(timeline.calls.begin(), timeline.calls.end(), is_untimed);
}

bool knows_waits(const Timeline& timeline) {
  return std::any_of(timeline.calls.begin(), timeline.calls.end(), [](const Call& call) {
    return call.kind == CallKind::kSync || call.kind == CallKind::kCopy;
  });
}

std::vector<bool> waiting_copies(const Profile& profile) {
  const Timeline& timeline = profile.timeline;
  std::vector<bool> out(timeline.calls.size());
  for (const Activity& activity : timeline.activities) {
    if (activity.kind != ActivityKind::kCopy || activity.row >= profile.copies.size() ||
        activity.call >= timeline.calls.size())
      continue;
    const std::string& kind = profile.copies[activity.row].kind;
    if (copy_direction(kind) == "d2h" && copy_memory(kind) == "pageable" &&
        end_of(timeline.calls[activity.call]) >= end_of(activity))
      out[activity.call] = true;
  }
  return out;
}

HostFacts::HostFacts(const Timeline& timeline, const std::vector<bool>& copies) {
  // The same for each name of a kind: asked once.
  std::vector<signed char> waits(timeline.names.size() * 2, -1);
  for (std::size_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    if (call.kind != CallKind::kSync && call.kind != CallKind::kCopy) continue;
    if (i < copies.size() && copies[i]) {
      // It waits, though its name has "Async".
    } else if (call.name < timeline.names.size()) {
      signed char& known = waits[call.name * 2 + (call.kind == CallKind::kSync ? 1 : 0)];
      if (known < 0) known = waits_for_device(timeline, call) ? 1 : 0;
      if (known == 0) continue;
    } else if (!waits_for_device(timeline, call)) {
      continue;
    }
    if (add(threads_[thread_key(call.process, call.thread)].waiting, call)) syncs_ += 1;
    add(processes_[call.process].waiting, call);
  }
  for (const Range& range : timeline.ranges) {
    if (range.kind != RangeKind::kDataLoader && range.kind != RangeKind::kProfiler) continue;
    const bool loads = range.kind == RangeKind::kDataLoader;
    HostWaits& thread = threads_[thread_key(range.process, range.thread)];
    HostWaits& process = processes_[range.process];
    add(loads ? thread.loading : thread.profiler, range);
    add(loads ? process.loading : process.profiler, range);
  }
  find_between(timeline);
}

void HostFacts::find_between(const Timeline& timeline) {
  std::unordered_map<std::uint32_t, Interval> recorded;
  std::uint32_t before = kNone;  // the process of the last event
  Interval* of_process = nullptr;
  const auto include = [&](const auto& events) {
    for (const auto& event : events) {
      const Interval one = interval_of(event);
      if (of_process == nullptr || event.process != before) {
        before = event.process;
        of_process = &recorded.try_emplace(before, one).first->second;
      }
      *of_process = {std::min(of_process->begin, one.begin), std::max(of_process->end, one.end)};
    }
  };
  include(timeline.activities);
  include(timeline.calls);
  include(timeline.ops);
  include(timeline.ranges);
  std::vector<Interval> all;
  for (const auto& [process, interval] : recorded) all.push_back(interval);
  std::sort(all.begin(), all.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].begin > all[i - 1].end) between_.push_back({{all[i - 1].end, all[i].begin}, kNone});
    all[i].end = std::max(all[i].end, all[i - 1].end);
  }
}

const HostWaits& HostFacts::thread(std::uint32_t process, std::uint32_t thread) const {
  const auto found = threads_.find(thread_key(process, thread));
  return found == threads_.end() ? none_ : found->second;
}

const HostWaits& HostFacts::process(std::uint32_t process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? none_ : found->second;
}

}  // namespace purlin::analyze
