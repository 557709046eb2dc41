// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules.h"
#include "analyze/advise/testing.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

Intervention cure(const char* id, Edit edit) {
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

// Two cures of the long kernel are not the first two pieces of advice: the second saves nothing
// more once the first is done.
TEST(Ranking, AnotherLossComesBeforeAnotherCureOfTheSame) {
  Program program = two_kernels();
  const std::vector<Intervention> list = ranked(
      program.profile(), {cure("shorten_a", edit::Scale{Affected::of_row(0), {0.2, 0.2, 0.2}}),
                          cure("remove_b", edit::Remove{Affected::of_row(1)}),
                          cure("remove_a", edit::Remove{Affected::of_row(0)})});
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

// A quarter of its saving counts: a cure that saves far more than what is left stays before it.
TEST(Ranking, AFarGreaterCureStaysBeforeASmallRest) {
  Program program = two_kernels();
  const std::vector<Intervention> list = ranked(
      program.profile(), {cure("shorten_a", edit::Scale{Affected::of_row(0), {0.2, 0.2, 0.2}}),
                          cure("shorten_b", edit::Scale{Affected::of_row(1), {0.8, 0.8, 0.8}}),
                          cure("remove_a", edit::Remove{Affected::of_row(0)})});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].id, "remove_a");
  EXPECT_EQ(list[1].id, "shorten_a");
  EXPECT_EQ(list[2].id, "shorten_b");
  ASSERT_TRUE(list[2].on_top_share.has_value());
  EXPECT_NEAR(*list[2].on_top_share, 0.067, 0.01);
}

// torch.compile, CUDA graphs and less work of the host are cures of one loss. Replay does not
// matter.
TEST(Ranking, ASecondCureOfTheHostsTimeCountsAQuarter) {
  Program program = two_kernels();
  const std::vector<Intervention> list =
      ranked(program.profile(), {cure("compile_model", edit::Remove{Affected::of_row(0)}),
                                 cure("cuda_graphs", edit::Remove{Affected::of_row(1)}),
                                 cure("other", edit::Scale{Affected::of_row(1), {0.6, 0.6, 0.6}})});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].id, "compile_model");
  EXPECT_EQ(list[1].id, "other");
  EXPECT_EQ(list[2].id, "cuda_graphs");
}

}  // namespace
}  // namespace purlin::analyze
