// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/flow/launches.h"

#include "analyze/advise/rules/op_facts.h"
#include "analyze/timeline/steps.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace purlin::analyze {
namespace {

// The lesser goes first: what is left out need not be made once, nor in part.
constexpr int kLastOrder = 4;
int order_of(FlowKind kind) {
  switch (kind) {
    case FlowKind::kUnread:
      return 0;
    case FlowKind::kUnchanged:
      return 1;
    case FlowKind::kRepeated:
      return 2;
    case FlowKind::kGradientOfRepeated:
      return 3;
    case FlowKind::kPartlyRead:
      return kLastOrder;
  }
  return kLastOrder;
}

// The ops of a process that a sequence counts, in the order of their starts.
struct SequencedOps {
  std::vector<std::uint32_t> ops;
  OpSequence sequence;
};
std::vector<SequencedOps> sequenced_ops(const Timeline& timeline, std::size_t processes) {
  std::vector<std::uint64_t> hashes;  // by name; 0: does not count
  for (const std::string& name : timeline.names)
    hashes.push_back(OpSequence::counts(name) ? OpSequence::hash_of(name) : 0);
  std::vector<SequencedOps> out(processes);
  for (std::uint32_t i = 0; i < timeline.ops.size(); ++i) {
    const Op& op = timeline.ops[i];
    if (op.process >= processes || op.name >= hashes.size() || hashes[op.name] == 0) continue;
    out[op.process].ops.push_back(i);
    out[op.process].sequence.add(hashes[op.name]);
  }
  return out;
}

// Where the recorded sequence of ops begins, up to the begin of its last op.
std::vector<Step> steps_by_sequence(const Timeline& timeline, const SequencedOps& of,
                                    const DataFlow& flow) {
  const auto& [ops, sequence] = of;
  std::vector<Step> steps;
  const std::size_t length = flow.sequence_ops;
  for (std::size_t i = 0; i + length <= ops.size();) {
    if (sequence.hash(i, length) != flow.sequence_hash) {
      ++i;
      continue;
    }
    const std::int64_t begin = begin_of(timeline.ops[ops[i]]);
    i += length;
    steps.push_back({"", {begin, begin_of(timeline.ops[ops[i - 1]]) + 1}});
  }
  return steps;
}

class Finder {
 public:
  explicit Finder(const Walk& walk)
      : walk_(walk),
        profile_(*walk.facts().profile),
        timeline_(profile_.timeline),
        facts_(profile_.data_flow.facts),
        found_(facts_.size()),
        work_(facts_.size()) {}

  FlowFound run() {
    index_facts();
    find_steps();
    find_ops();
    find_launches();
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (!work_[i].ops.empty())
        out_.work.push_back(std::move(work_[i]));
      else if (!found_[i])
        ++out_.missing;
    }
    return std::move(out_);
  }

 private:
  void find_steps() {
    const DataFlow& flow = profile_.data_flow;
    const auto processes = static_cast<std::uint32_t>(profile_.processes.size());
    std::vector<SequencedOps> sequenced;  // of steps that no range marks
    if (flow.sequence_ops > 0) sequenced = sequenced_ops(timeline_, processes);
    for (std::uint32_t process = 0; process < processes; ++process) {
      Reading& reading = reading_.emplace_back();
      reading.steps = flow.sequence_ops > 0 ? steps_by_sequence(timeline_, sequenced[process], flow)
                                            : host_steps(timeline_, process).steps;
      out_.steps += reading.steps.size();
    }
  }

  void index_facts() {
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (const FlowFact& fact : facts_) numbers.try_emplace(fact.op, kNone);
    for (std::uint32_t i = 0; i < timeline_.names.size(); ++i)
      if (const auto name = numbers.find(timeline_.names[i]); name != numbers.end())
        name->second = i;
    for (std::uint32_t i = 0; i < facts_.size(); ++i)
      if (const std::uint32_t name = numbers[facts_[i].op]; name != kNone)
        by_name_[name].push_back(i);
  }

  // Ops are in order of start, and the steps of a process too.
  struct Reading {
    std::vector<Step> steps;
    std::size_t step = 0;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> ops;  // of the step, by name
  };
  void find_ops() {
    if (out_.steps == 0 || by_name_.empty()) return;
    for (std::uint32_t i = 0; i < timeline_.ops.size(); ++i) {
      const Op& op = timeline_.ops[i];
      if (op.process >= reading_.size() || !by_name_.contains(op.name)) continue;
      Reading& now = reading_[op.process];
      while (now.step < now.steps.size() && now.steps[now.step].window.end <= begin_of(op)) {
        close(now);
        ++now.step;
      }
      if (now.step < now.steps.size() && begin_of(op) >= now.steps[now.step].window.begin)
        now.ops[op.name].push_back(i);
    }
    for (Reading& now : reading_) close(now);
  }
  void close(Reading& now) {
    for (const auto& [name, list] : now.ops) match(by_name_.at(name), list);
    now.ops.clear();
  }
  void match(const std::vector<std::uint32_t>& facts, const std::vector<std::uint32_t>& ops) {
    for (const std::uint32_t fact : facts) {
      if (facts_[fact].count != ops.size() || facts_[fact].ordinal >= ops.size()) continue;
      const auto [known, added] = of_op_.try_emplace(ops[facts_[fact].ordinal], fact);
      found_[fact] = true;
      if (facts_[fact].kind == FlowKind::kRepeated && facts_[fact].earlier < ops.size())
        work_[fact].earlier = ops[facts_[fact].earlier];
      if (order_of(facts_[fact].kind) < order_of(facts_[known->second].kind)) known->second = fact;
    }
  }

  // Of the ops around a call, the fact that saves most; the innermost of equal ones.
  std::uint32_t op_of_fact(std::uint32_t op) const {
    std::uint32_t out = kNone;
    int least = kLastOrder + 1, seen = 0;
    for (; op < timeline_.ops.size() && ++seen < kMostOpsAround; op = timeline_.ops[op].parent) {
      const auto fact = of_op_.find(op);
      if (fact == of_op_.end() || order_of(facts_[fact->second].kind) >= least) continue;
      least = order_of(facts_[fact->second].kind);
      out = op;
    }
    return out;
  }
  void find_launches() {
    // What was launched before the recording began has no call.
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    std::int64_t first = kNever;
    for (const Activity& one : timeline_.activities)
      if (one.call < timeline_.calls.size()) first = std::min(first, one.start_ns);
    for (const Activity& one : timeline_.activities) {
      const bool called = one.call < timeline_.calls.size();
      if (one.kind == ActivityKind::kKernel &&
          (called || first == kNever || one.start_ns >= first) &&
          (!called || timeline_.calls[one.call].op == kNone))
        ++out_.without_op;
    }
    if (of_op_.empty()) return;
    std::unordered_map<std::uint32_t, std::size_t> place;  // of an op, in its fact's groups
    std::vector<std::uint32_t> ops;
    for (const auto& [op, fact] : of_op_) ops.push_back(op);
    std::sort(ops.begin(), ops.end());
    for (const std::uint32_t op : ops) {
      FlowWork& work = work_[of_op_.at(op)];
      work.fact = &facts_[of_op_.at(op)];
      place[op] = work.ops.size();
      work.ops.push_back(op);
      work.groups.emplace_back();
    }
    for (std::uint32_t i = 0; i < timeline_.activities.size(); ++i) {
      const Activity& one = timeline_.activities[i];
      if (one.call >= timeline_.calls.size() || walk_.taken(i)) continue;
      const std::uint32_t op = op_of_fact(timeline_.calls[one.call].op);
      if (op != kNone) work_[of_op_.at(op)].groups[place.at(op)].push_back(i);
    }
  }

  const Walk& walk_;
  const Profile& profile_;
  const Timeline& timeline_;
  const std::vector<FlowFact>& facts_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> by_name_;  // facts
  std::unordered_map<std::uint32_t, std::uint32_t> of_op_;                 // fact
  std::vector<bool> found_;                                                // by fact
  std::vector<Reading> reading_;                                           // by process
  std::vector<FlowWork> work_;                                             // by fact
  FlowFound out_;
};

}  // namespace

Launches FlowWork::all() const {
  Launches out;
  for (const Launches& group : groups) out.insert(out.end(), group.begin(), group.end());
  return out;
}

double time_of(const Walk& walk, const FlowWork& work) { return walk.duration(work.all()); }

FlowFound find_flow(const Walk& walk) { return Finder(walk).run(); }

}  // namespace purlin::analyze
