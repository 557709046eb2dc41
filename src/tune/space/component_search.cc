// SPDX-License-Identifier: Apache-2.0
#include "tune/space/component_search.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <bit>

namespace purlin::tune {
namespace {

// Answers are remembered for at most this many combinations of a constraint's parameters.
constexpr std::size_t kMaxRemembered = std::size_t{1} << 20;
constexpr std::uint64_t kStepsPerReport = std::uint64_t{1} << 20;

}  // namespace

ComponentSearch::ComponentSearch(const std::vector<Parameter>& parameters,
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
      numbers_(members_.size()),
      slots_(members_.size()),
      bound_(members_.size()),
      strides_(members_.size(), 1),
      removed_(ties_.size()) {
  for (std::size_t i = members_.size(); i-- > 0;) {
    const Parameter& parameter = parameters_[members_[i]];
    member_of_[parameter.name] = i;
    if (i + 1 < members_.size())
      strides_[i] = strides_[i + 1] * parameters_[members_[i + 1]].values.size();
    for (const Value& value : parameter.values) {
      const std::optional<Number> number = Number::of(value);
      if (!number) {
        numbers_[i].clear();
        break;
      }
      numbers_[i].push_back(*number);
    }
    total_ *= static_cast<double>(parameter.values.size());
  }
  for (const std::size_t tie : ties_) {
    std::vector<std::size_t> reads;
    for (const std::string& name : constraints_[tie].expression.names())
      if (const auto found = member_of_.find(name); found != member_of_.end())
        reads.push_back(found->second);
    std::sort(reads.begin(), reads.end());
    reads_.push_back(std::move(reads));
  }
}

Status ComponentSearch::run() {
  choose_order();
  PURLIN_TRY(descend(0, 0, false));
  std::sort(codes_.begin(), codes_.end());
  return Status::ok();
}

// Binds next the parameter that completes the most constraints; failing that, one of the constraint
// nearest to completion; then the one with fewer values, then the spec's order.
void ComponentSearch::choose_order() {
  std::vector<bool> bound(members_.size()), checked(ties_.size());
  while (levels_.size() < members_.size()) {
    std::size_t best = members_.size();
    std::array<double, 3> best_rank{};
    for (std::size_t member = 0; member < members_.size(); ++member) {
      if (bound[member]) continue;
      double completed = 0, nearest = 1e9;
      for (std::size_t tie = 0; tie < ties_.size(); ++tie) {
        if (checked[tie] || !std::binary_search(reads_[tie].begin(), reads_[tie].end(), member))
          continue;
        const auto open = std::count_if(reads_[tie].begin(), reads_[tie].end(),
                                        [&](std::size_t read) { return !bound[read]; });
        completed += open == 1 ? 1 : 0;
        nearest = std::min(nearest, static_cast<double>(open));
      }
      const std::array<double, 3> rank = {
          -completed, nearest, static_cast<double>(parameters_[members_[member]].values.size())};
      if (best == members_.size() || rank < best_rank) best = member, best_rank = rank;
    }
    add_level(best, bound, checked);
  }
  double below = 1;
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    level->below = below;
    below *= static_cast<double>(parameters_[members_[level->member]].values.size());
  }
}

void ComponentSearch::add_level(std::size_t member, std::vector<bool>& bound,
                                std::vector<bool>& checked) {
  const std::size_t bound_before = levels_.size();
  bound[member] = true;
  Level level;
  level.member = member;
  level.words = (parameters_[members_[member]].values.size() + 63) / 64;
  level.allowed.resize(level.words);
  level.pass.resize(level.words);
  level.unknown.resize(level.words);
  level.doubted.resize(level.words);
  const auto meaning = [&](std::string_view name) {
    CompiledConstraint::Meaning result;
    if (const auto found = member_of_.find(name); found != member_of_.end()) {
      if (!numbers_[found->second].empty()) result.slot = found->second;
    } else if (const Value* value = constants_.find(name)) {
      result.constant = Number::of(*value);
    }
    return result;
  };
  for (std::size_t tie = 0; tie < ties_.size(); ++tie) {
    const std::vector<std::size_t>& reads = reads_[tie];
    if (checked[tie] ||
        !std::all_of(reads.begin(), reads.end(), [&](std::size_t read) { return bound[read]; }))
      continue;
    checked[tie] = true;
    Check check{tie, CompiledConstraint(constraints_[ties_[tie]].expression, meaning, member)};
    double combinations = 1;
    for (const std::size_t read : reads) {
      if (read == member) continue;
      check.others.push_back(read);
      combinations *= static_cast<double>(parameters_[members_[read]].values.size());
    }
    // One that reads everything bound so far is never asked the same thing twice.
    if (check.others.size() < bound_before && combinations <= kMaxRemembered) {
      check.remembers = true;
      check.answers.resize(static_cast<std::size_t>(combinations) * level.words * 2);
      check.answered.resize(static_cast<std::size_t>(combinations));
    }
    level.checks.push_back(std::move(check));
  }
  levels_.push_back(std::move(level));
}

const Value* ComponentSearch::value_of(std::string_view name) const {
  const auto found = member_of_.find(name);
  if (found == member_of_.end()) return constants_.find(name);
  return &parameters_[members_[found->second]].values[bound_[found->second]];
}

// Asks the constraint about each wanted value of the level's parameter.
void ComponentSearch::ask(Check& check, const Level& level, const Mask& wanted, Mask& pass,
                          Mask& unknown) {
  const std::vector<Number>& numbers = numbers_[level.member];
  const Expression& expression = constraints_[ties_[check.tie]].expression;
  check.compiled.start_round();
  for (std::size_t word = 0; word < level.words; ++word) {
    pass[word] = unknown[word] = 0;
    for (std::uint64_t rest = wanted[word]; rest != 0; rest &= rest - 1) {
      const std::size_t bit = static_cast<std::size_t>(std::countr_zero(rest));
      const std::size_t value = word * 64 + bit;
      ++steps_;
      if (!numbers.empty()) slots_[level.member] = numbers[value];
      Verdict verdict = check.compiled.evaluate(slots_.data());
      if (verdict == Verdict::kUnknown) {
        bound_[level.member] = value;
        const Result<bool> result =
            expression.evaluate_bool([this](std::string_view name) { return value_of(name); });
        if (result.is_ok()) verdict = *result ? Verdict::kTrue : Verdict::kFalse;
      }
      if (verdict != Verdict::kFalse) pass[word] |= std::uint64_t{1} << bit;
      if (verdict == Verdict::kUnknown) unknown[word] |= std::uint64_t{1} << bit;
    }
  }
}

// Fills level.pass and level.unknown for the values that are still allowed, or for more.
void ComponentSearch::answer(Check& check, Level& level) {
  if (!check.remembers) return ask(check, level, level.allowed, level.pass, level.unknown);
  std::size_t combination = 0;
  for (const std::size_t other : check.others)
    combination = combination * parameters_[members_[other]].values.size() + bound_[other];
  const auto place =
      check.answers.begin() + static_cast<std::ptrdiff_t>(combination * level.words * 2);
  const auto words = static_cast<std::ptrdiff_t>(level.words);
  if (check.answered[combination]) {
    std::copy(place, place + words, level.pass.begin());
    std::copy(place + words, place + 2 * words, level.unknown.begin());
    return;
  }
  Mask all(level.words, ~std::uint64_t{0});
  const std::size_t count = parameters_[members_[level.member]].values.size();
  if (count % 64 != 0) all.back() = (std::uint64_t{1} << (count % 64)) - 1;
  ask(check, level, all, level.pass, level.unknown);
  check.answered[combination] = true;
  std::copy(level.pass.begin(), level.pass.end(), place);
  std::copy(level.unknown.begin(), level.unknown.end(), place + words);
}

Status ComponentSearch::descend(std::size_t depth, std::uint64_t code, bool in_doubt) {
  Level& level = levels_[depth];
  const std::size_t count = parameters_[members_[level.member]].values.size();
  std::fill(level.allowed.begin(), level.allowed.end(), ~std::uint64_t{0});
  if (count % 64 != 0) level.allowed.back() = (std::uint64_t{1} << (count % 64)) - 1;
  std::fill(level.doubted.begin(), level.doubted.end(), 0);
  for (Check& check : level.checks) {
    answer(check, level);
    int gone = 0;
    for (std::size_t word = 0; word < level.words; ++word) {
      gone += std::popcount(level.allowed[word] & ~level.pass[word]);
      level.allowed[word] &= level.pass[word];
      level.doubted[word] |= level.unknown[word];
    }
    removed_[check.tie] += gone * level.below;
    done_ += gone * level.below;
  }
  const std::vector<Number>& numbers = numbers_[level.member];
  const bool last = depth + 1 == levels_.size();
  for (std::size_t word = 0; word < level.words; ++word) {
    // The walk below comes back to this level only after the loops here are done with it.
    for (std::uint64_t rest = level.allowed[word]; rest != 0; rest &= rest - 1) {
      const std::size_t bit = static_cast<std::size_t>(std::countr_zero(rest));
      const std::size_t value = word * 64 + bit;
      const std::uint64_t reached = code + value * strides_[level.member];
      const bool doubtful = in_doubt || ((level.doubted[word] >> bit) & 1) != 0;
      bound_[level.member] = value;
      if (last) {
        PURLIN_TRY(keep(reached, doubtful));
        continue;
      }
      if (!numbers.empty()) slots_[level.member] = numbers[value];
      PURLIN_TRY(descend(depth + 1, reached, doubtful));
    }
  }
  return account();
}

Status ComponentSearch::keep(std::uint64_t code, bool in_doubt) {
  ++done_;
  if (in_doubt) {
    PURLIN_ASSIGN(const bool valid, review());
    if (!valid) return Status::ok();
  }
  if (codes_.size() >= limits_.max_listed) return too_many();
  codes_.push_back(code);
  return Status::ok();
}

// A constraint failed to evaluate on the way here. That matters only where no other rejects.
Result<bool> ComponentSearch::review() {
  Status problem;
  for (std::size_t tie = 0; tie < ties_.size(); ++tie) {
    const SpecExpression& constraint = constraints_[ties_[tie]];
    const Result<bool> holds = constraint.expression.evaluate_bool(
        [this](std::string_view name) { return value_of(name); });
    if (holds.is_ok() && !*holds) {
      removed_[tie] += 1;
      return false;
    }
    if (holds.is_ok() || !problem.is_ok()) continue;
    std::string values;
    for (const std::size_t read : reads_[tie])
      values += fmt::format("{}{}={}", values.empty() ? "" : " ", parameters_[members_[read]].name,
                            to_text(parameters_[members_[read]].values[bound_[read]]));
    problem =
        error(Code::kInvalid, "{}: constraint '{}' cannot be evaluated for {}: {}",
              constraint.where, constraint.expression.text(), values, holds.status().message());
  }
  if (!problem.is_ok()) return problem;
  return true;
}

Status ComponentSearch::account() {
  if (++steps_ < next_report_) return Status::ok();
  next_report_ = steps_ + kStepsPerReport;
  if (progress_ && !progress_(done_ / total_))
    return error(Code::kCancelled, "stopped while building the space");
  return steps_ < limits_.max_steps ? Status::ok() : too_many();
}

Status ComponentSearch::too_many() const {
  std::vector<std::string> names;
  for (const std::size_t member : members_) names.push_back(parameters_[member].name);
  return error(Code::kInvalid,
               "the space is too large: constraints tie {} together, and after {:.3g} % of their "
               "{:.3g} combinations {} are valid already (limit {}); give these parameters fewer "
               "values, or add constraints that reject early",
               join(names, ", "), 100 * done_ / total_, total_, codes_.size(), limits_.max_listed);
}

}  // namespace purlin::tune
