// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/values.h"

#include "base/hash.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace purlin::profile::flow {
namespace {

template <std::size_t N>
std::uint64_t mixed(const std::array<std::uint64_t, N>& words) {
  return hash64(words.data(), sizeof(words));
}

enum class Mark : std::uint64_t { kOld = 1, kState, kUnset, kOwn, kHost, kResult, kPart, kRandom };
constexpr std::uint64_t word(Mark mark) { return static_cast<std::uint64_t>(mark); }

class ValueNumbers {
 public:
  ValueNumbers(const ExecutionTrace& trace, const Units& units, const std::vector<FlowStep>& steps)
      : trace_(trace), units_(units), steps_(steps), values_(units.values.size()) {}

  std::vector<UnitNumber> number() {
    step_of_.assign(units_.units.size(), kNoIndex);
    place_.assign(units_.units.size(), 0);
    std::size_t step = 0;
    std::unordered_map<std::uint32_t, std::uint32_t> seen;
    for (std::size_t i = 0; i < units_.units.size(); ++i) {
      const std::uint32_t node = units_.units[i].node;
      while (step < steps_.size() && node >= steps_[step].end) {
        ++step;
        seen.clear();
      }
      if (step < steps_.size() && steps_[step].holds(node))
        step_of_[i] = static_cast<std::uint32_t>(step);
      place_[i] = mixed<2>({trace_.nodes[node].name, seen[trace_.nodes[node].name]++});
    }
    std::vector<UnitNumber> numbers;
    numbers.reserve(units_.units.size());
    for (std::size_t i = 0; i < units_.units.size(); ++i) {
      numbers.push_back(number_of(i));
      keep(i, numbers.back());
    }
    return numbers;
  }

 private:
  UnitNumber number_of(std::size_t index) {
    const Unit& unit = units_.units[index];
    const TraceNode& node = trace_.nodes[unit.node];
    UnitNumber number;
    number.constant = !unit.random;
    number.exact = number.by_data =
        mixed<3>({trace_.schemas[node.schema].identity, node.name, node.literals});
    for (std::uint32_t i = 0; i < unit.reads; ++i) {
      const Read& read = units_.reads[unit.first_read + i];
      const TensorUse& use = trace_.uses[read.use];
      const UnitNumber from = value_at(index, read, i);
      const std::uint64_t how = read.rest ? word(Mark::kPart) : use.argument;
      number.exact = mixed<4>({number.exact, from.exact, use.view, how});
      number.by_data = mixed<4>({number.by_data, from.by_data, use.view, how});
      number.constant = number.constant && from.constant;
    }
    // Where it writes in place is part of what it does.
    for (std::uint32_t i = 0; i < unit.writes; ++i) {
      const Value& value = units_.values[units_.writes[unit.first_write + i]];
      number.exact = mixed<3>({number.exact, hash64(&value.bytes, sizeof(double)), value.whole});
      number.by_data =
          mixed<3>({number.by_data, hash64(&value.bytes, sizeof(double)), value.whole});
    }
    if (unit.random) {
      number.exact = fresh();
      number.by_data = mixed<3>({number.by_data, place_[index], word(Mark::kRandom)});
    }
    return number;
  }

  // What a unit finds in a value.
  UnitNumber value_at(std::size_t unit, const Read& read, std::uint32_t place) {
    const Value& value = units_.values[read.value];
    const TensorUse& use = trace_.uses[read.use];
    UnitNumber number;
    if (use.host) {
      // A scalar of Python is at any address, and its value is not in the trace.
      number.exact = fresh();
      number.by_data =
          use.rank == 0 ? mixed<3>({place_[unit], place, word(Mark::kHost)}) : number.exact;
      return number;
    }
    if (value.unset) {
      number.exact = number.by_data = fresh();
      return number;
    }
    if (value.writer == kNoIndex) {
      number.exact = mixed<2>({value.storage, word(Mark::kOld)});
      number.by_data = number.exact;
      return number;
    }
    number = values_[read.value];
    const std::uint32_t made_in = step_of_[value.writer];
    if (made_in == kNoIndex || made_in == step_of_[unit] || number.constant) return number;
    const bool old = !units_.memories[value.memory].recorded;
    number.by_data = old ? mixed<2>({value.storage, word(Mark::kOld)})
                         : mixed<3>({place_[value.writer], value.output, word(Mark::kState)});
    return number;
  }

  void keep(std::size_t index, const UnitNumber& number) {
    const Unit& unit = units_.units[index];
    for (std::uint32_t i = 0; i < unit.writes; ++i) {
      const std::uint32_t at = units_.writes[unit.first_write + i];
      values_[at] = {mixed<3>({number.exact, i, word(Mark::kResult)}),
                     mixed<3>({number.by_data, i, word(Mark::kResult)}), number.constant};
    }
  }

  std::uint64_t fresh() { return mixed<2>({++last_, word(Mark::kOwn)}); }

  const ExecutionTrace& trace_;
  const Units& units_;
  const std::vector<FlowStep>& steps_;
  std::vector<UnitNumber> values_;  // by value
  std::vector<std::uint32_t> step_of_;
  std::vector<std::uint64_t> place_;  // name and ordinal in the step
  std::uint64_t last_ = 0;
};

}  // namespace

std::vector<UnitNumber> number_values(const ExecutionTrace& trace, const Units& units,
                                      const std::vector<FlowStep>& steps) {
  return ValueNumbers(trace, units, steps).number();
}

}  // namespace purlin::profile::flow
