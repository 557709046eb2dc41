// SPDX-License-Identifier: Apache-2.0
#include "tune/space/build.h"

#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <set>

namespace purlin::tune {
namespace {

PublishedSpace made(std::string name = "made") { return {std::move(name)}; }

Result<Space> build(const PublishedSpace& from, const SpaceLimits& limits = {}) {
  return build_space(from.parameters, from.constraints, Scope{}, limits);
}

// What building must amount to: every config of the product against every constraint.
struct Naive {
  std::vector<Assignment> valid;
  bool fails = false;  // a constraint cannot be evaluated where no other is false
};

Naive naive(const PublishedSpace& from) {
  Naive result;
  Assignment at(from.parameters.size());
  while (true) {
    Config config;
    for (std::size_t i = 0; i < at.size(); ++i)
      config.set(from.parameters[i].name, from.parameters[i].values[at[i]]);
    Scope scope;
    scope.add(config);
    bool rejected = false, failed = false;
    for (const SpecExpression& constraint : from.constraints) {
      const Result<bool> holds = constraint.expression.evaluate_bool(scope.lookup());
      rejected |= holds.is_ok() && !*holds;
      failed |= !holds.is_ok();
    }
    result.fails |= failed && !rejected;
    if (!rejected) result.valid.push_back(at);
    std::size_t place = at.size();
    while (place-- > 0) {
      if (++at[place] < from.parameters[place].values.size()) break;
      at[place] = 0;
    }
    if (place == static_cast<std::size_t>(-1)) return result;
  }
}

// Every operation of the space against what the list of its valid configs says.
void expect_same_operations(const Space& space, const std::vector<Assignment>& valid,
                            const std::string& text) {
  std::set<std::size_t> indices;
  for (const Assignment& assignment : valid) {
    const std::optional<std::size_t> index = space.find(assignment);
    ASSERT_TRUE(index.has_value() && space.valid(*index)) << text;
    Assignment back(assignment.size());
    space.assignment(*index, back);
    EXPECT_EQ(back, assignment) << text;
    indices.insert(*index);
  }
  EXPECT_EQ(indices.size(), valid.size()) << text;
  std::size_t counted = 0;
  for (std::size_t index = 0; index < space.index_count(); ++index)
    counted += space.valid(index) ? 1 : 0;
  EXPECT_EQ(counted, valid.size()) << text;
  Random random(1);
  const std::vector<std::size_t> all = space.sample(valid.size() + 1, random);
  EXPECT_EQ(std::set<std::size_t>(all.begin(), all.end()), indices) << text;
  EXPECT_EQ(all.size(), valid.size()) << text;
  for (std::size_t i = 0; i < valid.size(); i += 1 + valid.size() / 7) {
    std::vector<std::size_t> neighbours, adjacent;
    for (std::size_t p = 0; p < valid[i].size(); ++p) {
      std::optional<std::size_t> before, after;
      for (std::size_t v = 0; v < space.parameters()[p].values.size(); ++v) {
        Assignment other = valid[i];
        other[p] = static_cast<std::uint16_t>(v);
        const std::optional<std::size_t> found = space.find(other);
        if (!found || v == valid[i][p]) continue;
        neighbours.push_back(*found);
        if (v < valid[i][p]) before = found;
        if (v > valid[i][p] && !after) after = found;
      }
      if (before) adjacent.push_back(*before);
      if (after) adjacent.push_back(*after);
    }
    EXPECT_EQ(space.neighbours(*space.find(valid[i])), neighbours) << text;
    EXPECT_EQ(space.adjacent(*space.find(valid[i])), adjacent) << text;
  }
}

TEST(BuildSpace, CountsOfPublishedSpaces) {
  for (const PublishedSpace& published : published_spaces()) {
    const Result<Space> space = build(published);
    ASSERT_TRUE(space.is_ok()) << space.status().message();
    EXPECT_EQ(space->size(), published.valid) << published.name;
    EXPECT_EQ(space->cartesian(), published.cartesian) << published.name;
    double pruned = 0;
    for (const Pruned& by : space->pruned()) pruned += by.configs;
    EXPECT_NEAR(pruned, published.cartesian - static_cast<double>(published.valid), 1e-3)
        << published.name;
  }
}

TEST(BuildSpace, ConvolutionAndDedispersionAreExactlyTheNaiveSets) {
  for (const PublishedSpace& published : {convolution_space(), dedispersion_space()}) {
    const Result<Space> space = build(published);
    const Naive expected = naive(published);
    ASSERT_EQ(space->size(), expected.valid.size());
    std::set<std::size_t> seen;
    for (const Assignment& assignment : expected.valid) {
      const std::optional<std::size_t> index = space->find(assignment);
      ASSERT_TRUE(index.has_value());
      Assignment back(assignment.size());
      space->assignment(*index, back);
      EXPECT_EQ(back, assignment);
      seen.insert(*index);
    }
    EXPECT_EQ(seen.size(), space->size());
  }
}

// Random small spaces with constraints of every kind, some of which divide by zero.
TEST(BuildSpace, EqualsBruteForceOnRandomSpaces) {
  Random random(7);
  int failures = 0, empties = 0, built = 0, estimated = 0;
  for (int round = 0; round < 400; ++round) {
    PublishedSpace made_up = made();
    const std::size_t count = 2 + random.below(4);
    for (std::size_t i = 0; i < count; ++i) {
      Parameter parameter{std::string(1, static_cast<char>('a' + i)), {}, {}};
      const std::size_t values = 1 + random.below(i == 0 ? 70 : 4);
      for (std::size_t v = 0; v < values; ++v) {
        const auto value = static_cast<std::int64_t>(v + (random.below(4) == 0 ? 0 : 1));
        if (i == 3)
          parameter.values.emplace_back("t" + std::to_string(v));
        else if (i == 2)
          parameter.values.emplace_back(0.5 * static_cast<double>(v + 1));
        else
          parameter.values.emplace_back(static_cast<std::int64_t>(v) * 3 - value % 2);
      }
      made_up.parameters.push_back(std::move(parameter));
    }
    const std::vector<std::string> rules = {"a % (b + 2) == 0",
                                            "a * b <= 40",
                                            "a // b != 1",
                                            "b != 0",
                                            "a != 3 or b == 2",
                                            "not (a > 4 and b < 3)",
                                            "max(a, b) < 50",
                                            "a in [1, 2, 3, 6, b, 9]",
                                            "a - b if b > 2 else a + b",
                                            "0 <= a < 30 + b",
                                            "a % b == 0",
                                            "a / 2 == a // 2"};
    const std::vector<std::string> more = {"c * a > 1", "c <= b or a == 0", "a * 2.0 // c >= b",
                                           "round(c) == 1 or b > 0"};
    const std::vector<std::string> texts = {"d == 't0' or a > 2", "d != 't1'"};
    for (std::size_t i = random.below(4); i-- > 0;) {
      made_up.rule(rules[random.below(rules.size())]);
      if (count > 2 && random.below(2) == 0) made_up.rule(more[random.below(more.size())]);
      if (count > 3 && random.below(2) == 0) made_up.rule(texts[random.below(texts.size())]);
    }
    const Naive expected = naive(made_up);
    const Result<Space> space = build(made_up);
    std::string text;
    for (const SpecExpression& rule : made_up.constraints) text += rule.expression.text() + "; ";
    if (expected.fails) {
      ++failures;
      EXPECT_FALSE(space.is_ok()) << text;
    } else if (expected.valid.empty()) {
      ++empties;
      EXPECT_FALSE(space.is_ok()) << text;
    } else {
      ++built;
      ASSERT_TRUE(space.is_ok()) << text << space.status().message();
      ASSERT_EQ(space->size(), expected.valid.size()) << text;
      for (const Assignment& assignment : expected.valid)
        EXPECT_TRUE(space->find(assignment).has_value()) << text;
      double pruned = 0;
      for (const Pruned& by : space->pruned()) pruned += by.configs;
      EXPECT_NEAR(pruned + static_cast<double>(space->size()), space->cartesian(), 1e-6) << text;
      expect_same_operations(*space, expected.valid, text);
      // A recording of the same configs is the same space.
      std::vector<Config> configs;
      for (std::size_t i = 0; i < space->size(); ++i) configs.push_back(space->config(i));
      expect_same_operations(list_space(made_up.parameters, configs).value(), expected.valid, text);
      // Limits too narrow for a diagram give the same space too, except for its size.
      SpaceLimits narrow;
      narrow.max_bytes = 500;
      const Result<Space> filtered = build(made_up, narrow);
      if (filtered.is_ok() && !filtered->is_exact()) ++estimated;
      if (filtered.is_ok()) expect_same_operations(*filtered, expected.valid, text);
    }
  }
  EXPECT_GT(failures, 10);
  EXPECT_GT(empties, 5);
  EXPECT_GT(built, 200);
  EXPECT_GT(estimated, 5);
}

TEST(BuildSpace, AConstraintGuardedByAnEarlierOneMayDivideByZero) {
  PublishedSpace guarded = made();
  guarded.knob("a", {0, 1, 2, 3}).knob("b", {0, 1, 2}).knob("c", {5, 6});
  // "a % b" is complete one level before the guard that makes it safe.
  guarded.rule("b * c > 0").rule("a % b == 0");
  const Result<Space> space = build(guarded);
  ASSERT_TRUE(space.is_ok()) << space.status().message();
  EXPECT_EQ(space->size(), naive(guarded).valid.size());

  PublishedSpace bare = made();
  bare.knob("a", {0, 1, 2, 3}).knob("b", {0, 1, 2}).rule("a % b == 0");
  const Result<Space> fails = build(bare);
  ASSERT_FALSE(fails.is_ok());
  EXPECT_NE(fails.status().message().find("made:1: constraint 'a % b == 0'"), std::string::npos);
  EXPECT_NE(fails.status().message().find("b=0"), std::string::npos);
}

TEST(BuildSpace, ATextIsTrueUnlessEmpty) {
  PublishedSpace named = made();
  named.knob("a", {1, 2});
  named.parameters.push_back({"d", {std::string(), std::string("x")}, {}});
  for (const char* rule : {"d", "not d", "not (d) or a == 1", "d and a == 2"}) {
    PublishedSpace ruled = named;
    ruled.rule(rule);
    EXPECT_EQ(build(ruled).value().size(), naive(ruled).valid.size()) << rule;
  }
}

TEST(BuildSpace, NamesTheConstraintThatLeavesNone) {
  PublishedSpace none = made();
  none.knob("a", {1, 2, 3}).knob("b", {1, 2}).rule("a != 2").rule("a * b > 100");
  const Result<Space> space = build(none);
  ASSERT_FALSE(space.is_ok());
  EXPECT_EQ(space.status().code(), Code::kInvalid);
  EXPECT_NE(space.status().message().find("made:2: no config satisfies"), std::string::npos)
      << space.status().message();
}

TEST(BuildSpace, AConstraintOverConstantsDecidesForAll) {
  PublishedSpace published = made();
  published.knob("a", {1, 2, 3}).rule("M > 10");
  Scope constants;
  constants.set("M", std::int64_t{11});
  EXPECT_EQ(build_space(published.parameters, published.constraints, constants)->size(), 3u);
  constants.set("M", std::int64_t{9});
  EXPECT_FALSE(build_space(published.parameters, published.constraints, constants).is_ok());
  EXPECT_NE(build(published).status().message().find("unknown name 'M'"), std::string::npos);
}

TEST(BuildSpace, StopsWhenAsked) {
  PublishedSpace large = made();
  for (const char* name : {"a", "b", "c", "d"}) large.knob(name, steps(1, 300, 1));
  large.rule("a * b * c * d == 7919");
  const Result<Space> space =
      build_space(large.parameters, large.constraints, Scope{}, {}, [](double) { return false; });
  EXPECT_EQ(space.status().code(), Code::kCancelled);
}

TEST(BuildSpace, CountsWhatNoListCouldHold) {
  // 10^15 combinations, all tied together by a sum: as many are valid as there are ways to throw at
  // most 60 with 15 dice of 0 to 9.
  PublishedSpace dice = made();
  std::string sum;
  std::vector<double> ways(1, 1);  // by total
  for (int i = 0; i < 15; ++i) {
    dice.knob("d" + std::to_string(i), steps(0, 9, 1));
    sum += (i == 0 ? "d" : " + d") + std::to_string(i);
    std::vector<double> next(ways.size() + 9);
    for (std::size_t total = 0; total < ways.size(); ++total)
      for (std::size_t face = 0; face < 10; ++face) next[total + face] += ways[total];
    ways = next;
  }
  dice.rule(sum + " <= 60");
  double expected = 0;
  for (std::size_t total = 0; total <= 60; ++total) expected += ways[total];
  const Result<Space> space = build(dice);
  ASSERT_TRUE(space.is_ok()) << space.status().message();
  EXPECT_TRUE(space->is_exact());
  EXPECT_EQ(static_cast<double>(space->size()), expected);
  Random random(5);
  for (const std::size_t index : space->sample(200, random)) {
    EXPECT_EQ(space->find(space->config(index)), index);
    for (const std::size_t other : space->adjacent(index))
      EXPECT_EQ(space->find(space->config(other)), other);
  }
}

TEST(BuildSpace, EstimatesTheSizeWhereCountingIsOutOfReach) {
  // Every partial sum of these is different, so no two beginnings are alike.
  PublishedSpace wild = made();
  std::string sum;
  std::int64_t weight = 1;
  for (int i = 0; i < 12; ++i) {
    wild.knob("p" + std::to_string(i), steps(0, 9, 1));
    sum += fmt::format("{}p{} * {}", i == 0 ? "" : " + ", i, weight);
    weight = weight * 11 + 7;
  }
  wild.rule("(" + sum + ") % 10 == 3").rule("p0 != p1");
  SpaceLimits limits;
  limits.max_bytes = 1 << 20;
  const Result<Space> space = build(wild, limits);
  ASSERT_TRUE(space.is_ok()) << space.status().message();
  EXPECT_FALSE(space->is_exact());
  EXPECT_EQ(space->index_count(), std::size_t{900'000'000'000});
  EXPECT_GT(space->size_error(), 0);
  EXPECT_NEAR(static_cast<double>(space->size()), 9e10, 9e10 * 6 * space->size_error());
  Random random(2);
  for (const std::size_t index : space->sample(50, random)) {
    EXPECT_TRUE(space->valid(index));
    EXPECT_EQ(space->find(space->config(index)), index);
    for (const std::size_t other : space->neighbours(index)) EXPECT_TRUE(space->valid(other));
  }
}

// Each of the 13 configs of a space of unequal branches is drawn as often as any other.
TEST(BuildSpace, SamplesUniformly) {
  PublishedSpace uneven = made();
  uneven.knob("a", {0, 1, 2}).knob("b", steps(0, 9, 1)).rule("a * 9 <= b or b == 0");
  const Result<Space> space = build(uneven);
  ASSERT_TRUE(space.is_ok());
  ASSERT_EQ(space->size(), 13u);
  std::vector<int> times(space->size());
  Random random(8);
  for (int i = 0; i < 13'000; ++i) ++times[space->sample(1, random).front()];
  for (const int each : times) EXPECT_NEAR(each, 1000, 150);  // 4.9 sigma
}

TEST(BuildSpace, IndependentParametersCostNothing) {
  PublishedSpace huge = made();
  for (int i = 0; i < 10; ++i) huge.knob("p" + std::to_string(i), steps(1, 16, 1));  // 2^40
  huge.rule("p0 % p3 == 0").rule("p5 != p6");
  const Result<Space> space = build(huge);
  ASSERT_TRUE(space.is_ok());
  EXPECT_EQ(space->size(), std::size_t{50} * 240 * (std::size_t{1} << 24));
  Random random(3);
  for (const std::size_t index : space->sample(100, random))
    EXPECT_EQ(space->find(space->config(index)), index);
}

}  // namespace
}  // namespace purlin::tune
