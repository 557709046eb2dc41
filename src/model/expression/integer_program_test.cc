// SPDX-License-Identifier: Apache-2.0
// The compiled form and the tree give the same answer, for every kind of constraint.
#include "model/expression/integer_program.h"

#include "base/random.h"
#include "model/expression/integer.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

const std::vector<std::string> kInputs = {"M", "N"};

std::optional<IntegerProgram> compiled(const Expression& constraint,
                                       const Expression::Lookup& constants) {
  IntegerProgram program;
  if (!program.add(constraint, kInputs, constants)) return std::nullopt;
  return program;
}

// A random integer expression of at most `depth` levels.
std::string random_expression(Random& random, int depth) {
  if (depth == 0 || random.below(4) == 0) {
    const char* const leaves[] = {"M", "N", "BM", "VECTOR", "0", "1", "2", "3", "16", "-5"};
    return leaves[random.below(std::size(leaves))];
  }
  const std::string a = random_expression(random, depth - 1);
  const std::string b = random_expression(random, depth - 1);
  const char* const operators[] = {"+", "-", "*", "//", "%", "==", "<", ">=", "and", "or"};
  switch (random.below(6)) {
    case 0:
      return "ceil_div(" + a + ", " + b + ")";
    case 1:
      return "round_up(" + a + ", " + b + ")";
    case 2:
      return "min(" + a + ", " + b + ")";
    case 3:
      return "(not " + a + ")";
    default:
      return "(" + a + " " + operators[random.below(std::size(operators))] + " " + b + ")";
  }
}

TEST(IntegerProgram, AgreesWithTheTree) {
  Random random(20);
  Scope scope;
  scope.set("BM", std::int64_t{64});
  scope.set("VECTOR", std::int64_t{4});
  int programs = 0;
  for (int i = 0; i < 3'000; ++i) {
    const Result<Expression> expression = Expression::parse(random_expression(random, 4));
    ASSERT_TRUE(expression.is_ok());
    const auto program = compiled(*expression, scope.lookup());
    if (!program) continue;
    ++programs;
    for (const std::int64_t m : {INT64_MIN, std::int64_t{-7}, std::int64_t{0}, std::int64_t{1},
                                 std::int64_t{1001}, std::int64_t{4096}, INT64_MAX}) {
      const std::int64_t inputs[8] = {m, 96};
      scope.set("M", m);
      scope.set("N", std::int64_t{96});
      const Result<bool> whole = expression->evaluate_bool(scope.lookup());
      // The compiled form evaluates both sides of `and` and `or`, so it may miss a truth where one
      // side has no value. It never finds a truth that the tree does not.
      if (program->holds(inputs)) {
        ASSERT_TRUE(whole.is_ok() && *whole) << expression->text() << " at M = " << m;
      } else if (whole.is_ok() && *whole) {
        const std::string& text = expression->text();
        ASSERT_TRUE(text.find("and") != std::string::npos || text.find("or") != std::string::npos)
            << text << " at M = " << m;
      }
    }
  }
  EXPECT_GT(programs, 1'500);
}

TEST(IntegerProgram, KeepsMultiplesOfPowersOfTwoAsBits) {
  const Result<Expression> expression = Expression::parse("M % 16 == 0 and N % 3 == 0");
  const Scope scope;
  const auto program = compiled(*expression, scope.lookup());
  ASSERT_TRUE(program);
  EXPECT_EQ(program->zero_bits()[0], 4);
  EXPECT_EQ(program->zero_bits()[1], 0);
  EXPECT_TRUE(program->rest());
  const std::int64_t good[8] = {32, 9}, bad[8] = {24, 9};
  EXPECT_TRUE(program->holds(good));
  EXPECT_FALSE(program->holds(bad));
}

TEST(IntegerProgram, LeavesRealsAndTextsToTheTree) {
  Scope scope;
  scope.set("LAYOUT", std::string("row"));
  for (const char* text : {"M / 2 > 1", "M ** 2 > 4", "LAYOUT == 'row'", "M > 1 if N else M"}) {
    const Result<Expression> expression = Expression::parse(text);
    ASSERT_TRUE(expression.is_ok()) << text;
    EXPECT_FALSE(compiled(*expression, scope.lookup())) << text;
  }
}

TEST(Integer, RoundsTowardMinusInfinityAndChecks) {
  EXPECT_EQ(integer::floor_divide(-7, 2), -4);
  EXPECT_EQ(integer::modulo(-7, 2), 1);
  EXPECT_EQ(integer::modulo(7, -2), -1);
  EXPECT_EQ(integer::ceil_divide(7, 2), 4);
  EXPECT_EQ(integer::round_up(65, 64), 128);
  EXPECT_EQ(integer::power(2, 62), std::int64_t{1} << 62);
  EXPECT_EQ(integer::power(2, 63), std::nullopt);
  EXPECT_EQ(integer::floor_divide(1, 0), std::nullopt);
  EXPECT_EQ(integer::floor_divide(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(integer::modulo(INT64_MIN, -1), 0);
  EXPECT_EQ(integer::pow2_ceil(65), 128);
}

}  // namespace
}  // namespace purlin
