// SPDX-License-Identifier: Apache-2.0
// Expressions: any text parses or is refused; what parses evaluates to a value or an error, the
// same on each evaluation, and its recorded text parses to the same.
#include "model/expression/expression.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Expression> parsed = Expression::parse(text);
  if (!parsed.is_ok()) return 0;
  Scope scope;
  int i = 0;
  for (const std::string& name : parsed->names()) {
    const Value values[] = {std::int64_t{64}, 0.5, true, std::string("row"), std::int64_t{0}};
    scope.set(name, values[i++ % 5]);
  }
  const auto outcome = [&](const Expression& expression) {
    const Result<Value> value = expression.evaluate(scope.lookup());
    return value.is_ok() ? to_text(*value) : "error";
  };
  const Result<Expression> again = Expression::parse(parsed->text());
  if (!again.is_ok() || outcome(*again) != outcome(*parsed)) std::abort();
  return 0;
}
