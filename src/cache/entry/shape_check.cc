// SPDX-License-Identifier: Apache-2.0
#include "cache/entry/shape_check.h"

#include "cache/entry/constraint_cache.h"

namespace purlin::cache {

Status check_shape(const Entry& entry, const ProblemShape& problem) {
  Scope scope;
  scope.add(entry.config);
  scope.add(problem);
  scope.add(entry.facts);
  for (const std::string& text : entry.shape_constraints) {
    PURLIN_ASSIGN(const Expression constraint, Expression::parse(text));
    const Result<bool> holds = constraint.evaluate_bool(scope.lookup());
    if (!holds.is_ok()) return holds.status().with_context(text);
    if (!*holds)
      return error(Code::kInvalid, "'{}' does not hold for {} with {}", text, problem.text(),
                   entry.config.text());
  }
  return Status::ok();
}

std::optional<IntegerProgram> compile_shape_check(const Entry& entry,
                                                  const std::vector<std::string>& dimensions,
                                                  ConstraintCache& constraints) {
  const Expression::Lookup constants = [&](std::string_view name) {
    const Value* value = entry.config.find(name);
    return value != nullptr ? value : entry.facts.find(name);
  };
  IntegerProgram program;
  for (const std::string& text : entry.shape_constraints) {
    const Result<Expression>& constraint = constraints.parse(text);
    if (!constraint.is_ok() || !program.add(*constraint, dimensions, constants))
      return std::nullopt;
  }
  return program;
}

}  // namespace purlin::cache
