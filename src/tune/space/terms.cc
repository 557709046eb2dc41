// SPDX-License-Identifier: Apache-2.0
#include "tune/space/terms.h"

#include "model/expression/integer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace purlin::tune {
namespace {

using Node = Expression::Node;
using NodeKind = Node::Kind;
using Comparison = Node::Comparison;

// Integers within are exact as reals too, so that mixing the two changes nothing.
constexpr double kExact = 0x1p53;

// Without a check for overflow: the bounds of a term exclude it.
std::int64_t bounded_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) result *= base;
  return result;
}

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace

// A term's cells at the level being bound: a column, or one cell for all lanes.
struct Terms::View {
  const Cell* cells;
  const std::uint8_t* failed;  // nullptr: cannot fail
  std::size_t step;
  bool is_real;
  double real(std::size_t lane) const {
    const Cell& cell = cells[lane * step];
    return is_real ? cell.real : static_cast<double>(cell.integer);
  }
  std::int64_t integer(std::size_t lane) const { return cells[lane * step].integer; }
  bool truth(std::size_t lane) const {
    return is_real ? cells[lane * step].real != 0 : cells[lane * step].integer != 0;
  }
  bool bad(std::size_t lane) const { return failed != nullptr && failed[lane * step] != 0; }
};

Terms::Terms(std::vector<const Parameter*> members, const Scope& constants)
    : members_(std::move(members)), constants_(constants), level_of_(members_.size(), -1) {}

std::optional<TermId> Terms::compile(const Expression& expression) {
  compiling_.push_back(&expression);
  const std::optional<TermId> root = lower(*expression.root(), true);
  compiling_.pop_back();
  // Whether a text is empty is not known of it.
  if (root && terms_[*root].type == Type::kText) return std::nullopt;
  return root;
}

// `truth`: only whether the result is true matters, so that `a and b` need not be b.
std::optional<TermId> Terms::lower(const Node& node, bool truth) {
  const auto operands = [&](bool as_truth) -> std::optional<std::vector<TermId>> {
    std::vector<TermId> out;
    for (const Node& child : node.children) {
      const std::optional<TermId> id = lower(child, as_truth);
      if (!id) return std::nullopt;
      out.push_back(*id);
    }
    return out;
  };
  const auto simple = [&](Kind kind, bool as_truth) -> std::optional<TermId> {
    auto children = operands(as_truth);
    return children ? add(kind, std::move(*children)) : std::nullopt;
  };
  switch (node.kind) {
    case NodeKind::kLiteral:
      return lower_value(node.literal);
    case NodeKind::kName:
      return lower_name(compiling_.back()->names()[node.name]);
    case NodeKind::kNegate:
      return simple(Kind::kNegate, false);
    case NodeKind::kPlus: {
      const auto operand = lower(node.children[0], false);
      return operand && terms_[*operand].type != Type::kText ? operand : std::nullopt;
    }
    case NodeKind::kNot: {
      const auto operand = lower(node.children[0], true);
      if (!operand || terms_[*operand].type == Type::kText) return std::nullopt;
      return negation(*operand);
    }
    case NodeKind::kAnd:
      return truth ? simple(Kind::kAnd, true) : std::nullopt;
    case NodeKind::kOr:
      return truth ? simple(Kind::kOr, true) : std::nullopt;
    case NodeKind::kAdd:
      return simple(Kind::kAdd, false);
    case NodeKind::kSubtract:
      return simple(Kind::kSubtract, false);
    case NodeKind::kMultiply:
      return simple(Kind::kMultiply, false);
    case NodeKind::kDivide:
      return simple(Kind::kDivide, false);
    case NodeKind::kFloorDivide:
      return simple(Kind::kFloorDivide, false);
    case NodeKind::kModulo:
      return simple(Kind::kModulo, false);
    case NodeKind::kPower:
      return simple(Kind::kPower, false);
    case NodeKind::kCompare:
      return lower_comparisons(node);
    case NodeKind::kConditional: {
      const auto condition = lower(node.children[0], true);
      const auto yes = lower(node.children[1], truth), no = lower(node.children[2], truth);
      if (!condition || !yes || !no) return std::nullopt;
      return add(Kind::kSelect, {*condition, *yes, *no});
    }
    case NodeKind::kCall:
      return lower_call(node);
    default:
      return std::nullopt;
  }
}

std::optional<TermId> Terms::lower_name(std::string_view name) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Parameter* member) { return member->name == name; });
  if (found == members_.end()) {
    const Value* value = constants_.find(name);
    return value != nullptr ? lower_value(*value) : std::nullopt;
  }
  Term term;
  term.kind = Kind::kParameter;
  term.member = static_cast<std::size_t>(found - members_.begin());
  term.reads = {term.member};
  std::size_t reals = 0, texts = 0;
  for (const Value& value : (*found)->values) {
    reals += std::holds_alternative<double>(value) ? 1 : 0;
    texts += std::holds_alternative<std::string>(value) ? 1 : 0;
  }
  if (texts > 0 && texts < (*found)->values.size()) return std::nullopt;
  term.type = texts > 0 ? Type::kText : reals > 0 ? Type::kReal : Type::kInteger;
  bool first = true;
  for (const Value& value : (*found)->values) {
    if (texts > 0) break;
    const double number = to_double(value).value();
    if (!(std::abs(number) < kExact)) return std::nullopt;
    term.low = first ? number : std::min(term.low, number);
    term.high = first ? number : std::max(term.high, number);
    first = false;
  }
  return intern(std::move(term));
}

std::optional<TermId> Terms::lower_value(const Value& value) {
  Term term;
  Cell cell{};
  if (const auto* text = std::get_if<std::string>(&value)) {
    term.type = Type::kText;
    cell.integer = text_number(*text);
    return intern(std::move(term), cell);
  }
  term.low = term.high = to_double(value).value();
  if (!(std::abs(term.low) < kExact)) return std::nullopt;
  if (std::holds_alternative<double>(value)) {
    term.type = Type::kReal;
    cell.real = term.low;
  } else {
    cell.integer = static_cast<std::int64_t>(term.low);
  }
  return intern(std::move(term), cell);
}

std::int64_t Terms::text_number(const std::string& text) {
  return texts_.emplace(text, static_cast<std::int64_t>(texts_.size()) + 1).first->second;
}

// A chain is the conjunction of its links; `in` a list is the disjunction of equalities.
std::optional<TermId> Terms::lower_comparisons(const Node& node) {
  std::vector<TermId> links;
  std::optional<TermId> left = lower(node.children[0], false);
  for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
    if (!left) return std::nullopt;
    const Comparison comparison = node.comparisons[i];
    const Node& operand = node.children[i + 1];
    std::optional<TermId> link;
    if (operand.kind == NodeKind::kList) {
      std::vector<TermId> equalities;
      for (const Node& item : operand.children) {
        const std::optional<TermId> right = lower(item, false);
        // All items are evaluated before the first is compared.
        if (!right || terms_[*right].can_fail) return std::nullopt;
        const std::optional<TermId> equality = add(Kind::kEqual, {*left, *right});
        if (!equality) return std::nullopt;
        equalities.push_back(*equality);
      }
      if (equalities.empty()) return std::nullopt;
      link = add(Kind::kOr, std::move(equalities));
      if (link && comparison == Comparison::kNotIn) link = negation(*link);
    } else {
      const std::optional<TermId> right = lower(operand, false);
      if (!right) return std::nullopt;
      switch (comparison) {
        case Comparison::kEqual:
          link = add(Kind::kEqual, {*left, *right});
          break;
        case Comparison::kNotEqual:
          link = add(Kind::kNotEqual, {*left, *right});
          break;
        case Comparison::kLess:
          link = add(Kind::kLess, {*left, *right});
          break;
        case Comparison::kLessEqual:
          link = add(Kind::kLessEqual, {*left, *right});
          break;
        case Comparison::kGreater:
          link = add(Kind::kLess, {*right, *left});
          break;
        case Comparison::kGreaterEqual:
          link = add(Kind::kLessEqual, {*right, *left});
          break;
        default:
          return std::nullopt;
      }
      left = right;
    }
    if (!link) return std::nullopt;
    links.push_back(*link);
  }
  return links.size() == 1 ? std::optional(links.front()) : add(Kind::kAnd, std::move(links));
}

std::optional<TermId> Terms::lower_call(const Node& node) {
  using F = ExpressionFunction;
  std::vector<TermId> arguments;
  bool whole = true;
  for (const Node& child : node.children) {
    const std::optional<TermId> id = lower(child, false);
    if (!id || terms_[*id].type == Type::kText) return std::nullopt;
    whole &= terms_[*id].type == Type::kInteger;
    arguments.push_back(*id);
  }
  const TermId first = arguments.front();
  switch (node.function) {
    case F::kMin:
      return add(Kind::kMin, std::move(arguments));
    case F::kMax:
      return add(Kind::kMax, std::move(arguments));
    case F::kAbs:
      return add(Kind::kAbs, std::move(arguments));
    case F::kFloat:
      return add(Kind::kFloat, std::move(arguments));
    case F::kInt:
      return whole ? first : add(Kind::kTruncate, std::move(arguments));
    case F::kCeil:
      return whole ? first : add(Kind::kCeil, std::move(arguments));
    case F::kFloor:
      return whole ? first : add(Kind::kFloor, std::move(arguments));
    case F::kRound:
      return whole ? first : add(Kind::kRound, std::move(arguments));
    case F::kLog2:
      return add(Kind::kLog2, std::move(arguments));
    case F::kSqrt:
      return add(Kind::kSqrt, std::move(arguments));
    case F::kCeilDiv:
      return whole ? add(Kind::kCeilDiv, std::move(arguments)) : std::nullopt;
    case F::kPow2Ceil:
      return whole ? add(Kind::kPow2Ceil, std::move(arguments)) : std::nullopt;
    case F::kRoundUp: {
      if (!whole) return std::nullopt;
      const TermId multiple = arguments[1];
      const std::optional<TermId> count = add(Kind::kCeilDiv, std::move(arguments));
      return count ? add(Kind::kMultiply, {*count, multiple}) : std::nullopt;
    }
  }
  return std::nullopt;
}

TermId Terms::index_of(std::size_t member) {
  Term term;
  term.kind = Kind::kIndex;
  term.member = member;
  term.reads = {member};
  term.high = static_cast<double>(members_[member]->values.size() - 1);
  return intern(std::move(term));
}

TermId Terms::negation(TermId term) { return *add(Kind::kNot, {term}); }

std::optional<TermId> Terms::add(Kind kind, std::vector<TermId> children) {
  Term term;
  term.kind = kind;
  term.children = std::move(children);
  for (const TermId child : term.children) {
    term.can_fail |= terms_[child].can_fail;
    std::vector<std::size_t> all;
    std::set_union(term.reads.begin(), term.reads.end(), terms_[child].reads.begin(),
                   terms_[child].reads.end(), std::back_inserter(all));
    term.reads = std::move(all);
  }
  if (!derive(term)) return std::nullopt;
  const bool bounded = std::abs(term.low) < kExact && std::abs(term.high) < kExact;
  if (!bounded && term.type != Type::kText) return std::nullopt;
  if (const std::optional<bool> decided = decide(term)) return lower_value(Value(*decided));
  if (!term.reads.empty()) return intern(std::move(term));
  // Constant: computed now, once and for all.
  level_ = -1;
  Cell cell{};
  std::uint8_t failed = 0;
  const TermId id = intern(std::move(term));
  compute(id);
  cell = values_[id][0];
  if (terms_[id].can_fail) failed = failed_[id][0];
  if (failed != 0) return std::nullopt;
  Term constant;
  constant.type = terms_[id].type;
  constant.low = constant.high = constant.type == Type::kReal   ? cell.real
                                 : constant.type == Type::kText ? 0
                                                                : static_cast<double>(cell.integer);
  return intern(std::move(constant), cell);
}

// The result of a comparison, if the bounds alone decide it.
std::optional<bool> Terms::decide(const Term& term) const {
  if (term.can_fail || term.children.size() != 2) return std::nullopt;
  const Term &a = terms_[term.children[0]], &b = terms_[term.children[1]];
  if (a.type == Type::kText) return std::nullopt;
  const bool apart = a.high < b.low || b.high < a.low;
  if (term.kind == Kind::kLess && a.high < b.low) return true;
  if (term.kind == Kind::kLess && a.low >= b.high) return false;
  if (term.kind == Kind::kLessEqual && a.high <= b.low) return true;
  if (term.kind == Kind::kLessEqual && a.low > b.high) return false;
  if (term.kind == Kind::kEqual && apart) return false;
  if (term.kind == Kind::kNotEqual && apart) return true;
  return std::nullopt;
}

// Type, bounds and whether it can fail, from those of the children.
bool Terms::derive(Term& term) const {
  const Term& a = terms_[term.children[0]];
  const auto is_text = [&](TermId id) { return terms_[id].type == Type::kText; };
  const bool any_text = std::any_of(term.children.begin(), term.children.end(), is_text);
  switch (term.kind) {
    case Kind::kNot:
    case Kind::kAnd:
    case Kind::kOr:
      term.high = 1;
      return !any_text;
    case Kind::kEqual:
    case Kind::kNotEqual:
      term.high = 1;
      return !any_text || (is_text(term.children[0]) && is_text(term.children[1]));
    case Kind::kLess:
    case Kind::kLessEqual:
      term.high = 1;
      return !any_text;
    case Kind::kSelect: {
      const Term &yes = terms_[term.children[1]], &no = terms_[term.children[2]];
      if (any_text) return false;
      term.type = yes.type == Type::kReal || no.type == Type::kReal ? Type::kReal : Type::kInteger;
      term.low = std::min(yes.low, no.low);
      term.high = std::max(yes.high, no.high);
      return true;
    }
    case Kind::kMin:
    case Kind::kMax: {
      const bool least = term.kind == Kind::kMin;
      term.low = a.low, term.high = a.high;
      for (const TermId child : term.children) {
        const Term& each = terms_[child];
        if (each.type == Type::kReal) term.type = Type::kReal;
        term.low = least ? std::min(term.low, each.low) : std::max(term.low, each.low);
        term.high = least ? std::min(term.high, each.high) : std::max(term.high, each.high);
      }
      return true;
    }
    default:
      return !any_text && derive_arithmetic(term);
  }
}

bool Terms::derive_arithmetic(Term& term) const {
  const Term& a = terms_[term.children[0]];
  const Term& b = terms_[term.children.back()];
  const bool real = a.type == Type::kReal || b.type == Type::kReal;
  const double most_a = std::max(std::abs(a.low), std::abs(a.high));
  const double most_b = std::max(std::abs(b.low), std::abs(b.high));
  const bool b_may_be_zero = b.low <= 0 && b.high >= 0;
  term.type = real ? Type::kReal : Type::kInteger;
  const auto hull = [&](const auto& function) {
    const double ends[] = {function(a.low, b.low), function(a.low, b.high), function(a.high, b.low),
                           function(a.high, b.high)};
    term.low = *std::min_element(std::begin(ends), std::end(ends));
    term.high = *std::max_element(std::begin(ends), std::end(ends));
    return true;
  };
  const auto within = [&](double bound) {
    term.low = -bound, term.high = bound;
    return true;
  };
  switch (term.kind) {
    case Kind::kNegate:
      term.low = -a.high, term.high = -a.low;
      return true;
    case Kind::kAdd:
      return hull([](double x, double y) { return x + y; });
    case Kind::kSubtract:
      return hull([](double x, double y) { return x - y; });
    case Kind::kMultiply:
      return hull([](double x, double y) { return x * y; });
    case Kind::kDivide:
      term.type = Type::kReal;
      term.can_fail |= b_may_be_zero;
      if (!b_may_be_zero) return hull([](double x, double y) { return x / y; });
      return b.type == Type::kInteger && within(most_a);
    case Kind::kFloorDivide:
    case Kind::kCeilDiv:
      term.can_fail |= b_may_be_zero;
      if (real) return false;
      if (a.low >= 0 && b.low > 0) {
        term.low = 0, term.high = a.high / b.low + 1;
        return true;
      }
      return within(most_a + 1);
    case Kind::kModulo:
      term.can_fail |= b_may_be_zero;
      if (b.low > 0) {
        term.low = 0, term.high = b.high;
        return true;
      }
      return within(most_b);
    case Kind::kPower: {
      if (real || b.low < 0 || b.high > 64) return false;
      const double most = std::pow(std::max(most_a, 1.0), b.high);
      term.low = a.low < 0 ? -most : 0, term.high = most;
      return true;
    }
    case Kind::kAbs:
      term.low = a.low > 0 ? a.low : 0, term.high = most_a;
      return true;
    case Kind::kFloat:
      term.type = Type::kReal;
      term.low = a.low, term.high = a.high;
      return true;
    case Kind::kFloor:
    case Kind::kCeil:
    case Kind::kRound:
    case Kind::kTruncate:
      term.type = Type::kInteger;
      term.low = std::floor(a.low), term.high = std::ceil(a.high);
      return true;
    case Kind::kLog2:
      term.type = Type::kReal;
      term.low = std::log2(a.low), term.high = std::log2(a.high);
      return a.low > 0;
    case Kind::kSqrt:
      term.type = Type::kReal;
      term.high = std::sqrt(a.high);
      return a.low >= 0;
    case Kind::kPow2Ceil:
      term.low = 1, term.high = std::max(1.0, 2 * a.high);
      return true;
    default:
      return false;
  }
}

TermId Terms::intern(Term term, Cell constant) {
  std::string key{static_cast<char>(term.kind), static_cast<char>(term.type)};
  const auto append = [&key](const auto& value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    key.append(bytes, sizeof value);
  };
  append(term.member);
  append(constant);
  for (const TermId child : term.children) append(child);
  const auto [found, is_new] = known_.emplace(std::move(key), static_cast<TermId>(terms_.size()));
  if (!is_new) return found->second;
  // Parameters have their cells for good.
  std::vector<Cell> cells(1, constant);
  if (term.kind == Kind::kParameter || term.kind == Kind::kIndex) {
    cells.clear();
    std::int64_t place = 0;
    for (const Value& value : members_[term.member]->values) {
      Cell cell{};
      if (term.kind == Kind::kIndex) {
        cell.integer = place++;
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        cell.integer = text_number(*text);
      } else if (term.type == Type::kReal) {
        cell.real = to_double(value).value();
      } else {
        cell.integer = static_cast<std::int64_t>(to_double(value).value());
      }
      cells.push_back(cell);
    }
  }
  values_.push_back(std::move(cells));
  failed_.emplace_back(term.can_fail ? 1 : 0);
  terms_.push_back(std::move(term));
  return found->second;
}

std::size_t Terms::lanes(const Term& term) const {
  if (term.ready < 0) return 1;
  for (const std::size_t member : term.reads)
    if (level_of_[member] == term.ready) return members_[member]->values.size();
  return 1;
}

void Terms::set_order(const std::vector<std::size_t>& order) {
  for (std::size_t level = 0; level < order.size(); ++level)
    level_of_[order[level]] = static_cast<int>(level);
  for (TermId id = 0; id < terms_.size(); ++id) {
    Term& term = terms_[id];
    term.ready = -1;
    for (const std::size_t member : term.reads)
      term.ready = std::max(term.ready, level_of_[member]);
    if (term.kind == Kind::kParameter || term.kind == Kind::kIndex || term.reads.empty()) continue;
    values_[id].resize(lanes(term));
    if (term.can_fail) failed_[id].resize(lanes(term));
  }
}

Cell Terms::stand_in(TermId id) const {
  Cell cell{};
  if (terms_[id].type == Type::kReal) {
    cell.real = terms_[id].low;
  } else {
    cell.integer = static_cast<std::int64_t>(terms_[id].low);
  }
  return cell;
}

Terms::View Terms::view(TermId id) const {
  const Term& term = terms_[id];
  return {values_[id].data(), term.can_fail ? failed_[id].data() : nullptr,
          term.ready == level_ && term.ready >= 0 ? std::size_t{1} : std::size_t{0},
          term.type == Type::kReal};
}

void Terms::compute(TermId id) {
  const Term& term = terms_[id];
  Cell* out = values_[id].data();
  std::uint8_t* failed = term.can_fail ? failed_[id].data() : nullptr;
  switch (term.kind) {
    case Kind::kConstant:
    case Kind::kParameter:
    case Kind::kIndex:
      return;
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kSelect:
      return compute_lazy(term, values_[id].size(), out, failed);
    default:
      return compute_strict(term, values_[id].size(), out, failed);
  }
}

// Those that do not always look at all their children.
void Terms::compute_lazy(const Term& term, std::size_t count, Cell* out,
                         std::uint8_t* failed) const {
  if (term.kind == Kind::kSelect) {
    const View condition = view(term.children[0]);
    const View sides[] = {view(term.children[1]), view(term.children[2])};
    for (std::size_t lane = 0; lane < count; ++lane) {
      const View& side = sides[condition.truth(lane) ? 0 : 1];
      if (term.type == Type::kReal) {
        out[lane].real = side.real(lane);
      } else {
        out[lane].integer = side.integer(lane);
      }
      if (failed != nullptr) failed[lane] = condition.bad(lane) || side.bad(lane) ? 1 : 0;
    }
    return;
  }
  const bool decisive = term.kind == Kind::kOr;  // the truth that ends the evaluation
  for (std::size_t lane = 0; lane < count; ++lane) out[lane].integer = decisive ? 0 : 1;
  if (failed != nullptr) std::fill_n(failed, count, std::uint8_t{0});
  for (const TermId child : term.children) {
    const View operand = view(child);
    for (std::size_t lane = 0; lane < count; ++lane) {
      if ((out[lane].integer != 0) == decisive) continue;
      if (failed != nullptr && (failed[lane] != 0 || operand.bad(lane))) {
        failed[lane] = 1;
      } else {
        out[lane].integer = operand.truth(lane) ? 1 : 0;
      }
    }
  }
}

void Terms::compute_strict(const Term& term, std::size_t count, Cell* out,
                           std::uint8_t* failed) const {
  const View a = view(term.children[0]), b = view(term.children.back());
  const bool real = a.is_real || b.is_real;
  if (failed != nullptr)
    for (std::size_t lane = 0; lane < count; ++lane)
      failed[lane] = a.bad(lane) || b.bad(lane) ? 1 : 0;
  const auto integers = [&](const auto& function) {
    for (std::size_t lane = 0; lane < count; ++lane)
      out[lane].integer = function(a.integer(lane), b.integer(lane));
  };
  const auto reals = [&](const auto& function) {
    for (std::size_t lane = 0; lane < count; ++lane)
      out[lane].real = function(a.real(lane), b.real(lane));
  };
  const auto compares = [&](const auto& function) {
    for (std::size_t lane = 0; lane < count; ++lane)
      out[lane].integer =
          (real ? function(a.real(lane), b.real(lane)) : function(a.integer(lane), b.integer(lane)))
              ? 1
              : 0;
  };
  // A divisor of zero fails; 1 stands in for it.
  const auto divides = [&](const auto& function) {
    for (std::size_t lane = 0; lane < count; ++lane) {
      std::int64_t divisor = b.integer(lane);
      if (divisor == 0) failed[lane] = 1, divisor = 1;
      out[lane].integer = function(a.integer(lane), divisor);
    }
  };
  const auto divides_real = [&](const auto& function) {
    for (std::size_t lane = 0; lane < count; ++lane) {
      double divisor = b.real(lane);
      if (divisor == 0) failed[lane] = 1, divisor = 1;
      out[lane].real = function(a.real(lane), divisor);
    }
  };
  const auto rounds = [&](const auto& function) {
    for (std::size_t lane = 0; lane < count; ++lane)
      out[lane].integer = static_cast<std::int64_t>(function(a.real(lane)));
  };
  const auto extremes = [&](const auto& better) {
    for (std::size_t lane = 0; lane < count; ++lane) {
      if (term.type == Type::kReal) {
        out[lane].real = a.real(lane);
      } else {
        out[lane].integer = a.integer(lane);
      }
    }
    for (const TermId child : term.children) {
      const View other = view(child);
      for (std::size_t lane = 0; lane < count; ++lane) {
        if (term.type == Type::kReal) {
          if (better(other.real(lane), out[lane].real)) out[lane].real = other.real(lane);
        } else if (better(other.integer(lane), out[lane].integer)) {
          out[lane].integer = other.integer(lane);
        }
        if (failed != nullptr && other.bad(lane)) failed[lane] = 1;
      }
    }
  };
  switch (term.kind) {
    case Kind::kNot:
      for (std::size_t lane = 0; lane < count; ++lane) out[lane].integer = a.truth(lane) ? 0 : 1;
      return;
    case Kind::kNegate:
      if (real) return reals([](double x, double) { return -x; });
      return integers([](std::int64_t x, std::int64_t) { return -x; });
    case Kind::kAdd:
      if (real) return reals([](double x, double y) { return x + y; });
      return integers([](std::int64_t x, std::int64_t y) { return x + y; });
    case Kind::kSubtract:
      if (real) return reals([](double x, double y) { return x - y; });
      return integers([](std::int64_t x, std::int64_t y) { return x - y; });
    case Kind::kMultiply:
      if (real) return reals([](double x, double y) { return x * y; });
      return integers([](std::int64_t x, std::int64_t y) { return x * y; });
    case Kind::kDivide:
      return divides_real([](double x, double y) { return x / y; });
    case Kind::kFloorDivide:
      return divides([](std::int64_t x, std::int64_t y) { return integer::floor_quotient(x, y); });
    case Kind::kCeilDiv:
      return divides(
          [](std::int64_t x, std::int64_t y) { return -integer::floor_quotient(-x, y); });
    case Kind::kModulo:
      if (real) return divides_real([](double x, double y) { return modulo(x, y); });
      return divides([](std::int64_t x, std::int64_t y) { return integer::floor_remainder(x, y); });
    case Kind::kPower:
      return integers([](std::int64_t x, std::int64_t y) { return bounded_power(x, y); });
    case Kind::kEqual:
      return compares([](auto x, auto y) { return x == y; });
    case Kind::kNotEqual:
      return compares([](auto x, auto y) { return x != y; });
    case Kind::kLess:
      return compares([](auto x, auto y) { return x < y; });
    case Kind::kLessEqual:
      return compares([](auto x, auto y) { return x <= y; });
    case Kind::kMin:
      return extremes([](auto x, auto y) { return x < y; });
    case Kind::kMax:
      return extremes([](auto x, auto y) { return x > y; });
    case Kind::kAbs:
      if (real) return reals([](double x, double) { return std::abs(x); });
      return integers([](std::int64_t x, std::int64_t) { return std::abs(x); });
    case Kind::kFloat:
      return reals([](double x, double) { return x; });
    case Kind::kFloor:
      return rounds([](double x) { return std::floor(x); });
    case Kind::kCeil:
      return rounds([](double x) { return std::ceil(x); });
    case Kind::kRound:
      return rounds([](double x) { return std::nearbyint(x); });
    case Kind::kTruncate:
      return rounds([](double x) { return std::trunc(x); });
    case Kind::kLog2:
      return reals([](double x, double) { return std::log2(x); });
    case Kind::kSqrt:
      return reals([](double x, double) { return std::sqrt(x); });
    case Kind::kPow2Ceil:
      return integers([](std::int64_t x, std::int64_t) { return integer::pow2_ceil(x); });
    default:
      return;
  }
}

}  // namespace purlin::tune
