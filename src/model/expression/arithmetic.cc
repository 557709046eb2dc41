// SPDX-License-Identifier: Apache-2.0
// What operators and functions do with values: Python's rules on 64-bit integers.
#include "model/expression/integer.h"
#include "model/expression/node.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace purlin {
namespace {

Status overflow() {
  return error(Code::kInvalid, "result does not fit a 64-bit integer; use a real number (1.0 * x)");
}
Status zero_division() { return error(Code::kInvalid, "division by zero"); }

bool is_text(const Value& value) { return std::holds_alternative<std::string>(value); }
bool is_real(const Value& value) { return std::holds_alternative<double>(value); }

// REQUIRES: an integer or a boolean.
std::int64_t integer_of(const Value& value) {
  const auto* boolean = std::get_if<bool>(&value);
  return boolean != nullptr ? std::int64_t{*boolean} : std::get<std::int64_t>(value);
}

// REQUIRES: not a text.
double real_of(const Value& value) {
  const auto* real = std::get_if<double>(&value);
  return real != nullptr ? *real : static_cast<double>(integer_of(value));
}

Result<Value> real_to_integer(double value) {
  if (std::isnan(value)) return error(Code::kInvalid, "not a number cannot become an integer");
  // -2^63 is a double, 2^63 is the first that does not fit.
  if (!(value >= -0x1p63 && value < 0x1p63)) return overflow();
  return Value(static_cast<std::int64_t>(value));
}

// An integer, or a real that is one.
Result<std::int64_t> whole(const Value& value, std::string_view function) {
  if (is_text(value)) return error(Code::kInvalid, "{} needs numbers, not a text", function);
  if (!is_real(value)) return integer_of(value);
  const double real = std::get<double>(value);
  if (real != std::floor(real))
    return error(Code::kInvalid, "{} needs whole numbers, not {}", function, to_text(value));
  PURLIN_ASSIGN(const Value integer, real_to_integer(real));
  return std::get<std::int64_t>(integer);
}

// The error of a division that integer::floor_divide and its like do not define.
Status undefined_division(std::int64_t divisor) {
  return divisor == 0 ? zero_division() : overflow();
}

Result<Value> divided(std::optional<std::int64_t> result, std::int64_t divisor) {
  if (!result) return undefined_division(divisor);
  return Value(*result);
}

Result<Value> real_power(double base, double exponent) {
  if (base == 0 && exponent < 0) return zero_division();
  if (base < 0 && exponent != std::floor(exponent))
    return error(Code::kInvalid, "a fractional power of a negative number is not real");
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent))
    return error(Code::kInvalid, "result is too large for a real number");
  return Value(result);
}

Result<Value> integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return real_power(static_cast<double>(base), static_cast<double>(exponent));
  const std::optional<std::int64_t> result = integer::power(base, exponent);
  if (!result) return overflow();
  return Value(*result);
}

Result<Value> integer_binary(ExpressionKind kind, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (kind) {
    case ExpressionKind::kAdd:
      if (__builtin_add_overflow(a, b, &out)) return overflow();
      return Value(out);
    case ExpressionKind::kSubtract:
      if (__builtin_sub_overflow(a, b, &out)) return overflow();
      return Value(out);
    case ExpressionKind::kMultiply:
      if (__builtin_mul_overflow(a, b, &out)) return overflow();
      return Value(out);
    case ExpressionKind::kDivide:
      if (b == 0) return zero_division();
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case ExpressionKind::kFloorDivide:
      return divided(integer::floor_divide(a, b), b);
    case ExpressionKind::kModulo:
      return divided(integer::modulo(a, b), b);
    default:
      return integer_power(a, b);
  }
}

Result<Value> real_binary(ExpressionKind kind, double a, double b) {
  const bool divides = kind == ExpressionKind::kDivide || kind == ExpressionKind::kFloorDivide ||
                       kind == ExpressionKind::kModulo;
  if (divides && b == 0) return zero_division();
  switch (kind) {
    case ExpressionKind::kAdd:
      return Value(a + b);
    case ExpressionKind::kSubtract:
      return Value(a - b);
    case ExpressionKind::kMultiply:
      return Value(a * b);
    case ExpressionKind::kDivide:
      return Value(a / b);
    case ExpressionKind::kPower:
      return real_power(a, b);
    default:
      break;
  }
  // floor(a / b) can be one off where the quotient rounds up to a whole number; fmod is exact.
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b, quotient -= 1;
  return kind == ExpressionKind::kModulo ? Value(rest) : Value(std::round(quotient));
}

// -1, 0, 1, or 2 where one is not a number. REQUIRES: neither is a text.
int compare_numbers(const Value& left, const Value& right) {
  if (!is_real(left) && !is_real(right)) {
    const std::int64_t a = integer_of(left), b = integer_of(right);
    return a < b ? -1 : a > b ? 1 : 0;
  }
  // A long double holds every int64 exactly (64 bits of mantissa or more, asserted), so 2**53 + 1
  // is not equal to 2.0**53, as in Python.
  static_assert(std::numeric_limits<long double>::digits >= 63);
  const auto exact = [](const Value& value) {
    return is_real(value) ? static_cast<long double>(std::get<double>(value))
                          : static_cast<long double>(integer_of(value));
  };
  const long double a = exact(left), b = exact(right);
  return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

Result<Value> extreme(bool largest, const std::vector<Value>& arguments) {
  const Value* best = &arguments[0];
  for (const Value& argument : arguments) {
    const ExpressionComparison better =
        largest ? ExpressionComparison::kGreater : ExpressionComparison::kLess;
    PURLIN_ASSIGN(const bool wins, apply_comparison(better, argument, *best));
    if (wins) best = &argument;
  }
  return *best;
}

}  // namespace

Result<Value> apply_unary(ExpressionKind kind, const Value& operand) {
  if (kind == ExpressionKind::kNot) return Value(!truthy(operand));
  if (is_text(operand)) return error(Code::kInvalid, "a sign needs a number, not a text");
  if (is_real(operand)) {
    const double real = std::get<double>(operand);
    return Value(kind == ExpressionKind::kNegate ? -real : real);
  }
  const std::int64_t integer = integer_of(operand);
  if (kind == ExpressionKind::kPlus) return Value(integer);
  if (integer == std::numeric_limits<std::int64_t>::min()) return overflow();
  return Value(-integer);
}

Result<Value> apply_binary(ExpressionKind kind, const Value& left, const Value& right) {
  if (is_text(left) || is_text(right))
    return error(Code::kInvalid, "arithmetic needs numbers, not the text '{}'",
                 to_text(is_text(left) ? left : right));
  if (is_real(left) || is_real(right)) return real_binary(kind, real_of(left), real_of(right));
  return integer_binary(kind, integer_of(left), integer_of(right));
}

Result<bool> apply_comparison(ExpressionComparison comparison, const Value& left,
                              const Value& right) {
  if (comparison == ExpressionComparison::kIn || comparison == ExpressionComparison::kNotIn) {
    if (!is_text(left) || !is_text(right))
      return error(Code::kInvalid, "'in' needs a [list], or a text on both sides");
    const bool found =
        std::get<std::string>(right).find(std::get<std::string>(left)) != std::string::npos;
    return found == (comparison == ExpressionComparison::kIn);
  }
  int order = 2;
  if (is_text(left) && is_text(right)) {
    const int compared = std::get<std::string>(left).compare(std::get<std::string>(right));
    order = compared < 0 ? -1 : compared > 0 ? 1 : 0;
  } else if (!is_text(left) && !is_text(right)) {
    order = compare_numbers(left, right);
  } else if (comparison != ExpressionComparison::kEqual &&
             comparison != ExpressionComparison::kNotEqual) {
    return error(Code::kInvalid, "cannot order the text '{}' and a number",
                 to_text(is_text(left) ? left : right));
  }
  switch (comparison) {
    case ExpressionComparison::kEqual:
      return order == 0;
    case ExpressionComparison::kNotEqual:
      return order != 0;
    case ExpressionComparison::kLess:
      return order == -1;
    case ExpressionComparison::kLessEqual:
      return order == -1 || order == 0;
    case ExpressionComparison::kGreater:
      return order == 1;
    default:
      return order == 1 || order == 0;
  }
}

Result<Value> apply_function(ExpressionFunction function, const std::vector<Value>& arguments) {
  using F = ExpressionFunction;
  const Value& first = arguments[0];
  switch (function) {
    case F::kMin:
      return extreme(false, arguments);
    case F::kMax:
      return extreme(true, arguments);
    case F::kCeilDiv: {
      PURLIN_ASSIGN(const std::int64_t a, whole(first, "ceil_div"));
      PURLIN_ASSIGN(const std::int64_t b, whole(arguments[1], "ceil_div"));
      return divided(integer::ceil_divide(a, b), b);
    }
    case F::kRoundUp: {
      PURLIN_ASSIGN(const std::int64_t a, whole(first, "round_up"));
      PURLIN_ASSIGN(const std::int64_t b, whole(arguments[1], "round_up"));
      return divided(integer::round_up(a, b), b);
    }
    case F::kPow2Ceil: {
      PURLIN_ASSIGN(const std::int64_t a, whole(first, "pow2_ceil"));
      if (a > std::int64_t{1} << 62) return overflow();
      return Value(integer::pow2_ceil(a));
    }
    default:
      break;
  }
  if (is_text(first))
    return error(Code::kInvalid, "needs a number, not the text '{}'", to_text(first));
  const double real = real_of(first);
  switch (function) {
    case F::kFloat:
      return Value(real);
    case F::kLog2:
      if (!(real > 0)) return error(Code::kInvalid, "log2 needs a positive number");
      return Value(std::log2(real));
    case F::kSqrt:
      if (real < 0) return error(Code::kInvalid, "sqrt needs a number that is not negative");
      return Value(std::sqrt(real));
    case F::kAbs:
      if (is_real(first)) return Value(std::abs(real));
      return integer_of(first) < 0 ? apply_unary(ExpressionKind::kNegate, first)
                                   : Value(integer_of(first));
    default:
      break;
  }
  if (!is_real(first)) return Value(integer_of(first));
  switch (function) {
    case F::kCeil:
      return real_to_integer(std::ceil(real));
    case F::kFloor:
      return real_to_integer(std::floor(real));
    case F::kRound:
      return real_to_integer(std::nearbyint(real));  // halves to even, as Python
    default:
      return real_to_integer(std::trunc(real));
  }
}

}  // namespace purlin
