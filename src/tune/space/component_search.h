// SPDX-License-Identifier: Apache-2.0
// ComponentSearch: the valid assignments of parameters that constraints tie together.
//
// A depth-first walk that binds one parameter at a time. Belongs to build.cc; see build.h for the
// meaning. Thread-safety: belongs to one thread.
#pragma once

#include "base/status.h"
#include "model/spec.h"
#include "tune/space/build.h"
#include "tune/space/compiled_constraint.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::tune {

class ComponentSearch {
 public:
  // `members` are the parameters, ascending; `ties` the constraints over them, in the spec's order.
  ComponentSearch(const std::vector<Parameter>& parameters, std::vector<std::size_t> members,
                  const std::vector<SpecExpression>& constraints, std::vector<std::size_t> ties,
                  const Scope& constants, const SpaceLimits& limits, const SpaceProgress& progress);

  Status run();
  std::vector<std::uint64_t>& codes() { return codes_; }  // ascending, after run()
  const std::vector<std::uint64_t>& strides() const { return strides_; }
  // Assignments that each tie removed, by its place in `ties`.
  const std::vector<double>& removed() const { return removed_; }

 private:
  using Mask = std::vector<std::uint64_t>;  // a bit for each value of the parameter being bound
  struct Check {
    std::size_t tie;  // place in ties_
    CompiledConstraint compiled;
    std::vector<std::size_t> others;     // members it reads besides the innermost
    bool remembers = false;              // its answers come back, for it reads few of those bound
    std::vector<std::uint64_t> answers;  // [combination of others][word]: pass, then unknown
    std::vector<bool> answered;
  };
  struct Level {
    std::size_t member;  // the parameter bound here, by its place in members_
    std::size_t words;   // of a mask
    double below;        // assignments of the parameters not bound yet
    std::vector<Check> checks;
    Mask allowed, doubted, pass, unknown;  // scratch of the visit under way
  };

  void choose_order();
  void add_level(std::size_t member, std::vector<bool>& bound, std::vector<bool>& checked);
  const Value* value_of(std::string_view name) const;
  void ask(Check& check, const Level& level, const Mask& wanted, Mask& pass, Mask& unknown);
  void answer(Check& check, Level& level);
  Status descend(std::size_t depth, std::uint64_t code, bool in_doubt);
  Status keep(std::uint64_t code, bool in_doubt);
  Result<bool> review();
  Status account();
  Status too_many() const;

  const std::vector<Parameter>& parameters_;
  std::vector<std::size_t> members_;
  const std::vector<SpecExpression>& constraints_;
  std::vector<std::size_t> ties_;
  const Scope& constants_;
  const SpaceLimits& limits_;
  const SpaceProgress& progress_;

  std::vector<std::vector<std::size_t>> reads_;  // by tie: members, ascending
  std::unordered_map<std::string_view, std::size_t> member_of_;
  std::vector<Level> levels_;
  std::vector<std::vector<Number>> numbers_;  // by member and value; empty where it has texts
  std::vector<Number> slots_;                 // by member: its bound value
  std::vector<std::size_t> bound_;            // by member: its bound value's index
  std::vector<std::uint64_t> strides_;
  std::vector<std::uint64_t> codes_;
  std::vector<double> removed_;
  std::uint64_t steps_ = 0, next_report_ = 0;
  double done_ = 0, total_ = 1;
};

}  // namespace purlin::tune
