// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/idle.h"

#include "analyze/kernel_name/kernel_name.h"
#include "base/text.h"

#include <string_view>

namespace purlin::analyze {
namespace {

std::size_t index_of(IdleCause cause) { return static_cast<std::size_t>(cause); }

// Records of one process in order of start.
template <class Record>
IntervalCoverage::Source records_of(const std::vector<Record>& records, std::uint32_t process) {
  return [&records, process, i = std::size_t{0}](Interval& interval) mutable {
    while (i < records.size() && records[i].process != process) ++i;
    if (i == records.size()) return false;
    interval = interval_of(records[i++]);
    return true;
  };
}

// The first that does not end before `at`.
NamedIntervals::const_iterator first_after(const NamedIntervals& list, std::int64_t at) {
  return std::partition_point(list.begin(), list.end(), [at](const NamedInterval& interval) {
    return interval.interval.end <= at;
  });
}

// The interval that covers `at`, or nullptr.
const NamedInterval* covering(const NamedIntervals& list, std::int64_t at) {
  const auto found = first_after(list, at);
  return found != list.end() && found->interval.begin <= at ? &*found : nullptr;
}

std::string duration_text(std::int64_t ns) { return format_ns(static_cast<double>(ns)); }

}  // namespace

IdleAttribution::IdleAttribution(const Profile& profile, const HostFacts& host,
                                 std::uint32_t process)
    : profile_(profile), host_(host), process_(process) {
  host_work_.emplace_back(records_of(profile.timeline.ops, process));
  host_work_.emplace_back(records_of(profile.timeline.calls, process));
  const std::vector<Call>& calls = profile.timeline.calls;
  for (std::uint32_t i = 0; i < calls.size(); ++i)
    if (calls[i].process == process && calls[i].kind == CallKind::kGraphLaunch)
      graph_launches_.push_back(i);
}

// A plain profile has graph launches and their nodes, and not which launched which. A launch that
// began while the device was idle is that of the node after it.
std::uint32_t IdleAttribution::graph_launch_in(const Interval& gap) const {
  const std::vector<Call>& calls = profile_.timeline.calls;
  const auto after =
      std::partition_point(graph_launches_.begin(), graph_launches_.end(),
                           [&](std::uint32_t call) { return calls[call].start_ns < gap.end; });
  if (after == graph_launches_.begin()) return kNone;
  const std::uint32_t last = *(after - 1);
  return calls[last].start_ns >= gap.begin ? last : kNone;
}

IdleAttribution::Plan IdleAttribution::plan(const Segment& gap) const {
  const Timeline& timeline = profile_.timeline;
  Plan plan;
  plan.host = gap.interval;
  plan.launch = {gap.interval.end, gap.interval.end};
  std::uint32_t process = process_;
  if (gap.next != Segment::kNowhere) {
    process = timeline.activities[gap.next].process;
    plan.call = timeline.activities[gap.next].call;
    if (plan.call >= timeline.calls.size()) plan.call = kNone;
    if (plan.call == kNone && timeline.activities[gap.next].graph != 0)
      plan.call = graph_launch_in(gap.interval);
  }
  if (plan.call == kNone) {
    plan.waits = &host_.process(process);
    return plan;
  }
  const Call& call = timeline.calls[plan.call];
  plan.waits = call.thread == kNone ? &host_.process(call.process)
                                    : &host_.thread(call.process, call.thread);
  plan.queued = end_of(call) <= gap.interval.begin;
  plan.blocking = waits_for_device(timeline, call);
  const std::int64_t begin = std::clamp(begin_of(call), gap.interval.begin, gap.interval.end);
  plan.host.end = plan.launch.begin = begin;
  return plan;
}

// Takes from what is left of the gap; returns how much.
std::int64_t IdleAttribution::take(const NamedIntervals& from) {
  std::int64_t taken = 0;
  if (from.empty() || left_.empty()) return taken;
  scratch_.clear();
  for (const Interval& piece : left_) {
    std::int64_t begin = piece.begin;
    for (auto i = first_after(from, begin); i != from.end() && i->interval.begin < piece.end; ++i) {
      const Interval cut = clip(i->interval, {begin, piece.end});
      if (cut.begin > begin) scratch_.push_back({begin, cut.begin});
      taken += cut.length();
      begin = cut.end;
    }
    if (begin < piece.end) scratch_.push_back({begin, piece.end});
  }
  left_.swap(scratch_);
  return taken;
}

IdleAttribution::Causes IdleAttribution::attribute(const Segment& gap) {
  Causes causes = {};
  const auto at = [&causes](IdleCause cause) -> std::int64_t& { return causes[index_of(cause)]; };
  const Plan plan = this->plan(gap);
  if (plan.queued) {
    at(IdleCause::kKernelToKernel) = gap.interval.length();
    return causes;
  }
  const HostWaits& waits = *plan.waits;
  // What a launch costs is the device's wait for a host that comes late: because it had waited for
  // the device, if it did so when the device went idle, else on its own account.
  const bool drained = plan.blocking || covering(waits.waiting, gap.interval.begin) != nullptr;
  at(drained ? IdleCause::kSynchronization : IdleCause::kHostLaunch) += plan.launch.length();
  if (plan.host.length() <= 0) return causes;
  left_.assign(1, plan.host);
  at(IdleCause::kOther) += take(host_.between());
  // The recording tool's own time is not tied to the thread that launches.
  at(IdleCause::kProfiler) += take(host_.process(process_).profiler);
  at(IdleCause::kDataStarvation) += take(waits.loading);
  at(IdleCause::kSynchronization) += take(waits.waiting);
  for (const Interval& piece : left_) {
    // After its wait for a device that has nothing left to do, the host has not launched yet.
    if (plan.call != kNone || drained) {
      at(IdleCause::kHostLaunch) += piece.length();
      continue;
    }
    sweep_layers(host_work_, piece, [&](Interval part, std::size_t layer) {
      at(layer < 2 ? IdleCause::kHostLaunch : IdleCause::kOther) += part.length();
    });
  }
  return causes;
}

std::string IdleAttribution::name_of(std::size_t activity) const {
  if (activity == Segment::kNowhere) return "";
  const Activity& record = profile_.timeline.activities[activity];
  if (record.kind == ActivityKind::kKernel)
    return record.row < profile_.kernels.size()
               ? describe_kernel(profile_.kernels[record.row].name).brief
               : "";
  return record.row < profile_.copies.size() ? profile_.copies[record.row].kind : "copy";
}

std::string IdleAttribution::evidence(const Segment& gap, IdleCause cause) const {
  const Timeline& timeline = profile_.timeline;
  const Plan plan = this->plan(gap);
  const auto name = [&](std::uint32_t index) -> std::string_view {
    return index < timeline.names.size() ? std::string_view(timeline.names[index]) : "";
  };
  const auto longest_of = [&](const NamedIntervals& list, std::string_view what) -> std::string {
    const NamedInterval* longest = nullptr;
    std::int64_t length = -1;
    for (auto i = first_after(list, gap.interval.begin);
         i != list.end() && i->interval.begin < gap.interval.end; ++i)
      if (const std::int64_t part = clip(i->interval, gap.interval).length(); part > length) {
        length = part;
        longest = &*i;
      }
    if (longest == nullptr) return "";
    return fmt::format("{}{} {}", what, name(longest->name), duration_text(length));
  };
  switch (cause) {
    case IdleCause::kProfiler:
      return longest_of(host_.process(process_).profiler, "");
    case IdleCause::kDataStarvation:
      return longest_of(plan.waits->loading, "");
    case IdleCause::kSynchronization:
      if (plan.blocking)
        return fmt::format("{} blocks the host", name(timeline.calls[plan.call].name));
      {
        std::string text = longest_of(plan.waits->waiting, "");
        if (plan.launch.length() > 0)
          text += fmt::format("{}{} {} until its work began", text.empty() ? "" : ", then ",
                              name(timeline.calls[plan.call].name),
                              duration_text(plan.launch.length()));
        return text;
      }
    case IdleCause::kKernelToKernel:
      return fmt::format("launched {} before the gap",
                         duration_text(gap.interval.begin - end_of(timeline.calls[plan.call])));
    case IdleCause::kHostLaunch:
      break;
    case IdleCause::kOther:
      return longest_of(host_.between(), "between recordings");
  }
  // The longest op that began in the gap, or that was under way around the launch.
  std::uint32_t longest = kNone;
  std::int64_t length = 0;
  const auto look_at = [&](std::uint32_t op) {
    const std::int64_t part = clip(interval_of(timeline.ops[op]), plan.host).length();
    if (part > length) {
      length = part;
      longest = op;
    }
  };
  const Interval host = plan.host;
  const auto begin = std::partition_point(timeline.ops.begin(), timeline.ops.end(),
                                          [&](const Op& op) { return begin_of(op) < host.begin; });
  constexpr int kEnough = 4096;  // of a gap's ops; the longest of these is evidence enough
  int seen = 0;
  for (auto op = begin; op != timeline.ops.end() && begin_of(*op) < host.end && seen < kEnough;
       ++op, ++seen)
    if (op->process == process_) look_at(static_cast<std::uint32_t>(op - timeline.ops.begin()));
  if (plan.call != kNone) {
    std::uint32_t op = timeline.calls[plan.call].op;
    for (int depth = 0; op < timeline.ops.size() && depth < 256; ++depth) {
      look_at(op);
      op = timeline.ops[op].parent;
    }
  }
  std::string text;
  if (plan.call != kNone)
    text = fmt::format("{} began {} after the device went idle",
                       name(timeline.calls[plan.call].name), duration_text(host.length()));
  if (longest != kNone)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name(timeline.ops[longest].name),
                        duration_text(length));
  return text;
}

Gap IdleAttribution::describe(const Segment& gap, const Causes& causes, int device) const {
  Gap out;
  out.device = device;
  out.start_ns = gap.interval.begin;
  out.duration_ns = gap.interval.length();
  const auto most = std::max_element(causes.begin(), causes.end()) - causes.begin();
  out.cause = static_cast<IdleCause>(most);
  out.before = name_of(gap.before);
  out.after = name_of(gap.next);
  out.evidence = evidence(gap, out.cause);
  return out;
}

}  // namespace purlin::analyze
