// SPDX-License-Identifier: Apache-2.0
#include "tune/session/page.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

Config config(std::int64_t a, std::int64_t b) {
  Config config;
  config.set("A", a);
  config.set("B", b);
  return config;
}

TEST(Page, ImportanceIsTheVarianceExplained) {
  const auto importance = importance_of(
      {{config(1, 1), 1.0}, {config(1, 2), 1.0}, {config(2, 1), 4.0}, {config(2, 2), 4.0}});
  ASSERT_EQ(importance.size(), 2u);
  EXPECT_EQ(importance[0].parameter, "A");
  EXPECT_NEAR(importance[0].share, 1, 1e-9);
  EXPECT_NEAR(importance[1].share, 0, 1e-9);
}

TEST(Page, NothingOfTheDocumentCanRun) {
  Json document = Json::parse(R"({"schema": "purlin.tune/1", "kernel": "<script>alert(1)</script>",
    "evaluations": [
      {"config": {"A": 1, "B": "</svg><b>"}, "status": "ok", "time_ms": 2, "samples_ms": [2],
       "cumulative_cost_s": 1},
      {"config": {"A": 2, "B": "x"}, "status": "ok", "time_ms": 3, "samples_ms": [3],
       "cumulative_cost_s": 2},
      {"config": {"A": 3, "B": "x"}, "status": "crash", "message": "died",
       "cumulative_cost_s": 3}]})")
                      .value();
  const auto page = render_page(document);
  ASSERT_TRUE(page.is_ok()) << page.status().message();
  EXPECT_EQ(page->find("<script"), std::string::npos);
  EXPECT_EQ(page->find("<b>"), std::string::npos);
  EXPECT_NE(page->find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page->find("Parallel coordinates"), std::string::npos);
  EXPECT_NE(page->find("class=\"fail\""), std::string::npos);
}

TEST(Page, WhatIsNoSessionIsRefused) {
  EXPECT_FALSE(render_page(Json::parse(R"({"schema": "purlin.report/1"})").value()).is_ok());
  EXPECT_FALSE(render_page(Json::parse(R"({"schema": "purlin.tune-set/1"})").value()).is_ok());
  const auto none = render_page(Json::parse(R"({"schema": "purlin.tune/1"})").value());
  ASSERT_TRUE(none.is_ok());
  EXPECT_NE(none->find("No config worked"), std::string::npos);
}

}  // namespace
}  // namespace purlin::tune
