// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/facts.h"

#include "profile/import/flow/chains.h"
#include "profile/import/flow/liveness.h"
#include "profile/import/flow/steps.h"
#include "profile/import/flow/units.h"
#include "profile/import/flow/values.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace purlin::profile::flow {
namespace {

constexpr double kPartly = 0.9;    // more than this is read for the whole
constexpr double kSameData = 0.9;  // of a step's ops, by number
constexpr std::size_t kMaxFacts = 20'000;
constexpr double kRounds = 0.25;  // of a step's ops: repeated by the rounds in it

using NumberSet = std::unordered_set<std::uint64_t>;

class Facts {
 public:
  explicit Facts(const ExecutionTrace& trace)
      : trace_(trace),
        found_(find_steps(trace)),
        steps_(found_.steps),
        units_(find_units(trace)),
        numbers_(number_values(trace, units_, steps_)) {}

  FoundFlow find() {
    if (steps_.size() < 2 || units_.hidden) return {{}, steps_.size() >= 2};
    // Two whole steps later tell more than one: what a variable holds until the next step is given
    // back in it, and its address comes again in the one after.
    judged_ = steps_[steps_.size() > 2 ? steps_.size() - 3 : 0];
    std::tie(first_, last_) = bounds(judged_);
    out_.steps = static_cast<std::uint32_t>(steps_.size());
    out_.sequence_ops = found_.sequence_ops;
    out_.sequence_hash = found_.sequence_hash;
    for (std::uint32_t i = first_; i < last_; ++i) out_.ops += computes(i) ? 1 : 0;
    count_names();
    chains_.emplace(units_, first_, last_);
    add_use();
    add_repeated();
    add_unchanged();
    drop_rounds_of_a_benchmark();
    std::stable_sort(out_.facts.begin(), out_.facts.end(),
                     [](const FlowFact& a, const FlowFact& b) {
                       return std::tie(a.op, a.ordinal) < std::tie(b.op, b.ordinal);
                     });
    return {std::move(out_), false};
  }

 private:
  // The units of a step: [first, last).
  std::pair<std::uint32_t, std::uint32_t> bounds(const FlowStep& step) const {
    return {units_.first_from(step.begin), units_.first_from(step.end)};
  }

  // Work of a device that an op of PyTorch's own does.
  bool computes(std::uint32_t unit) const {
    const Unit& at = units_.units[unit];
    return at.device && !at.unknown;
  }

  void count_names() {
    ordinal_.assign(judged_.end - judged_.begin, 0);
    for (std::uint32_t i = judged_.begin; i < judged_.end; ++i)
      ordinal_[i - judged_.begin] = count_[trace_.nodes[i].name]++;
  }

  void add(FlowKind kind, std::uint32_t unit, double share = 0, const std::string& reader = "",
           std::uint32_t earlier = kNoIndex) {
    if (out_.facts.size() >= kMaxFacts) return;
    const std::uint32_t node = units_.units[unit].node;
    FlowFact fact;
    fact.kind = kind;
    fact.op = trace_.name(trace_.nodes[node]);
    fact.ordinal = ordinal_[node - judged_.begin];
    fact.count = count_[trace_.nodes[node].name];
    fact.read_share = share;
    fact.reader = reader;
    if (earlier != kNoIndex) fact.earlier = ordinal_[units_.units[earlier].node - judged_.begin];
    out_.facts.push_back(std::move(fact));
  }

  void add_use() {
    matters_.assign(last_ - first_, true);
    const StepUse use = find_use(trace_, units_, judged_);
    const bool any = std::any_of(use.units.begin(), use.units.end(),
                                 [](const UnitUse& unit) { return unit.matters; });
    if (!any) return;
    for (std::uint32_t i = first_; i < last_; ++i) {
      const UnitUse& unit = use.units[i - first_];
      matters_[i - first_] = unit.matters;
      if (!computes(i)) continue;
      if (!unit.matters) {
        add(FlowKind::kUnread, i);
      } else if (unit.share < kPartly && unit.reader != kNoIndex) {
        add(FlowKind::kPartlyRead, i, unit.share,
            trace_.name(trace_.nodes[units_.units[unit.reader].node]));
      }
    }
  }

  // Whether all of the chain can go: one memory can hold both results only where no op changes it
  // afterwards.
  template <class Test>
  bool stays(std::uint32_t unit, const Test& test) const {
    const Chain chain = chains_->of(unit);
    return chain.ends && std::all_of(chain.units.begin(), chain.units.end(), test);
  }

  void add_repeated() {
    std::unordered_map<std::uint64_t, std::uint32_t> first;  // of a number
    std::vector<std::uint32_t> before(last_ - first_, kNoIndex);
    for (std::uint32_t i = first_; i < last_; ++i) {
      if (!computes(i) || units_.units[i].random) continue;
      const auto [at, added] = first.try_emplace(numbers_[i].exact, i);
      if (!added) before[i - first_] = at->second;
    }
    const auto is_repeated = [&](std::uint32_t unit) { return before[unit - first_] != kNoIndex; };
    std::vector<bool> repeated(last_ - first_, false);
    for (std::uint32_t i = first_; i < last_; ++i) {
      if (!is_repeated(i) || !stays(i, is_repeated)) continue;
      if (!stays(before[i - first_], [](std::uint32_t) { return true; })) continue;
      // Checkpointing computes again what it did not keep.
      const bool again = units_.units[i].backward && !units_.units[before[i - first_]].backward;
      repeated[i - first_] = !again;
      if (!again && matters_[i - first_]) add(FlowKind::kRepeated, i, 0, "", before[i - first_]);
    }
    add_gradients_of_repeated(repeated, before);
  }

  // Both ops have nodes of the backward pass, and the node has no other op.
  void add_gradients_of_repeated(const std::vector<bool>& repeated,
                                 const std::vector<std::uint32_t>& before) {
    std::unordered_map<std::uint32_t, bool> goes;  // by node of the backward pass
    for (std::uint32_t i = first_; i < last_; ++i) {
      const Unit& unit = units_.units[i];
      if (unit.backward || unit.backward_node == 0) continue;
      if (!computes(i)) continue;
      const bool both = repeated[i - first_] && units_.units[before[i - first_]].backward_node != 0;
      const auto [at, added] = goes.try_emplace(unit.backward_node, both);
      if (!added) at->second = at->second && both;
    }
    for (std::uint32_t i = first_; i < last_; ++i) {
      const Unit& unit = units_.units[i];
      if (!unit.backward || !computes(i) || !matters_[i - first_] || repeated[i - first_]) continue;
      const auto node = goes.find(unit.backward_node);
      if (node != goes.end() && node->second) add(FlowKind::kGradientOfRepeated, i);
    }
  }

  // Numbers that units have in each of the steps from `first` on.
  NumberSet in_all_steps(std::size_t first, std::uint64_t UnitNumber::*of) const {
    NumberSet all;
    for (std::size_t step = first; step < steps_.size(); ++step) {
      NumberSet here;
      const auto [begin, end] = bounds(steps_[step]);
      for (std::uint32_t i = begin; i < end; ++i)
        if (step == first || all.contains(numbers_[i].*of)) here.insert(numbers_[i].*of);
      all = std::move(here);
    }
    return all;
  }

  void add_unchanged() {
    // The first step finds state that no step has left.
    const NumberSet data = in_all_steps(steps_.size() > 2 ? 1 : 0, &UnitNumber::by_data);
    const auto [first, last] = bounds(steps_[1]);
    double same = 0, all = 0;
    for (std::uint32_t i = first; i < last; ++i) {
      if (!computes(i)) continue;
      ++all;
      same += data.contains(numbers_[i].by_data) ? 1 : 0;
    }
    for (std::uint32_t i = first_; i < last_; ++i)
      for (std::uint32_t k = 0; computes(i) && k < units_.units[i].reads; ++k)
        out_.host_numbers =
            out_.host_numbers || trace_.uses[units_.reads[units_.units[i].first_read + k].use].host;
    out_.same_data = all > 0 && same >= kSameData * all;
    const NumberSet exact = in_all_steps(0, &UnitNumber::exact);
    const auto is_unchanged = [&](std::uint32_t unit) {
      return computes(unit) && !units_.units[unit].random &&
             (!out_.same_data || numbers_[unit].constant) && exact.contains(numbers_[unit].exact);
    };
    for (std::uint32_t i = first_; i < last_; ++i)
      if (matters_[i - first_] && is_unchanged(i) && stays(i, is_unchanged))
        add(FlowKind::kUnchanged, i);
  }

  // Without marks a step may be several rounds of a program, the last of which has one more op.
  // Where it takes the same data again and again, the rounds repeat one another.
  void drop_rounds_of_a_benchmark() {
    if (out_.sequence_ops == 0 || !out_.same_data) return;
    const auto of_repeated = [](const FlowFact& fact) {
      return fact.kind == FlowKind::kRepeated || fact.kind == FlowKind::kGradientOfRepeated;
    };
    const auto repeated = std::count_if(out_.facts.begin(), out_.facts.end(), of_repeated);
    if (static_cast<double>(repeated) > kRounds * static_cast<double>(out_.ops))
      std::erase_if(out_.facts, of_repeated);
  }

  const ExecutionTrace& trace_;
  const FlowSteps found_;
  const std::vector<FlowStep>& steps_;
  const Units units_;
  const std::vector<UnitNumber> numbers_;  // by unit
  FlowStep judged_;
  std::uint32_t first_ = 0, last_ = 0;                      // units
  std::vector<std::uint32_t> ordinal_;                      // by node of the judged step
  std::unordered_map<std::uint32_t, std::uint32_t> count_;  // by name
  std::vector<bool> matters_;
  std::optional<Chains> chains_;
  DataFlow out_;
};

}  // namespace

FoundFlow find_data_flow(const ExecutionTrace& trace) { return Facts(trace).find(); }

}  // namespace purlin::profile::flow
