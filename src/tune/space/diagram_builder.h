// SPDX-License-Identifier: Apache-2.0
// DiagramBuilder: the diagram of the valid assignments of parameters that constraints tie together.
//
// Level by level, it binds a parameter at every node. Two paths lead to the same node when the open
// constraints need the same values from them. These are the values of the largest subexpressions
// that the bound parameters decide, not the parameters' values. Examples are a product of two tile
// sizes, or the sum so far. A constraint `a or …` needs nothing once it is true. Belongs to
// build.cc; see build.h for the meaning.
// Thread-safety: belongs to one thread.
#pragma once

#include "base/status.h"
#include "model/spec/spec.h"
#include "tune/space/build.h"
#include "tune/space/diagram.h"
#include "tune/space/terms.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace purlin::tune {

class DiagramBuilder {
 public:
  // `members` are the parameters, ascending; `ties` the constraints over them, in the spec's order.
  DiagramBuilder(const std::vector<Parameter>& parameters, std::vector<std::size_t> members,
                 const std::vector<SpecExpression>& constraints, std::vector<std::size_t> ties,
                 const Scope& constants, const SpaceLimits& limits, const SpaceProgress& progress);

  // nullopt: too large for the limits, or more than 2^62 assignments; too_wide() then tells why.
  Result<std::optional<Diagram>> run();
  // Assignments that each tie removed, by its place in `ties`.
  const std::vector<double>& removed() const { return removed_; }
  // The place in `ties` of the one without which the diagram would be smallest; nullopt when none
  // would help.
  std::optional<std::size_t> too_wide() const { return too_wide_; }

 private:
  static constexpr std::uint64_t kStepsPerReport = std::uint64_t{1} << 20;
  // Part of a constraint that must hold: a disjunction, checked when its last parameter is bound.
  struct Clause {
    std::size_t tie = 0;
    std::vector<TermId> literals;  // one is enough; when opaque, the places of the values it reads
    bool fragile = false;          // one may fail, so that they are kept and looked at in order
    bool opaque = false;           // not compiled: the expression is asked
    int ready = -1;
    std::vector<std::size_t> reads;  // members
  };
  // What a state holds: whether a clause is known to hold, or the value of a term.
  struct Entry {
    TermId term = 0;
    std::vector<std::size_t> owners;  // clauses that need it; one that none needs any more is 0
    bool can_fail = false;            // takes a second place, whether it did
  };
  struct Layout {
    std::vector<std::size_t> flags;  // clauses
    std::vector<Entry> entries;
    std::size_t width = 0;  // places in all, and one for doubt at the end
  };
  struct States;  // the nodes of one level
  struct Plan;    // of one level

  void split(std::size_t tie);
  void split(std::size_t tie, TermId term);
  void add_literals(Clause& clause, TermId term);
  void choose_order();
  double width_after(const std::vector<bool>& bound) const;
  Layout layout_after(int level) const;
  void collect(TermId term, int level, std::vector<TermId>& out) const;
  Plan plan(int level) const;
  Status bind(const Plan& plan, const States& from, States& to, Diagram::Level& level);
  void check(const Plan& plan, double paths);
  void check_opaque(const Clause& clause, std::size_t lanes, double weight);
  std::optional<std::size_t> widest(const Plan& plan, const States& states) const;
  Status fail(const std::vector<States>& trail, const std::vector<Diagram::Level>& levels) const;
  Result<bool> account(double share);

  const std::vector<Parameter>& parameters_;
  std::vector<std::size_t> members_;
  const std::vector<SpecExpression>& constraints_;
  std::vector<std::size_t> ties_;
  const Scope& constants_;
  const SpaceLimits& limits_;
  const SpaceProgress& progress_;

  Terms terms_;
  std::vector<Clause> clauses_;
  std::vector<std::size_t> order_;  // by level: the member bound
  std::vector<double> removed_;
  std::optional<std::size_t> too_wide_;
  std::uint64_t steps_ = 0, next_report_ = kStepsPerReport;
  std::size_t edges_ = 0;
  bool over_limit_ = false;

  // Of the node at work, by lane.
  std::vector<std::uint8_t> alive_;
  std::vector<std::uint32_t> doubt_;  // 0, or the tie that could not be evaluated, plus 1
  std::vector<std::uint8_t> held_;    // by clause: known to hold on the way here
};

}  // namespace purlin::tune
