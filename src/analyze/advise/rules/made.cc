// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/made.h"

#include "analyze/advise/rules/walk.h"
#include "analyze/timeline/host.h"
#include "model/profile/copy_kind.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace purlin::analyze {
namespace {

constexpr int kMostOpsUp = 64;  // records of other tools may go in circles
constexpr std::string_view kCopying[] = {"aten::to", "aten::_to_copy", "aten::copy_"};
constexpr std::string_view kDrawing[] = {"aten::randn",      "aten::rand",       "aten::randint",
                                         "aten::randperm",   "aten::normal",     "aten::normal_",
                                         "aten::uniform_",   "aten::random_",    "aten::bernoulli",
                                         "aten::bernoulli_", "aten::multinomial"};

template <std::size_t kCount>
bool is_in(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

class MadeFinder {
 public:
  explicit MadeFinder(const Facts& facts)
      : facts_(facts), profile_(*facts.profile), timeline_(profile_.timeline), host_(profile_) {
    for (std::uint32_t i = 0; i < timeline_.calls.size(); ++i)
      if (const Call& call = timeline_.calls[i];
          call.kind == CallKind::kLaunch || call.kind == CallKind::kGraphLaunch ||
          call.kind == CallKind::kCopy || call.kind == CallKind::kSync)
        calls_[{call.process, call.thread}].push_back(i);
    for (std::uint32_t i = 0; i < timeline_.ops.size(); ++i)
      if (timeline_.ops[i].parent >= timeline_.ops.size())
        ops_[{timeline_.ops[i].process, timeline_.ops[i].thread}].push_back(i);
    for (auto& [thread, list] : calls_) sort(list, timeline_.calls);
    for (auto& [thread, list] : ops_) sort(list, timeline_.ops);
    for (const Activity& one : timeline_.activities)
      if (direction(one) == "d2h") to_host_.push_back(one.call);
    std::sort(to_host_.begin(), to_host_.end());
  }

  std::vector<Made> run() const {
    std::vector<Made> out;
    for (std::uint32_t i = 0; i < timeline_.activities.size(); ++i) {
      const Activity& one = timeline_.activities[i];
      if (direction(one) != "h2d" || one.call >= timeline_.calls.size() ||
          copy_memory(profile_.copies[one.row].kind) == "pinned")
        continue;
      Made made;
      made.copy = i;
      if (find(timeline_.calls[one.call], made)) out.push_back(made);
    }
    std::sort(out.begin(), out.end(),
              [](const Made& a, const Made& b) { return a.sent.end < b.sent.end; });
    return out;
  }

 private:
  using Thread = std::pair<std::uint32_t, std::uint32_t>;

  template <class Records>
  static void sort(std::vector<std::uint32_t>& list, const Records& records) {
    std::stable_sort(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) {
      return records[a].start_ns < records[b].start_ns;
    });
  }
  // What a step gave to the host at its end, the next one may well send other data than that.
  std::ptrdiff_t step_of(const Call& call) const {
    const auto& steps = facts_.timeline->steps;
    return std::partition_point(
               steps.begin(), steps.end(),
               [&](const StepTime& step) { return step.start_ns <= call.start_ns; }) -
           steps.begin();
  }
  std::string_view direction(const Activity& one) const {
    return one.kind == ActivityKind::kCopy && one.row < profile_.copies.size()
               ? copy_direction(profile_.copies[one.row].kind)
               : std::string_view();
  }
  // The outermost op that copies, around a call.
  const Op* copying(const Call& call) const {
    const Op* out = nullptr;
    int seen = 0;
    for (std::uint32_t op = call.op; op < timeline_.ops.size() && ++seen < kMostOpsUp;
         op = timeline_.ops[op].parent)
      if (is_in(kCopying, name_in(timeline_, timeline_.ops[op].name))) out = &timeline_.ops[op];
    return out;
  }
  std::int64_t end_of_op_around(const Call& call, std::int64_t before) const {
    std::int64_t end = end_of(call);
    int seen = 0;
    for (std::uint32_t op = call.op; op < timeline_.ops.size() && ++seen < kMostOpsUp;
         op = timeline_.ops[op].parent)
      if (end_of(timeline_.ops[op]) <= before) end = std::max(end, end_of(timeline_.ops[op]));
    return end;
  }

  bool find(const Call& call, Made& made) const {
    const Op* op = copying(call);
    const auto list = calls_.find({call.process, call.thread});
    if (op == nullptr || list == calls_.end()) return false;
    made.process = call.process;
    const std::int64_t begin = begin_of(*op);
    const auto next =
        std::partition_point(list->second.begin(), list->second.end(),
                             [&](std::uint32_t i) { return begin_of(timeline_.calls[i]) < begin; });
    if (next == list->second.begin()) return false;
    // What the device gave to the host, the host works on: that is a round trip.
    const std::uint32_t last = *(next - 1);
    auto gave = next - 1;
    while (gave != list->second.begin() && timeline_.calls[*gave].kind == CallKind::kSync) --gave;
    if (std::binary_search(to_host_.begin(), to_host_.end(), *gave) &&
        step_of(timeline_.calls[*gave]) == step_of(call))
      return false;
    made.work = {std::min(begin, end_of_op_around(timeline_.calls[last], begin)), begin};
    for (const NamedInterval& one : host_.process(call.process).loading)
      if (one.interval.begin < made.work.end && one.interval.end > made.work.begin) return false;
    made.sent = {begin, end_of(*op)};
    look_at_ops({call.process, call.thread}, made);
    return true;
  }
  void look_at_ops(Thread thread, Made& made) const {
    const auto list = ops_.find(thread);
    if (list == ops_.end()) return;
    auto next = std::partition_point(
        list->second.begin(), list->second.end(),
        [&](std::uint32_t i) { return begin_of(timeline_.ops[i]) < made.work.begin; });
    for (; next != list->second.end(); ++next) {
      const Op& op = timeline_.ops[*next];
      if (begin_of(op) >= made.work.end) return;
      made.sent.begin = std::min(made.sent.begin, begin_of(op));
      if (is_in(kDrawing, name_in(timeline_, op.name)))
        made.random_ns += static_cast<double>(interval_of(op).length());
    }
  }

  const Facts& facts_;
  const Profile& profile_;
  const Timeline& timeline_;
  HostFacts host_;
  std::map<Thread, std::vector<std::uint32_t>> calls_, ops_;  // in order; ops without one above
  std::vector<std::uint32_t> to_host_;                        // calls, sorted
};

}  // namespace

std::vector<Made> made_by_host(const Facts& facts) {
  if (facts.unit.kind != "step" || facts.profile->timeline.ops.empty()) return {};
  return MadeFinder(facts).run();
}

std::vector<Made> long_work(const Facts& facts, const std::vector<Made>& made) {
  std::vector<Made> out;
  double ns = 0;
  for (const Made& one : made) {
    if (static_cast<double>(one.work.length()) < kLongWork) continue;
    if (!out.empty() && one.work.begin < out.back().work.end) continue;
    ns += static_cast<double>(one.work.length());
    out.push_back(one);
  }
  const Unit& unit = facts.unit;
  const bool counts = ns / unit.count >= kMadeShare * (unit.recorded_ns - unit.profiler_ns);
  // In one step of two at least: work that comes once is no matter of each step.
  return counts && 2 * static_cast<double>(out.size()) >= unit.count ? out : std::vector<Made>();
}

std::vector<Interval> times_of_work(const std::vector<Made>& made) {
  std::vector<Interval> out;
  for (const Made& one : made) out.push_back(one.work);
  return out;
}

}  // namespace purlin::analyze
