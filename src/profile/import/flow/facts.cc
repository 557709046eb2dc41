// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/facts.h"

#include "profile/import/flow/liveness.h"
#include "profile/import/flow/steps.h"
#include "profile/import/flow/units.h"
#include "profile/import/flow/values.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace purlin::profile::flow {
namespace {

constexpr double kPartly = 0.9;    // more than this is read for the whole
constexpr double kSameData = 0.9;  // of a step's ops, by number
constexpr std::size_t kMaxFacts = 20'000;

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
    add_use();
    add_repeated();
    add_unchanged();
    std::stable_sort(out_.facts.begin(), out_.facts.end(),
                     [](const FlowFact& a, const FlowFact& b) {
                       return std::tie(a.op, a.ordinal) < std::tie(b.op, b.ordinal);
                     });
    return {std::move(out_), false};
  }

 private:
  std::pair<std::uint32_t, std::uint32_t> bounds(const FlowStep& step) const {
    const auto at = [&](std::uint32_t node) {
      const auto& list = units_.units;
      return static_cast<std::uint32_t>(
          std::partition_point(list.begin(), list.end(),
                               [&](const Unit& unit) { return unit.node < node; }) -
          list.begin());
    };
    return {at(step.begin), at(step.end)};
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

  // One memory can hold the result of both only where no op changes it afterwards.
  bool stays(std::uint32_t unit) const {
    const Unit& at = units_.units[unit];
    for (std::uint32_t k = 0; k < at.writes; ++k) {
      const Value& value = units_.values[units_.writes[at.first_write + k]];
      if (value.changed || value.before != kNoIndex) return false;
    }
    return true;
  }

  void add_repeated() {
    std::unordered_map<std::uint64_t, std::uint32_t> earlier;
    for (std::uint32_t i = first_; i < last_; ++i) {
      if (!computes(i) || units_.units[i].random || !stays(i)) continue;
      const auto [at, added] = earlier.try_emplace(numbers_[i].exact, i);
      if (added || !matters_[i - first_]) continue;
      // Checkpointing computes again what it did not keep.
      const std::uint32_t before = at->second;
      if (units_.units[i].backward && !units_.units[before].backward) continue;
      add(FlowKind::kRepeated, i, 0, "", before);
    }
  }

  template <class Of>
  std::vector<NumberSet> of_steps(Of of) const {
    std::vector<NumberSet> numbers;
    for (const FlowStep& step : steps_) {
      const auto [first, last] = bounds(step);
      numbers.emplace_back();
      for (std::uint32_t i = first; i < last; ++i) numbers.back().insert(of(numbers_[i]));
    }
    return numbers;
  }

  static bool in_all(const std::vector<NumberSet>& steps, std::uint64_t number) {
    return std::all_of(steps.begin(), steps.end(),
                       [&](const NumberSet& step) { return step.contains(number); });
  }

  void add_unchanged() {
    std::vector<NumberSet> data = of_steps([](const UnitNumber& number) { return number.by_data; });
    // The first step finds state that no step has left.
    if (data.size() > 2) data.erase(data.begin());
    const auto [first, last] = bounds(steps_[1]);
    double same = 0, all = 0;
    for (std::uint32_t i = first; i < last; ++i) {
      if (!computes(i)) continue;
      ++all;
      same += in_all(data, numbers_[i].by_data) ? 1 : 0;
    }
    for (std::uint32_t i = first_; i < last_; ++i)
      for (std::uint32_t k = 0; computes(i) && k < units_.units[i].reads; ++k)
        out_.host_numbers =
            out_.host_numbers || trace_.uses[units_.reads[units_.units[i].first_read + k].use].host;
    out_.same_data = all > 0 && same >= kSameData * all;
    const std::vector<NumberSet> exact =
        of_steps([](const UnitNumber& number) { return number.exact; });
    for (std::uint32_t i = first_; i < last_; ++i) {
      const UnitNumber& number = numbers_[i];
      if (!computes(i) || units_.units[i].random || !matters_[i - first_] || !stays(i)) continue;
      if (out_.same_data && !number.constant) continue;
      if (in_all(exact, number.exact)) add(FlowKind::kUnchanged, i);
    }
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
  DataFlow out_;
};

}  // namespace

FoundFlow find_data_flow(const ExecutionTrace& trace) { return Facts(trace).find(); }

}  // namespace purlin::profile::flow
