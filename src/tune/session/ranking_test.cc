// SPDX-License-Identifier: Apache-2.0
// One notion of a config's time: text, page and JSON of the same session agree.
#include "tune/session/ranking.h"

#include "tune/session/report.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

// The search saw A=1 as the fastest, at 0.645 ms; the finals, on a slower machine, A=2.
class RankingTest : public testing::Test {
 protected:
  RankingTest() {
    PublishedSpace made{"made"};
    made.knob("A", {0, 1, 2, 3}).knob("B", {0});
    space_ = build_space(made.parameters, made.constraints, Scope{}).value();
    const double searched[] = {1.0, 0.645, 0.7, 0.9};
    for (std::size_t i = 0; i < space_.size(); ++i) {
      Evaluation evaluation;
      evaluation.config = space_.config(i);
      evaluation.time_ms = searched[i];
      evaluation.samples.assign(7, {searched[i], 0});
      result_.evaluations.push_back(evaluation);
    }
    result_.default_evaluation = 0;
    Verdicts verdict;
    verdict.rounds = 5;
    for (const auto& [evaluation, time_ms] :
         {std::pair<std::size_t, double>{2, 1.236}, {1, 1.3}, {0, 2.0}}) {
      Finalist finalist;
      finalist.evaluation = evaluation;
      finalist.time_ms = finalist.value = time_ms;
      finalist.samples = finalist.values = std::vector<Sample>(25, {time_ms, 0});
      finalist.is_default = evaluation == 0;
      verdict.finalists.push_back(finalist);
    }
    verdict.fallback = 2;
    result_.verdict = verdict;
  }

  Json document() const {
    ReportInput input{space_, result_, device_};
    input.kernel = "made";
    return report_document(input, Environment{});
  }

  Space space_;
  SessionResult result_;
  DeviceInfo device_;
};

TEST_F(RankingTest, TheWinnerLeadsThenTheFinalistsThenTheRest) {
  const std::vector<RankedConfig> ranked = ranking(result_, Objective::kTime);
  ASSERT_EQ(ranked.size(), 4u);
  EXPECT_EQ(ranked[0].evaluation, 2u);
  EXPECT_EQ(ranked[1].evaluation, 1u);
  EXPECT_EQ(ranked[2].evaluation, 0u);
  EXPECT_EQ(ranked[3].evaluation, 3u) << "faster in the search, but not in the finals";
  EXPECT_DOUBLE_EQ(ranked[0].time_ms, 1.236);
}

TEST_F(RankingTest, TheDocumentRanksByTheFinals) {
  const Json json = document();
  const Json::Array& evaluations = json["evaluations"].items();
  EXPECT_EQ(evaluations[2]["rank"].as_int(), 1);
  EXPECT_EQ(evaluations[2]["time_ms"], json["best"]["time_ms"]);
  EXPECT_EQ(evaluations[2]["samples_ms"].size(), 25u);
  EXPECT_EQ(evaluations[2]["from"].as_string(), "finals");
  EXPECT_DOUBLE_EQ(evaluations[2]["search"]["time_ms"].as_double(), 0.7);
  EXPECT_EQ(evaluations[3]["rank"].as_int(), 4);
  EXPECT_EQ(evaluations[3]["from"].as_string(), "search");
  EXPECT_EQ(evaluations[3].find("search"), nullptr);
  EXPECT_NEAR(json["worst_over_best"].as_double(), 1.0 / 0.7, 1e-9);
}

TEST_F(RankingTest, ADefaultThatStaysIsNoSpeedup) {
  EXPECT_EQ(claim_text(*result_.verdict), "1.62x faster than the default");
  result_.verdict->winner = 2;
  EXPECT_EQ(claim_text(*result_.verdict), "no config is faster than the default beyond noise");
}

}  // namespace
}  // namespace purlin::tune
