// SPDX-License-Identifier: Apache-2.0
#include "tune/space/diagram_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

namespace purlin::tune {
namespace {

using Kind = Term::Kind;

std::uint64_t hash_of(const std::int64_t* key, std::size_t width) {
  std::uint64_t hash = 0x9E3779B97F4A7C15;
  for (std::size_t i = 0; i < width; ++i) {
    hash = (hash ^ static_cast<std::uint64_t>(key[i])) * 0xFF51AFD7ED558CCD;
    hash ^= hash >> 32;
  }
  return hash;
}

std::vector<const Parameter*> pointers(const std::vector<Parameter>& parameters,
                                       const std::vector<std::size_t>& members) {
  std::vector<const Parameter*> out;
  for (const std::size_t member : members) out.push_back(&parameters[member]);
  return out;
}

}  // namespace

struct DiagramBuilder::States {
  std::size_t width = 0;
  std::vector<std::int64_t> keys;  // `width` for each node
  std::vector<double> paths;       // by node: prefixes that lead there
  // By node, the way it was first reached: from which node of the level before, by which value.
  std::vector<std::uint32_t> parent;
  std::vector<std::uint16_t> parent_value;
  std::vector<std::uint32_t> table;  // open addressing: node + 1, or 0

  std::size_t count() const { return paths.size(); }
  std::size_t bytes() const { return 8 * keys.size() + 14 * count() + 4 * table.size(); }

  std::uint32_t node_of(const std::int64_t* key, std::size_t from, std::size_t value) {
    if (table.size() < 2 * (count() + 1)) grow();
    const std::size_t mask = table.size() - 1;
    std::size_t slot = hash_of(key, width) & mask;
    while (table[slot] != 0) {
      const std::uint32_t node = table[slot] - 1;
      if (std::equal(key, key + width, keys.begin() + static_cast<std::ptrdiff_t>(node * width)))
        return node;
      slot = (slot + 1) & mask;
    }
    const auto node = static_cast<std::uint32_t>(count());
    table[slot] = node + 1;
    keys.insert(keys.end(), key, key + width);
    paths.push_back(0);
    parent.push_back(static_cast<std::uint32_t>(from));
    parent_value.push_back(static_cast<std::uint16_t>(value));
    return node;
  }

  void forget_keys() {
    keys = {};
    table = {};
  }

 private:
  void grow() {
    table.assign(std::max<std::size_t>(16, table.size() * 2), 0);
    const std::size_t mask = table.size() - 1;
    for (std::size_t node = 0; node < count(); ++node) {
      std::size_t slot = hash_of(keys.data() + node * width, width) & mask;
      while (table[slot] != 0) slot = (slot + 1) & mask;
      table[slot] = static_cast<std::uint32_t>(node) + 1;
    }
  }
};

struct DiagramBuilder::Plan {
  int level = 0;
  std::size_t lanes = 0;
  double below = 1;             // assignments of the parameters not bound yet
  std::vector<TermId> program;  // terms that become ready, children first
  Layout in, out;
  std::vector<std::size_t> complete;  // clauses checked here
};

DiagramBuilder::DiagramBuilder(const std::vector<Parameter>& parameters,
                               std::vector<std::size_t> members,
                               const std::vector<SpecExpression>& constraints,
                               std::vector<std::size_t> ties, const Scope& constants,
                               const SpaceLimits& limits, const SpaceProgress& progress)
    : parameters_(parameters),
      members_(std::move(members)),
      constraints_(constraints),
      ties_(std::move(ties)),
      constants_(constants),
      limits_(limits),
      progress_(progress),
      terms_(pointers(parameters, members_), constants),
      removed_(ties_.size()) {
  for (std::size_t tie = 0; tie < ties_.size(); ++tie) split(tie);
}

void DiagramBuilder::split(std::size_t tie) {
  const Expression& expression = constraints_[ties_[tie]].expression;
  if (const std::optional<TermId> term = terms_.compile(expression)) return split(tie, *term);
  Clause clause;
  clause.tie = tie;
  clause.opaque = true;
  for (std::size_t member = 0; member < members_.size(); ++member) {
    const auto& names = expression.names();
    if (std::find(names.begin(), names.end(), parameters_[members_[member]].name) == names.end())
      continue;
    clause.reads.push_back(member);
    clause.literals.push_back(terms_.index_of(member));
  }
  clauses_.push_back(std::move(clause));
}

// `a and b` is two clauses, each checked as soon as it can be. Not where a may fail: what b says
// must not hide that.
void DiagramBuilder::split(std::size_t tie, TermId id) {
  Term term = terms_[id];
  const bool negated = term.kind == Kind::kNot;
  if (negated) term = terms_[term.children[0]];
  if (negated && term.kind == Kind::kNot) return split(tie, term.children[0]);
  const bool conjunction = term.kind == (negated ? Kind::kOr : Kind::kAnd);
  const bool sure = conjunction && std::none_of(term.children.begin(), term.children.end() - 1,
                                                [&](TermId c) { return terms_[c].can_fail; });
  if (sure) {
    for (const TermId child : term.children) split(tie, negated ? terms_.negation(child) : child);
    return;
  }
  Clause clause;
  clause.tie = tie;
  add_literals(clause, id);
  for (const TermId literal : clause.literals) {
    clause.fragile |= terms_[literal].can_fail;
    clause.reads.insert(clause.reads.end(), terms_[literal].reads.begin(),
                        terms_[literal].reads.end());
  }
  std::sort(clause.reads.begin(), clause.reads.end());
  clause.reads.erase(std::unique(clause.reads.begin(), clause.reads.end()), clause.reads.end());
  const auto is_true = [&](TermId literal) {
    return terms_[literal].kind == Kind::kConstant && terms_.truth(literal, 0);
  };
  if (!clause.fragile && std::any_of(clause.literals.begin(), clause.literals.end(), is_true))
    return;
  clauses_.push_back(std::move(clause));
}

void DiagramBuilder::add_literals(Clause& clause, TermId id) {
  Term term = terms_[id];
  const bool negated = term.kind == Kind::kNot;
  if (negated) term = terms_[term.children[0]];
  if (negated && term.kind == Kind::kNot) return add_literals(clause, term.children[0]);
  if (term.kind == (negated ? Kind::kAnd : Kind::kOr)) {
    for (const TermId child : term.children)
      add_literals(clause, negated ? terms_.negation(child) : child);
    return;
  }
  clause.literals.push_back(id);
}

// The largest parts of a term that levels up to this one decide.
void DiagramBuilder::collect(TermId id, int level, std::vector<TermId>& out) const {
  const Term& term = terms_[id];
  if (term.ready < 0) return;
  if (term.ready <= level) {
    out.push_back(id);
    return;
  }
  for (const TermId child : term.children) collect(child, level, out);
}

// What a state must hold once the levels up to this one are bound.
DiagramBuilder::Layout DiagramBuilder::layout_after(int level) const {
  Layout layout;
  std::vector<std::size_t> place(terms_.size(), SIZE_MAX);
  for (std::size_t c = 0; c < clauses_.size(); ++c) {
    const Clause& clause = clauses_[c];
    if (clause.ready <= level) continue;
    std::vector<TermId> needed;
    bool flagged = false;
    for (const TermId literal : clause.literals) {
      const bool bound = terms_[literal].ready <= level;
      // A bound literal that is true makes the clause hold, and one that is false adds nothing.
      flagged |= bound && !clause.fragile && !clause.opaque && terms_[literal].ready >= 0;
      if (!bound || clause.fragile || clause.opaque) collect(literal, level, needed);
    }
    if (flagged) layout.flags.push_back(c);
    for (const TermId term : needed) {
      if (place[term] == SIZE_MAX) {
        place[term] = layout.entries.size();
        layout.entries.push_back({term, {}, terms_[term].can_fail});
      }
      std::vector<std::size_t>& owners = layout.entries[place[term]].owners;
      if (owners.empty() || owners.back() != c) owners.push_back(c);
    }
  }
  // An entry that an unflagged clause needs is always needed.
  for (Entry& entry : layout.entries) {
    const bool always = std::any_of(entry.owners.begin(), entry.owners.end(), [&](std::size_t c) {
      return !std::binary_search(layout.flags.begin(), layout.flags.end(), c);
    });
    if (always) entry.owners.clear();
    layout.width += entry.can_fail ? 2 : 1;
  }
  layout.width += layout.flags.size() + 1;
  return layout;
}

// An estimate of how many states there are once these are bound, as a logarithm.
double DiagramBuilder::width_after(const std::vector<bool>& bound) const {
  std::vector<bool> seen(terms_.size()), member_seen(members_.size());
  double by_entries = 0, by_members = 0;
  const auto count_of = [&](std::size_t member) {
    return static_cast<double>(parameters_[members_[member]].values.size());
  };
  const auto is_bound = [&](const std::vector<std::size_t>& reads) {
    return std::all_of(reads.begin(), reads.end(), [&](std::size_t r) { return bound[r]; });
  };
  const auto visit = [&](const auto& self, TermId id) -> void {
    const Term& term = terms_[id];
    if (term.reads.empty()) return;
    if (!is_bound(term.reads)) {
      for (const TermId child : term.children) self(self, child);
      return;
    }
    if (seen[id]) return;
    seen[id] = true;
    double values = 1;
    for (const std::size_t read : term.reads) {
      values *= count_of(read);
      if (!member_seen[read]) by_members += std::log(count_of(read));
      member_seen[read] = true;
    }
    if (term.type == Term::Type::kInteger && term.kind != Kind::kParameter)
      values = std::min(values, term.high - term.low + 1);
    by_entries += std::log(values);
  };
  double completed = 0;
  for (const Clause& clause : clauses_) {
    if (is_bound(clause.reads)) {
      completed += 1;
      continue;
    }
    bool flagged = false;
    for (const TermId literal : clause.literals) {
      if (clause.fragile || clause.opaque || !is_bound(terms_[literal].reads))
        visit(visit, literal);
      else
        flagged = true;
    }
    by_entries += flagged ? std::log(2.0) : 0;
  }
  return std::min(by_entries, by_members) - completed * std::log(2.0);
}

// Binds next the parameter that keeps the states fewest; then one of a constraint begun; then the
// one with fewer values, then the spec's order.
void DiagramBuilder::choose_order() {
  std::vector<bool> bound(members_.size());
  while (order_.size() < members_.size()) {
    std::size_t best = members_.size();
    std::array<double, 2> best_rank{};
    for (std::size_t member = 0; member < members_.size(); ++member) {
      if (bound[member]) continue;
      bound[member] = true;
      const std::array<double, 2> rank = {
          width_after(bound), static_cast<double>(parameters_[members_[member]].values.size())};
      bound[member] = false;
      if (best == members_.size() || rank < best_rank) best = member, best_rank = rank;
    }
    bound[best] = true;
    order_.push_back(best);
  }
  terms_.set_order(order_);
  for (Clause& clause : clauses_) {
    clause.ready = 0;
    for (const TermId literal : clause.literals)
      clause.ready = std::max(clause.ready, terms_[literal].ready);
  }
}

DiagramBuilder::Plan DiagramBuilder::plan(int level) const {
  Plan plan;
  plan.level = level;
  plan.in = layout_after(level - 1);
  plan.out = layout_after(level);
  const std::size_t place = static_cast<std::size_t>(level);
  plan.lanes = parameters_[members_[order_[place]]].values.size();
  for (std::size_t later = place + 1; later < order_.size(); ++later)
    plan.below *= static_cast<double>(parameters_[members_[order_[later]]].values.size());
  std::vector<bool> wanted(terms_.size());
  const auto want = [&](const auto& self, TermId id) -> void {
    if (wanted[id] || terms_[id].ready < level) return;
    wanted[id] = true;
    for (const TermId child : terms_[id].children) self(self, child);
  };
  for (std::size_t c = 0; c < clauses_.size(); ++c) {
    if (clauses_[c].ready < level) continue;
    for (const TermId literal : clauses_[c].literals) want(want, literal);
    if (clauses_[c].ready == level) plan.complete.push_back(c);
  }
  for (TermId id = 0; id < terms_.size(); ++id)
    if (wanted[id] && terms_[id].ready == level && terms_[id].kind != Kind::kParameter &&
        terms_[id].kind != Kind::kIndex)
      plan.program.push_back(id);
  return plan;
}

Result<std::optional<Diagram>> DiagramBuilder::run() {
  choose_order();
  std::vector<Diagram::Level> levels(members_.size());
  std::vector<States> trail(members_.size() + 1);
  held_.assign(clauses_.size(), 0);
  Plan next = plan(0);
  trail[0].width = next.in.width;
  const std::vector<std::int64_t> nothing(next.in.width, 0);
  (void)trail[0].node_of(nothing.data(), 0, 0);
  trail[0].paths[0] = 1;
  for (std::size_t level = 0; level < members_.size(); ++level) {
    levels[level].parameter = members_[order_[level]];
    PURLIN_TRY(bind(next, trail[level], trail[level + 1], levels[level]));
    if (over_limit_) {
      too_wide_ = widest(next, trail[level + 1]);
      return std::optional<Diagram>();
    }
    trail[level].forget_keys();
    if (level + 1 < members_.size()) next = plan(static_cast<int>(level) + 1);
  }
  const States& ends = trail.back();
  for (std::size_t node = 0; node < ends.count(); ++node)
    if (ends.keys[node] != 0) return fail(trail, levels);
  return Diagram::make(std::move(levels));
}

// The constraint that alone tells the most states apart.
std::optional<std::size_t> DiagramBuilder::widest(const Plan& plan, const States& states) const {
  constexpr std::size_t kLookedAt = 100'000;
  std::optional<std::size_t> found;
  std::size_t most = 1;
  for (std::size_t tie = 0; tie < ties_.size(); ++tie) {
    std::vector<TermId> needed;
    for (const Clause& clause : clauses_)
      if (clause.tie == tie && clause.ready > plan.level)
        for (const TermId literal : clause.literals) collect(literal, plan.level, needed);
    std::vector<std::size_t> places;
    std::size_t place = plan.out.flags.size();
    for (const Entry& entry : plan.out.entries) {
      if (std::find(needed.begin(), needed.end(), entry.term) != needed.end())
        places.push_back(place);
      place += entry.can_fail ? 2 : 1;
    }
    std::unordered_set<std::uint64_t> different;
    std::vector<std::int64_t> part(places.size());
    const std::size_t first = states.count() - std::min(states.count(), kLookedAt);
    for (std::size_t node = first; node < states.count(); ++node) {
      for (std::size_t i = 0; i < places.size(); ++i)
        part[i] = states.keys[node * states.width + places[i]];
      different.insert(hash_of(part.data(), part.size()));
    }
    if (different.size() > most) most = different.size(), found = tie;
  }
  return found;
}

Status DiagramBuilder::bind(const Plan& plan, const States& from, States& to,
                            Diagram::Level& level) {
  to.width = plan.out.width;
  alive_.resize(plan.lanes);
  doubt_.resize(plan.lanes);
  terms_.start(plan.level);
  std::vector<std::int64_t> keys(plan.lanes * to.width);
  std::vector<std::vector<std::uint8_t>> holds(clauses_.size());
  for (const std::size_t c : plan.out.flags) holds[c].resize(plan.lanes);
  const std::size_t levels = members_.size();
  for (std::size_t node = 0; node < from.count(); ++node) {
    // The state.
    const std::int64_t* at = from.keys.data() + node * from.width;
    for (const std::size_t c : plan.in.flags) held_[c] = *at++ != 0;
    for (const Entry& entry : plan.in.entries) {
      const std::int64_t bits = *at++;
      terms_.load(entry.term, std::bit_cast<Cell>(bits), entry.can_fail && *at++ != 0);
    }
    std::fill(doubt_.begin(), doubt_.end(), static_cast<std::uint32_t>(*at));
    std::fill(alive_.begin(), alive_.end(), std::uint8_t{1});
    for (const TermId term : plan.program) terms_.compute(term);
    check(plan, from.paths[node]);
    // The states it leads to.
    std::size_t place = 0;
    for (const std::size_t c : plan.out.flags) {
      std::fill(holds[c].begin(), holds[c].end(), held_[c]);
      for (const TermId literal : clauses_[c].literals)
        if (terms_[literal].ready == plan.level)
          for (std::size_t lane = 0; lane < plan.lanes; ++lane)
            holds[c][lane] |= terms_.truth(literal, lane) ? 1 : 0;
      for (std::size_t lane = 0; lane < plan.lanes; ++lane)
        keys[lane * to.width + place] = holds[c][lane];
      ++place;
    }
    for (const Entry& entry : plan.out.entries) {
      for (std::size_t lane = 0; lane < plan.lanes; ++lane) {
        const bool needed =
            entry.owners.empty() || std::any_of(entry.owners.begin(), entry.owners.end(),
                                                [&](std::size_t c) { return holds[c][lane] == 0; });
        const bool failed = needed && terms_.failed(entry.term, lane);
        std::int64_t* key = keys.data() + lane * to.width + place;
        *key = std::bit_cast<std::int64_t>(needed && !failed ? terms_.cell(entry.term, lane)
                                                             : terms_.stand_in(entry.term));
        if (entry.can_fail) key[1] = failed ? 1 : 0;
      }
      place += entry.can_fail ? 2 : 1;
    }
    for (std::size_t lane = 0; lane < plan.lanes; ++lane) {
      if (alive_[lane] == 0) continue;
      std::int64_t* key = keys.data() + lane * to.width;
      key[place] = doubt_[lane];
      const std::uint32_t reached = to.node_of(key, node, lane);
      to.paths[reached] += from.paths[node];
      level.value.push_back(static_cast<std::uint16_t>(lane));
      level.child.push_back(reached);
    }
    level.first.push_back(static_cast<std::uint32_t>(level.value.size()));
    steps_ += plan.lanes;
    const double done = static_cast<double>(node) / static_cast<double>(from.count());
    PURLIN_ASSIGN(const bool within, account((plan.level + done) / static_cast<double>(levels)));
    const std::size_t bytes = 14 * (edges_ + level.value.size()) + to.bytes() + from.bytes();
    if (!within || bytes > limits_.max_bytes) {
      over_limit_ = true;
      return Status::ok();
    }
  }
  for (const std::size_t c : plan.complete) held_[c] = 0;
  edges_ += level.value.size();
  return Status::ok();
}

// Checks the clauses that are complete now; takes away what one of them rejects.
void DiagramBuilder::check(const Plan& plan, double paths) {
  for (const std::size_t c : plan.complete) {
    const Clause& clause = clauses_[c];
    if (held_[c] != 0) continue;
    if (clause.opaque) {
      check_opaque(clause, plan.lanes, paths * plan.below);
      continue;
    }
    std::size_t gone = 0;
    for (std::size_t lane = 0; lane < plan.lanes; ++lane) {
      if (alive_[lane] == 0) continue;
      bool pass = false;
      for (const TermId literal : clause.literals) {
        if (clause.fragile && terms_.failed(literal, lane)) {
          if (doubt_[lane] == 0) doubt_[lane] = static_cast<std::uint32_t>(clause.tie) + 1;
          pass = true;
          break;
        }
        // Those bound earlier were false, or the clause would be known to hold.
        if (!clause.fragile && terms_[literal].ready != plan.level) continue;
        pass = terms_.truth(literal, lane);
        if (pass) break;
      }
      if (pass) continue;
      alive_[lane] = 0;
      ++gone;
    }
    removed_[clause.tie] += static_cast<double>(gone) * paths * plan.below;
  }
}

void DiagramBuilder::check_opaque(const Clause& clause, std::size_t lanes, double weight) {
  const Expression& expression = constraints_[ties_[clause.tie]].expression;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (alive_[lane] == 0) continue;
    const Result<bool> holds = expression.evaluate_bool([&](std::string_view name) -> const Value* {
      for (std::size_t i = 0; i < clause.reads.size(); ++i) {
        const Parameter& parameter = parameters_[members_[clause.reads[i]]];
        if (parameter.name == name)
          return &parameter.values[static_cast<std::size_t>(
              terms_.cell(clause.literals[i], lane).integer)];
      }
      return constants_.find(name);
    });
    if (!holds.is_ok() && doubt_[lane] == 0)
      doubt_[lane] = static_cast<std::uint32_t>(clause.tie) + 1;
    if (!holds.is_ok() || *holds) continue;
    alive_[lane] = 0;
    removed_[clause.tie] += weight;
  }
}

// A constraint cannot be evaluated for an assignment that no other rejects.
Status DiagramBuilder::fail(const std::vector<States>& trail,
                            const std::vector<Diagram::Level>& levels) const {
  std::uint32_t node = 0;
  while (trail.back().keys[node] == 0) ++node;
  Config config;
  for (std::size_t level = levels.size(); level-- > 0;) {
    const Parameter& parameter = parameters_[levels[level].parameter];
    config.set(parameter.name, parameter.values[trail[level + 1].parent_value[node]]);
    node = trail[level + 1].parent[node];
  }
  const auto lookup = [&](std::string_view name) {
    const Value* value = config.find(name);
    return value != nullptr ? value : constants_.find(name);
  };
  for (const std::size_t tie : ties_) {
    const SpecExpression& constraint = constraints_[tie];
    const Result<bool> holds = constraint.expression.evaluate_bool(lookup);
    if (holds.is_ok()) continue;
    std::string values;
    for (const std::string& name : constraint.expression.names())
      if (const Value* value = config.find(name))
        values += fmt::format("{}{}={}", values.empty() ? "" : " ", name, to_text(*value));
    return error(Code::kInvalid, "{}: constraint '{}' cannot be evaluated for {}: {}",
                 constraint.where, constraint.text(), values, holds.status().message());
  }
  return error(Code::kInvalid, "a constraint cannot be evaluated for {}", config.text());
}

Result<bool> DiagramBuilder::account(double share) {
  if (steps_ < next_report_) return true;
  next_report_ = steps_ + kStepsPerReport;
  if (progress_ && !progress_(share))
    return error(Code::kCancelled, "stopped while building the space");
  return steps_ < limits_.max_steps;
}

}  // namespace purlin::tune
