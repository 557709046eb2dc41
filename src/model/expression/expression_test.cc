// SPDX-License-Identifier: Apache-2.0
#include "model/expression/expression.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

Scope sample_scope() {
  Scope scope;
  scope.set("BM", std::int64_t{64});
  scope.set("TM", std::int64_t{8});
  scope.set("zero", std::int64_t{0});
  scope.set("half", 0.5);
  scope.set("on", true);
  scope.set("off", false);
  scope.set("layout", std::string("nhwc"));
  scope.set("big", std::int64_t{INT64_MAX});
  return scope;
}

std::string result_of(std::string_view text) {
  const Result<Expression> parsed = Expression::parse(text);
  if (!parsed.is_ok()) return "error: " + parsed.status().message();
  const Scope scope = sample_scope();
  const Result<Value> value = parsed->evaluate(scope.lookup());
  return value.is_ok() ? to_text(*value) : "error: " + value.status().message();
}

struct Case {
  std::string_view text, expected;
};

TEST(Expression, MeansWhatPythonMeans) {
  // Each line was checked against CPython 3.11 (ceil_div, round_up, pow2_ceil by their definition).
  constexpr Case kCases[] = {
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"7 // 2", "3"},
      {"-7 // 2", "-4"},
      {"7 // -2", "-4"},
      {"-7 // -2", "3"},
      {"7 % 3", "1"},
      {"-7 % 3", "2"},
      {"7 % -3", "-2"},
      {"-7 % -3", "-1"},
      {"7 / 2", "3.5"},
      {"6 / 2", "3.0"},
      {"-7.5 // 2", "-4.0"},
      {"-7.5 % 2", "0.5"},
      {"7.5 % -2", "-0.5"},
      {"0.3 // 0.1", "2.0"},
      {"1 // 0.1", "9.0"},
      {"2 ** 10", "1024"},
      {"2 ** 3 ** 2", "512"},
      {"-2 ** 2", "-4"},
      {"2 ** -1", "0.5"},
      {"(-2) ** 3", "-8"},
      {"2 ** 0.5", "1.4142135623730951"},
      {"0 ** 0", "1"},
      {"(-1) ** 63", "-1"},
      {"2 ** 62", "4611686018427387904"},
      {"--3", "3"},
      {"+True", "1"},
      {"-True", "-1"},
      {"True + True", "2"},
      {"10 - 4 - 3", "3"},
      {"64 // 4 // 2", "8"},
      {"100 / 10 / 5", "2.0"},
      {"1 < 2 < 3", "True"},
      {"1 < 3 < 2", "False"},
      {"3 > 2 == True", "False"},
      {"32 <= BM * TM <= 1024", "True"},
      {"1 == 1.0", "True"},
      {"True == 1", "True"},
      {"9007199254740993 == 9007199254740992.0", "False"},
      {"9007199254740993 > 9007199254740992.0", "True"},
      {"1 != 'a'", "True"},
      {"layout == 'nhwc'", "True"},
      {"layout < \"z\"", "True"},
      {"'hw' in layout", "True"},
      {"'x' not in layout", "True"},
      {"BM in [16, 32, 64]", "True"},
      {"BM in (16, 32)", "False"},
      {"BM not in [16, 32]", "True"},
      {"BM in []", "False"},
      {"2 < 3 in [3]", "True"},
      {"(3 in (3,)) == True", "True"},
      {"0 or 5", "5"},
      {"0 and 5", "0"},
      {"3 and 5", "5"},
      {"3 or 5", "3"},
      {"0 or 0.0 or ''", ""},
      {"not 0", "True"},
      {"not BM == 64", "False"},
      {"not not 2", "True"},
      {"1 or 1 / 0", "1"},
      {"zero and 1 // zero", "0"},
      {"zero > 1 > 1 / zero", "False"},
      {"1 or 0 and 0", "1"},
      {"'a' if zero else 'b'", "b"},
      {"1 if on else 2 if on else 3", "1"},
      {"1 if off else 2 if off else 3", "3"},
      {"5 if zero == 0 else 1 // zero", "5"},
      {"!zero", "True"},
      {"!zero == 1", "True"},
      {"on && !off || 1 / 0", "True"},
      {"min(3, 1, 2)", "1"},
      {"max(3, 4.5)", "4.5"},
      {"max(1, True)", "1"},
      {"max(7)", "7"},
      {"abs(-3)", "3"},
      {"abs(-0.5)", "0.5"},
      {"int(-2.7)", "-2"},
      {"int(True)", "1"},
      {"float(3)", "3.0"},
      {"ceil(2.1)", "3"},
      {"floor(-2.1)", "-3"},
      {"round(2.5)", "2"},
      {"round(3.5)", "4"},
      {"log2(8)", "3.0"},
      {"sqrt(BM)", "8.0"},
      {"ceil_div(7, 2)", "4"},
      {"ceil_div(-7, 2)", "-3"},
      {"ceil_div(8, 2)", "4"},
      {"ceil_div(big, 1)", "9223372036854775807"},
      {"ceil_div(7, -1)", "-7"},
      {"round_up(65, 16)", "80"},
      {"pow2_ceil(65)", "128"},
      {"pow2_ceil(64)", "64"},
      {"pow2_ceil(-5)", "1"},
      {"1.5e3", "1500.0"},
      {".5", "0.5"},
      {"5.", "5.0"},
      {"1e-3 * 1000", "1.0"},
      {"'\\'' == \"'\"", "True"},
      {"true and not false", "True"},
      {"big", "9223372036854775807"},
      {"-big - 1", "-9223372036854775808"},
  };
  for (const Case& each : kCases) EXPECT_EQ(result_of(each.text), each.expected) << each.text;
}

TEST(Expression, ErrorsNameTheColumnAndTheMistake) {
  constexpr Case kCases[] = {
      {"", "error: column 1: the expression is empty"},
      {"1 +", "error: column 4: ends where a number, a name or '(' should be"},
      {"(1", "error: column 3: ends where ')' should be"},
      {"1 2", "error: column 3: '2' where an operator or the end should be"},
      {"BM = 3", "error: column 4: unexpected '='; equality is '=='"},
      {"BM & 3",
       "error: column 4: unexpected '&'; there are no bit operations, and logic is "
       "'and', 'or'"},
      {"a ? b : c", "error: column 3: unexpected '?'; write 'a if condition else b'"},
      {"'it''s' == \"it\"", "error: column 5: ''s'' where an operator or the end should be"},
      {"16KB", "error: column 3: 'K' right after the number 16"},
      {"012", "error: column 1: number 012 has leading zeros"},
      {"9223372036854775808", "error: column 1: 9223372036854775808 does not fit a 64-bit integer"},
      {"1e999", "error: column 1: number 1e999 is out of range"},
      {"'abc", "error: column 1: text without a closing quote"},
      {"mix(1, 2)", "error: column 1: unknown function 'mix'; did you mean 'min'?"},
      {"1 + ceil_div(1)", "error: column 5: ceil_div takes 2 arguments, not 1"},
      {"max()", "error: column 1: max takes 1 argument or more, not 0"},
      {"[1, 2]", "error: column 1: a list can only stand right of 'in'"},
      {"1 if 2", "error: column 7: ends where 'else' should be"},
      {"2 * and", "error: column 5: 'and' where a number, a name or '(' should be"},
      {"\x80", "error: column 1: unexpected character (byte 0x80)"},
      {"BN * 2", "error: column 1: unknown name 'BN'"},
      {"1 + BM // zero", "error: column 8: division by zero"},
      {"1 % 0", "error: column 3: division by zero"},
      {"1.0 / 0", "error: column 5: division by zero"},
      {"0 ** -1", "error: column 3: division by zero"},
      {"(-2) ** 0.5", "error: column 6: a fractional power of a negative number is not real"},
      {"layout + 1", "error: column 8: arithmetic needs numbers, not the text 'nhwc'"},
      {"layout < 1", "error: column 8: cannot order the text 'nhwc' and a number"},
      {"1 in 2", "error: column 3: 'in' needs a [list], or a text on both sides"},
      {"log2(0)", "error: column 1: log2 needs a positive number"},
      {"ceil_div(1.5, 2)", "error: column 1: ceil_div needs whole numbers, not 1.5"},
      {"int(1e300)",
       "error: column 1: result does not fit a 64-bit integer; use a real number (1.0 * x)"},
  };
  for (const Case& each : kCases) EXPECT_EQ(result_of(each.text), each.expected) << each.text;
}

TEST(Expression, OverflowIsAnErrorNotAWrap) {
  for (const char* text :
       {"big + 1", "-big - 2", "big * 2", "2 ** 63", "3 ** 40", "(-2) ** 64", "(-big - 1) // -1",
        "-(-big - 1)", "abs(-big - 1)", "round_up(big, 2)", "pow2_ceil(big)"})
    EXPECT_NE(result_of(text).find("does not fit a 64-bit integer"), std::string::npos) << text;
  EXPECT_EQ(result_of("(-big - 1) % -1"), "0");
}

TEST(Expression, DepthAndLengthAreBounded) {
  const std::string open(100000, '('), minus(5000, '-'), nots = [] {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "not ";
    return text;
  }();
  for (const std::string& text :
       {open.substr(0, 5000), minus + "1", nots + "1", std::string(20000, '1'), open})
    EXPECT_FALSE(Expression::parse(text).is_ok());
  std::string sum = "1", chain = "1", nested = "1";
  for (int i = 0; i < 1000; ++i) sum += "+1", chain += " and 1";
  for (int i = 0; i < 150; ++i) nested = "1 in (" + nested + ")";
  EXPECT_NE(result_of(sum).find("nested deeper"), std::string::npos);
  EXPECT_EQ(result_of(chain), "1");
  EXPECT_FALSE(result_of(nested).empty());  // and in no exponential time
}

TEST(Expression, NamesAreThoseUsedInOrder) {
  const Expression expression = Expression::parse("N * ceil_div(M, BM) + N - min(K, True)").value();
  EXPECT_EQ(expression.names(), (std::vector<std::string>{"N", "M", "BM", "K"}));
  EXPECT_EQ(expression.text(), "N * ceil_div(M, BM) + N - min(K, True)");
}

TEST(Expression, TypedEvaluation) {
  const Scope scope = sample_scope();
  const auto parse = [](std::string_view text) { return Expression::parse(text).value(); };
  EXPECT_EQ(parse("BM / 8").evaluate_int(scope.lookup()).value(), 8);
  EXPECT_EQ(parse("BM / 7").evaluate_int(scope.lookup()).status().message(),
            "'BM / 7' must be a whole number, not 9.142857142857142; use // or ceil_div for whole "
            "division");
  EXPECT_FALSE(parse("layout").evaluate_int(scope.lookup()).is_ok());
  EXPECT_FALSE(parse("1e30").evaluate_int(scope.lookup()).is_ok());
  EXPECT_EQ(parse("on").evaluate_double(scope.lookup()).value(), 1.0);
  EXPECT_TRUE(parse("BM").evaluate_bool(scope.lookup()).value());
  EXPECT_FALSE(Expression().evaluate(scope.lookup()).is_ok());
}

// The constraints of four published spaces (AutoTuningAssociation/benchmark_hub, MIT).
TEST(Expression, ReadsPublishedConstraints) {
  for (const char* text :
       {"use_padding==0 or block_size_x % 32 != 0", "block_size_x*block_size_y<=1024",
        "use_shmem == 0 or (((block_size_x*tile_size_x+(filter_width-1)))*"
        "((block_size_y*tile_size_y+(filter_height-1)))) < 12*1024",
        "32 <= block_size_x * block_size_y <= 1024", "tile_size_x > 1 or tile_stride_x == 0",
        "temporal_tiling_factor % loop_unroll_factor_t == 0",
        "(block_size_x*tile_size_x+ temporal_tiling_factor * 2) * (block_size_y*tile_size_y+ "
        "temporal_tiling_factor * 2) * (2+sh_power) * 4 <= 49152",
        "KWG % ((MDIMC * NDIMC)/MDIMA) == 0", "MWG % (MDIMC*VWM) == 0",
        "not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)"})
    EXPECT_TRUE(Expression::parse(text).is_ok()) << text;
  Scope scope;
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, int>>{
           {"KWG", 32}, {"MDIMC", 8}, {"NDIMC", 8}, {"MDIMA", 16}})
    scope.set(name, std::int64_t{value});
  const auto constraint = Expression::parse("KWG % ((MDIMC * NDIMC)/MDIMA) == 0").value();
  EXPECT_TRUE(constraint.evaluate_bool(scope.lookup()).value());
  scope.set("MDIMA", std::int64_t{32});
  scope.set("NDIMC", std::int64_t{32});
  scope.set("KWG", std::int64_t{12});
  EXPECT_FALSE(constraint.evaluate_bool(scope.lookup()).value());  // 12 % 8.0
}

}  // namespace
}  // namespace purlin
