// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/ranking/ranking.h"

#include "analyze/advise/savings/savings.h"
#include "analyze/advise/testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

Intervention made(const char* id, Edit edit) {
  Intervention out;
  out.id = id;
  out.effort = "hours";
  out.change.edits.push_back(std::move(edit));
  return out;
}

// Steps of two kernels, 400 and 200 us, that the host launches ahead.
Program two_kernels() {
  Program program;
  program.steps(12, [](Program& step) {
    step.kernel(advised_row("a", "", "", "f32"), 400'000);
    step.kernel(advised_row("b", "", "", "f32"), 200'000);
  });
  return program;
}

std::vector<Intervention> ranked(const Profile& profile, std::vector<Intervention> list) {
  const TimelineAnalysis timeline = analyze_timeline(profile);
  const Facts facts = gather(profile, timeline, {}, {});
  add_savings(facts, list);
  rank(list);
  rank_by_what_is_left(facts, list);
  return list;
}

// Two changes of the long kernel are not the first two interventions: the second saves nothing
// more once the first is done.
TEST(Ranking, AnotherLossComesBeforeAnotherCureOfTheSame) {
  Program program = two_kernels();
  const std::vector<Intervention> list = ranked(
      program.profile(), {made("shorten_a", edit::Scale{Affected::of_row(0), {0.2, 0.2, 0.2}}),
                          made("remove_b", edit::Remove{Affected::of_row(1)}),
                          made("remove_a", edit::Remove{Affected::of_row(0)})});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].id, "remove_a");
  EXPECT_EQ(list[1].id, "remove_b");
  EXPECT_EQ(list[2].id, "shorten_a");
  EXPECT_GT(list[2].saved_share.mid, list[1].saved_share.mid);
  EXPECT_FALSE(list[0].on_top_share.has_value());
  ASSERT_TRUE(list[1].on_top_share.has_value());
  EXPECT_NEAR(*list[1].on_top_share, 0.33, 0.02);
  ASSERT_TRUE(list[2].on_top_share.has_value());
  EXPECT_NEAR(*list[2].on_top_share, 0, 0.005);
}

// A quarter of its saving counts: a change that saves far more than what is left stays before it.
TEST(Ranking, AFarGreaterCureStaysBeforeASmallRest) {
  Program program = two_kernels();
  const std::vector<Intervention> list = ranked(
      program.profile(), {made("shorten_a", edit::Scale{Affected::of_row(0), {0.2, 0.2, 0.2}}),
                          made("shorten_b", edit::Scale{Affected::of_row(1), {0.8, 0.8, 0.8}}),
                          made("remove_a", edit::Remove{Affected::of_row(0)})});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].id, "remove_a");
  EXPECT_EQ(list[1].id, "shorten_a");
  EXPECT_EQ(list[2].id, "shorten_b");
  ASSERT_TRUE(list[2].on_top_share.has_value());
  EXPECT_NEAR(*list[2].on_top_share, 0.067, 0.01);
}

// torch.compile, CUDA graphs and less work of the host reduce one loss. Replay does not
// matter.
TEST(Ranking, ASecondCureOfTheHostsTimeCountsAQuarter) {
  Program program = two_kernels();
  const std::vector<Intervention> list =
      ranked(program.profile(), {made("compile_model", edit::Remove{Affected::of_row(0)}),
                                 made("cuda_graphs", edit::Remove{Affected::of_row(1)}),
                                 made("other", edit::Scale{Affected::of_row(1), {0.6, 0.6, 0.6}})});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].id, "compile_model");
  EXPECT_EQ(list[1].id, "other");
  EXPECT_EQ(list[2].id, "cuda_graphs");
}

Intervention worth_of(const char* id, const char* effort, double share) {
  Intervention out;
  out.id = out.title = id;
  out.effort = effort;
  out.saved_ns = Interval3{share, share, share} * 1e6;
  out.saved_share = {share, share, share};
  return out;
}

std::vector<std::string> by_place(const Advice& advice) {
  std::vector<std::string> out(advice.interventions.size() + advice.trades.size());
  for (const auto* list : {&advice.interventions, &advice.trades})
    for (const Intervention& one : *list) out.at(one.place - 1) = one.id;
  return out;
}

// What costs precision stands before what is worth less than a quarter of it, and no earlier. What
// costs time is last.
TEST(Ranking, ATradeComesBeforeWhatIsLittleNextToIt) {
  Advice advice;
  advice.interventions = {worth_of("much", "hours", 0.06), worth_of("little", "hours", 0.03),
                          worth_of("less", "days", 0.02)};
  advice.trades = {worth_of("recompute", "hours", -0.2), worth_of("small_trade", "days", 0.05),
                   worth_of("eight_bits", "days", 0.34)};
  place_trades(advice);
  EXPECT_EQ(by_place(advice), (std::vector<std::string>{"much", "eight_bits", "little", "less",
                                                        "small_trade", "recompute"}));
  EXPECT_EQ(advice.trades.front().id, "eight_bits");
  const std::string text = render_advice(advice, Terminal(false, false, false, 100));
  EXPECT_LT(text.find("1. much"), text.find("trade: eight_bits"));
  EXPECT_LT(text.find("trade: eight_bits"), text.find("2. little"));
  EXPECT_LT(text.find("3. less"), text.find("trade: recompute"));
}

// Of nine chains to fuse, the text shows two.
TEST(Text, EvidenceOfOneKindIsCut) {
  Advice advice;
  advice.interventions = {worth_of("fuse", "hours", 0.2)};
  for (int i = 0; i < 5; ++i)
    advice.interventions[0].evidence.push_back({"chain", fmt::format("of {}", i), "timeline"});
  advice.interventions[0].evidence.push_back({"a launch takes", "2 us", "timeline"});
  place_trades(advice);
  const std::string text = render_advice(advice, Terminal(false, false, false, 100));
  EXPECT_NE(text.find("chain: of 1"), std::string::npos);
  EXPECT_EQ(text.find("chain: of 2"), std::string::npos);
  EXPECT_LT(text.find("a launch takes: 2 us"), text.find("and 3 lines more like these"));
  EXPECT_NE(text.find("and 3 lines more like these"), std::string::npos);
}

// Where nothing else is left, a trade is not called nothing.
TEST(Ranking, ATradeAlone) {
  Advice advice;
  advice.judged_share = 1;
  advice.nothing = "no kernel is far from its target";
  const Terminal terminal(false, false, false, 100);
  EXPECT_NE(render_advice(advice, terminal).find("Nothing to recommend: no"), std::string::npos);
  advice.trades = {worth_of("recompute", "hours", -0.2)};
  place_trades(advice);
  EXPECT_NE(render_advice(advice, terminal).find("Nothing to recommend: no"), std::string::npos);
  advice.trades.push_back(worth_of("eight_bits", "days", 0.3));
  place_trades(advice);
  EXPECT_NE(render_advice(advice, terminal).find("Nothing to recommend except a trade: no"),
            std::string::npos);
}

// Only what an intervention adds to those before it counts in full.
TEST(Ranking, ATradeComesBeforeWhatAddsLittle) {
  Advice advice;
  advice.interventions = {worth_of("much", "hours", 0.3), worth_of("same_loss", "hours", 0.15)};
  advice.trades = {worth_of("eight_bits", "days", 0.4)};
  advice.interventions[1].on_top_share = 0.14;
  place_trades(advice);
  EXPECT_EQ(advice.trades[0].place, 3U);
  advice.interventions[1].on_top_share = 0;
  place_trades(advice);
  EXPECT_EQ(advice.trades[0].place, 2U);
}

// What a change restructures needs no tuning: nothing is left of it, as the order of work says.
TEST(Ranking, NothingIsLeftOfTheTuningOfWhatIsRestructured) {
  Program program = two_kernels();
  Intervention other = made("align_dimensions", edit::Scale{Affected::of_row(0), {0.5, 0.5, 0.5}});
  other.pillar = Pillar::kArithmeticIntensity;
  Intervention tune = made("tune_kernel", edit::Scale{Affected::of_row(0), {0.6, 0.6, 0.6}});
  tune.pillar = Pillar::kOccupancy;
  other.kernels = tune.kernels = {"a"};
  Intervention small = made("remove_b", edit::Scale{Affected::of_row(1), {0.8, 0.8, 0.8}});
  const std::vector<Intervention> list = ranked(program.profile(), {other, tune, small});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].id, "align_dimensions");
  for (const Intervention& one : list) {
    if (one.id == "tune_kernel" && one.on_top_share) {
      EXPECT_EQ(*one.on_top_share, 0);
    }
  }
  EXPECT_TRUE(list[1].on_top_share.has_value());
}

}  // namespace
}  // namespace purlin::analyze
