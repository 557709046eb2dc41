// SPDX-License-Identifier: Apache-2.0
// Constraints, one on a line: a space built from them is exactly what checking every config yields,
// and where that fails, building fails.
#include "base/text.h"
#include "tune/space/build.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace purlin;
using namespace purlin::tune;

std::vector<Parameter> parameters() {
  const auto integer = [](std::int64_t value) { return Value(value); };
  return {{"a", {integer(0), integer(1), integer(2), integer(3), integer(8)}, {}},
          {"b", {integer(-2), integer(0), integer(5)}, {}},
          {"c", {0.5, 1.0, 2.0}, {}},
          {"d", {std::string("x"), std::string("y")}, {}},
          {"e", {true, false}, {}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 400) return 0;
  std::vector<SpecExpression> constraints;
  for (const std::string& line :
       split(std::string(reinterpret_cast<const char*>(data), size), '\n')) {
    const Result<Expression> parsed = Expression::parse(line);
    if (!parsed.is_ok() || constraints.size() == 5) continue;
    for (const std::string& name : parsed->names())
      if (name.size() != 1 || name[0] < 'a' || name[0] > 'e') return 0;
    constraints.push_back({*parsed, "fuzz"});
  }
  const std::vector<Parameter> all = parameters();
  const Result<Space> space = build_space(all, constraints, Scope{});
  std::size_t valid = 0;
  bool fails = false;
  Assignment at(all.size());
  while (true) {
    const auto lookup = [&](std::string_view name) -> const Value* {
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].name == name) return &all[i].values[at[i]];
      return nullptr;
    };
    bool rejected = false, failed = false;
    for (const SpecExpression& constraint : constraints) {
      const Result<bool> holds = constraint.expression.evaluate_bool(lookup);
      rejected |= holds.is_ok() && !*holds;
      failed |= !holds.is_ok();
    }
    fails |= failed && !rejected;
    valid += rejected ? 0 : 1;
    if (space.is_ok() && space->find(at).has_value() == rejected) std::abort();
    std::size_t place = at.size();
    while (place > 0 && ++at[place - 1] == all[place - 1].values.size()) at[--place] = 0;
    if (place == 0) break;
  }
  if (space.is_ok() == (fails || valid == 0)) std::abort();
  if (space.is_ok() && space->size() != valid) std::abort();
  return 0;
}
