// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/chains.h"

#include <utility>

namespace purlin::profile::flow {
namespace {

constexpr std::size_t kMaxChain = 64;  // a longer one does not end

}  // namespace

Chains::Chains(const Units& units, std::uint32_t first, std::uint32_t last)
    : units_(units),
      first_(first),
      last_(last),
      next_(units.values.size(), kNoIndex),
      readers_(units.values.size(), 0) {
  for (std::uint32_t i = 0; i < units.values.size(); ++i)
    if (const std::uint32_t before = units.values[i].before; before != kNoIndex) next_[before] = i;
  std::vector<std::uint32_t> last_reader(units.values.size(), kNoIndex);
  for (std::uint32_t i = 0; i < units.units.size(); ++i) {
    const Unit& unit = units.units[i];
    for (std::uint32_t k = 0; k < unit.reads; ++k) {
      const std::uint32_t value = units.reads[unit.first_read + k].value;
      if (std::exchange(last_reader[value], i) != i) ++readers_[value];
    }
  }
}

Chain Chains::of(std::uint32_t unit) const {
  const Unit& at = units_.units[unit];
  if (at.writes != 1) return of_several_results(unit);
  Chain chain;
  std::uint32_t value = units_.writes[at.first_write];
  for (std::size_t i = 0; units_.values[value].before != kNoIndex; ++i) {
    if (i == kMaxChain) return chain;
    value = units_.values[value].before;
  }
  for (; value != kNoIndex; value = next_[value]) {
    const std::uint32_t writer = units_.values[value].writer;
    if (writer == kNoIndex || writer < first_ || writer >= last_ ||
        units_.units[writer].writes != 1 || chain.units.size() >= kMaxChain)
      return chain;
    chain.units.push_back(writer);
    const std::uint32_t next = next_[value];
    if (next == kNoIndex) break;
    if (readers_[value] > (reads(units_.values[next].writer, value) ? 1u : 0u)) return chain;
  }
  chain.ends = true;
  return chain;
}

Chain Chains::of_several_results(std::uint32_t unit) const {
  const Unit& at = units_.units[unit];
  Chain chain{{unit}, true};
  for (std::uint32_t k = 0; k < at.writes; ++k) {
    const Value& value = units_.values[units_.writes[at.first_write + k]];
    chain.ends = chain.ends && !value.changed && value.before == kNoIndex;
  }
  return chain;
}

bool Chains::reads(std::uint32_t unit, std::uint32_t value) const {
  const Unit& at = units_.units[unit];
  for (std::uint32_t k = 0; k < at.reads; ++k)
    if (units_.reads[at.first_read + k].value == value) return true;
  return false;
}

}  // namespace purlin::profile::flow
