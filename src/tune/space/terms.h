// SPDX-License-Identifier: Apache-2.0
// Terms: constraints compiled for evaluation over many values of one parameter at once.
//
// Every distinct subexpression of all constraints becomes one term, with bounds on its value, so
// that integers provably stay below 2^53 and need no check, and with whether it can fail (divide by
// zero). A term is computed as a column, one cell for each value of the parameter being bound;
// terms of parameters bound before are single cells. What does not fit (bounds too wide, mixed
// types, a rare function) is not compiled, and the caller asks the Expression itself.
// Thread-safety: belongs to one thread.
#pragma once

#include "model/expression/node.h"
#include "model/spec/spec.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::tune {

using TermId = std::uint32_t;

union Cell {
  std::int64_t integer;
  double real;
};

struct Term {
  enum class Kind : std::uint8_t {
    kConstant,
    kParameter,  // value of `member`
    kIndex,      // place of that value in the parameter's list
    kNegate,
    kNot,
    kAnd,
    kOr,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kPower,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kSelect,  // children: condition, value if true, value if false
    kMin,
    kMax,
    kAbs,
    kFloat,
    kFloor,
    kCeil,
    kRound,
    kTruncate,
    kLog2,
    kSqrt,
    kCeilDiv,
    kPow2Ceil,
  };
  // Texts are numbered; only equality is known of them.
  enum class Type : std::uint8_t { kInteger, kReal, kText };

  Kind kind = Kind::kConstant;
  Type type = Type::kInteger;
  bool can_fail = false;
  double low = 0, high = 0;  // bounds of a number
  std::size_t member = 0;
  std::vector<TermId> children;
  std::vector<std::size_t> reads;  // members, ascending
  int ready = -1;                  // the level that binds the last of them; -1 = constant
};

class Terms {
 public:
  // `members` are the parameters that levels bind, by place; they outlive this.
  Terms(std::vector<const Parameter*> members, const Scope& constants);

  // The truth of an expression; nullopt where it is not compiled.
  std::optional<TermId> compile(const Expression& expression);
  TermId index_of(std::size_t member);
  TermId negation(TermId term);
  const Term& operator[](TermId id) const { return terms_[id]; }
  std::size_t size() const { return terms_.size(); }

  // Which member each level binds. Terms get their `ready` from it.
  void set_order(const std::vector<std::size_t>& order);

  // What a term is for lane `lane` of the level being bound.
  Cell cell(TermId id, std::size_t lane) const {
    return *(values_[id].data() + (terms_[id].ready == level_ ? lane : 0));
  }
  bool failed(TermId id, std::size_t lane) const {
    return terms_[id].can_fail && failed_[id][terms_[id].ready == level_ ? lane : 0] != 0;
  }
  bool truth(TermId id, std::size_t lane) const {
    const Cell value = cell(id, lane);
    return terms_[id].type == Term::Type::kReal ? value.real != 0 : value.integer != 0;
  }
  // A value that keeps to the bounds, where no particular one is meant.
  Cell stand_in(TermId id) const;
  // Makes `level` the one being bound.
  void start(int level) { level_ = level; }
  // A term of an earlier level, as the state reached has it.
  void load(TermId id, Cell value, bool failed) {
    values_[id][0] = value;
    if (terms_[id].can_fail) failed_[id][0] = failed ? 1 : 0;
  }
  // A term that becomes ready at this level. REQUIRES: its children are loaded or computed.
  void compute(TermId id);

 private:
  using Kind = Term::Kind;
  using Type = Term::Type;
  struct View;
  std::optional<TermId> lower(const Expression::Node& node, bool truth);
  std::optional<TermId> lower_name(std::string_view name);
  std::optional<TermId> lower_value(const Value& value);
  std::optional<TermId> lower_comparisons(const Expression::Node& node);
  std::optional<TermId> lower_call(const Expression::Node& node);
  std::optional<TermId> add(Kind kind, std::vector<TermId> children);
  std::optional<bool> decide(const Term& term) const;
  bool derive(Term& term) const;
  bool derive_arithmetic(Term& term) const;
  TermId intern(Term term, Cell constant = {});
  std::int64_t text_number(const std::string& text);
  View view(TermId id) const;
  void compute_lazy(const Term& term, std::size_t count, Cell* out, std::uint8_t* failed) const;
  void compute_strict(const Term& term, std::size_t count, Cell* out, std::uint8_t* failed) const;
  std::size_t lanes(const Term& term) const;

  std::vector<const Parameter*> members_;
  const Scope& constants_;
  std::vector<const Expression*> compiling_;
  std::vector<Term> terms_;
  std::vector<std::vector<Cell>> values_;          // by term: one cell, or one for each lane
  std::vector<std::vector<std::uint8_t>> failed_;  // by term that can fail
  std::unordered_map<std::string, TermId> known_;  // by what it is
  std::unordered_map<std::string, std::int64_t> texts_;
  std::vector<int> level_of_;  // by member
  int level_ = -1;
};

}  // namespace purlin::tune
