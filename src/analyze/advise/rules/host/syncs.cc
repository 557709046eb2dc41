// SPDX-License-Identifier: Apache-2.0
// The host waits for the device, and launches the next work only then.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/walk.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/streams.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr double kSynchronised = 0.02;  // share of the unit
constexpr double kSmallCopy = 64;       // bytes
// Few programs need what they wait for several times in a step: most such waits are of logging.
constexpr double kManyWaits = 3;
constexpr Interval3 kMost = {0, 0.8, 1};
// Small kernels for each value that the host no longer reads, at worst, and their time, ns.
constexpr double kInstead = 2, kSmallKernel = 2'000, kMostInstead = 0.15;

// Copies to the host, several in each step: the host stands still until each has ended.
std::vector<std::uint32_t> many_copies(const HostView& view) {
  const Profile& profile = *view.facts.profile;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < profile.timeline.activities.size(); ++i) {
    const Activity& activity = profile.timeline.activities[i];
    if (activity.kind == ActivityKind::kCopy && activity.row < profile.copies.size() &&
        copy_direction(profile.copies[activity.row].kind) == "d2h" &&
        copy_memory(profile.copies[activity.row].kind) != "pinned")
      out.push_back(i);
  }
  const bool many =
      view.unit.kind == "step" && static_cast<double>(out.size()) * view.share >= kManyWaits;
  return many ? out : std::vector<std::uint32_t>();
}

// Ops that only a read of the host needs, where they come right before it: a test of all values.
constexpr std::string_view kDeciding[] = {"aten::any", "aten::all", "aten::equal",
                                          "aten::count_nonzero"};
constexpr std::string_view kTesting[] = {"aten::isnan",      "aten::isinf", "aten::isfinite",
                                         "aten::ne",         "aten::eq",    "aten::abs",
                                         "aten::logical_not"};
template <std::size_t kCount>
bool one_of(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr int kMostOpsAbove = 64;

// Ops that read a value of the device: they go with the wait, and the host's time in them.
constexpr std::string_view kReading[] = {
    "aten::item",  "aten::_local_scalar_dense", "aten::to",     "aten::_to_copy",
    "aten::copy_", "aten::is_nonzero",          "aten::nonzero"};
const Op* outermost_reading(const Timeline& timeline, std::uint32_t call) {
  const Op* out = nullptr;
  int seen = 0;  // records of other tools may go in circles
  if (call >= timeline.calls.size()) return out;
  for (std::uint32_t op = timeline.calls[call].op;
       op < timeline.ops.size() && ++seen < kMostOpsAbove; op = timeline.ops[op].parent)
    if (one_of(kReading, name_in(timeline, timeline.ops[op].name))) out = &timeline.ops[op];
  return out;
}
std::int64_t begin_of_outermost(const Timeline& timeline, std::uint32_t op) {
  std::int64_t begin = begin_of(timeline.ops[op]);
  int seen = 0;
  for (; op < timeline.ops.size() && ++seen < kMostOpsAbove; op = timeline.ops[op].parent)
    begin = begin_of(timeline.ops[op]);
  return begin;
}

// What the host reads: the time of the ops, and the device's work that makes what is read.
struct Reads {
  std::vector<Interval> when;
  std::vector<std::uint32_t> work;
};
class FindReads {
 public:
  explicit FindReads(const Profile& profile) : profile_(profile), timeline_(profile.timeline) {}

  Reads run(const std::vector<std::uint32_t>& calls) {
    for (const std::uint32_t i : calls)
      if (const Op* op = outermost_reading(timeline_, i)) found_[begin_of(*op)] = end_of(*op);
    const Streams streams(timeline_);
    for (const StreamWork& stream : streams.all())
      for (std::size_t i = 0; i < stream.activities.size(); ++i) look_at(stream.activities, i);
    for (const auto& [begin, end] : found_)
      if (out_.when.empty() || out_.when.back().end <= begin) out_.when.push_back({begin, end});
    return std::move(out_);
  }

 private:
  void look_at(std::span<const std::uint32_t> work, std::size_t at) {
    const Activity& one = timeline_.activities[work[at]];
    const Op* op = outermost_reading(timeline_, one.call);
    if (op == nullptr || !found_.contains(begin_of(*op))) return;
    const bool copied = one.kind == ActivityKind::kCopy && one.row < profile_.copies.size();
    const bool to_host = copied && copy_direction(profile_.copies[one.row].kind) == "d2h";
    if (one.kind == ActivityKind::kKernel || to_host) out_.work.push_back(work[at]);
    if (!to_host || static_cast<double>(one.bytes) > kSmallCopy) return;
    const std::int64_t end = end_of(*op);
    std::int64_t begin = begin_of(*op);
    bool decided = false;
    for (; at > 0; --at) {
      const Activity& before = timeline_.activities[work[at - 1]];
      if (before.kind == ActivityKind::kSet && decided) continue;
      if (before.kind != ActivityKind::kKernel || before.call >= timeline_.calls.size()) break;
      const std::uint32_t its = timeline_.calls[before.call].op;
      if (its >= timeline_.ops.size()) break;
      const std::string_view name = name_in(timeline_, timeline_.ops[its].name);
      if (decided ? !one_of(kTesting, name) : !one_of(kDeciding, name)) break;
      decided = true;
      out_.work.push_back(work[at - 1]);
      begin = std::min(begin, begin_of_outermost(timeline_, its));
    }
    if (decided) found_[begin] = std::max(found_[begin], end);
  }

  const Profile& profile_;
  const Timeline& timeline_;
  std::map<std::int64_t, std::int64_t> found_;  // begin -> end, of the outermost
  Reads out_;
};

double time_of(const HostView& view, const std::vector<std::uint32_t>& activities) {
  double ns = 0;
  for (const std::uint32_t i : activities)
    ns += static_cast<double>(interval_of(view.facts.profile->timeline.activities[i]).length());
  return ns * view.share;
}

}  // namespace

void add_syncs_rule(HostView& view) {
  const Timeline& timeline = view.facts.profile->timeline;
  const std::vector<std::uint32_t> copies = many_copies(view);
  const double copied = time_of(view, copies);
  const double waited = view.idle(IdleCause::kSynchronization) + copied;
  if (waited < kSynchronised * view.length) return;
  std::map<std::uint32_t, double> by_name;
  edit::RemoveCalls edit;
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    if (!waits_for_device(timeline, call)) continue;
    edit.calls.push_back(i);
    if (call.name < timeline.names.size()) by_name[call.name] += 1;
  }
  const double waits = static_cast<double>(edit.calls.size()) * view.share;
  edit.gone = view.unit.kind == "step" && waits >= kManyWaits ? kMost : kHalf;
  const Interval3 gone = edit.gone;
  std::vector<std::pair<double, std::uint32_t>> most;
  for (const auto& [name, count] : by_name) most.emplace_back(-count, name);
  std::sort(most.begin(), most.end());
  Intervention out = from_remedy("remove_syncs");
  out.evidence.push_back(
      {"device idle because the host had waited for it", view.part(waited), "timeline"});
  for (std::size_t i = 0; i < std::min<std::size_t>(3, most.size()); ++i)
    out.evidence.push_back({"calls that wait",
                            fmt::format("{} {}", clean(timeline.names[most[i].second]),
                                        counted(-most[i].first, "time")),
                            "timeline"});
  double small = 0;
  for (const Activity& activity : timeline.activities)
    if (activity.kind == ActivityKind::kCopy && activity.bytes > 0 &&
        static_cast<double>(activity.bytes) <= kSmallCopy &&
        activity.row < view.facts.profile->copies.size() &&
        copy_direction(view.facts.profile->copies[activity.row].kind) == "d2h")
      small += 1;
  if (small > 0) {
    // Where the host decides by what it reads, the device has to decide instead.
    const double each = launch_cost(view.facts).mid + kSmallKernel;
    out.instead_ns =
        std::min(kMostInstead * view.unit.baseline_ns.mid, small * view.share * kInstead * each);
    out.evidence.push_back(
        {"memcpys to the host of a few bytes, such as .item()", format_count(small), "timeline"});
  }
  if (!copies.empty()) {
    out.evidence.push_back(
        {"copies to the host that it waits for",
         fmt::format("{}{}, {}", counted(static_cast<double>(copies.size()) * view.share, "copy"),
                     view.unit.kind == "step" ? " a step" : "", short_ns(copied)),
         "timeline"});
    out.change.edits.emplace_back(edit::Remove{Affected::of(copies), gone});
  }
  view.add_longest(IdleCause::kSynchronization, out);
  out.assumptions.emplace_back(
      out.instead_ns > 0
          ? "the wait may be a real dependency; a decision of the host then becomes kernels of the "
            "device: two programs became slower, so the low estimate is a loss"
          : "the wait may be a real dependency, so the low estimate is 0");
  const Interval3 left = {1 - gone.low, 1 - gone.mid, 1 - gone.high};
  Reads reads = FindReads(*view.facts.profile).run(edit.calls);
  if (!reads.when.empty())
    out.change.edits.emplace_back(edit::ScaleHost{left, std::move(reads.when), kNone});
  if (!reads.work.empty())
    out.change.edits.emplace_back(edit::Scale{Affected::of(std::move(reads.work)), left});
  if (!edit.calls.empty()) out.change.edits.emplace_back(std::move(edit));
  view.add(std::move(out), gone * waited, waited, "C");
}

}  // namespace purlin::analyze
