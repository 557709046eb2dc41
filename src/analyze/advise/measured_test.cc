// SPDX-License-Identifier: Apache-2.0
// The intervals against what the interventions gave: wall time of a step without a profiler, on an
// H200 (tests/data/traces/measured.json). Figures: docs/guide/advise.md, "How good the estimates
// are".
#include "analyze/advise/advice.h"
#include "analyze/advise/learn/margins.h"
#include "analyze/timeline/testing.h"
#include "base/files.h"
#include "profile/import/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace purlin::analyze {
namespace {

constexpr const char* kTraces = PURLIN_SOURCE_DIR "/tests/data/traces/";

Advice advice_of(const std::string& path) {
  const auto profile = profile::import_chrome_trace(path, {});
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  if (!profile.is_ok()) return {};
  return advise(*profile, analyze_timeline(*profile));
}

Json measured(const char* program) {
  const auto text = read_file(std::string(kTraces) + "measured.json");
  EXPECT_TRUE(text.is_ok());
  return text.is_ok() ? (*Json::parse(*text))[program] : Json();
}

const Intervention* find_intervention(const Advice& advice, std::string_view id) {
  for (const Intervention& one : advice.interventions)
    if (one.id == id) return &one;
  return nullptr;
}

void expect_holds(const Interval3& interval, double value) {
  EXPECT_LE(interval.low, value);
  EXPECT_GE(interval.high, value);
  EXPECT_LE(interval.low, interval.mid);
  EXPECT_LE(interval.mid, interval.high);
}

TEST(MeasuredAdvice, FusingAPointwiseChain) {
  const Json truth = measured("fusion_pointwise");
  const Advice advice = advice_of(std::string(kTraces) + "kineto_h200_fusion_before.json.gz");
  EXPECT_EQ(advice.verdict, "restructure");
  EXPECT_EQ(advice.unit.kind, "step");
  ASSERT_FALSE(advice.interventions.empty());
  const Intervention& fusion = advice.interventions[0];
  EXPECT_EQ(fusion.id, "fuse_pointwise");
  EXPECT_EQ(fusion.kernels.size(), 5u);
  const double saved = truth["saved_ms"].as_double() * 1e6;
  expect_holds(fusion.saved_ns, saved);
  expect_holds(fusion.saved_share, saved / (truth["before_ms"].as_double() * 1e6));
  EXPECT_NEAR(fusion.saved_ns.mid / saved, 1, 0.1);
  EXPECT_LT(fusion.saved_ns.high, 1.7 * fusion.saved_ns.low);  // an interval that says something
}

TEST(MeasuredAdvice, AGraphForALaunchBoundDecoder) {
  const Json truth = measured("graphs_decode");
  const Advice advice = advice_of(std::string(kTraces) + "kineto_h200_decode_before.json.gz");
  EXPECT_EQ(advice.verdict, "scheduling");
  const auto found = std::find_if(advice.interventions.begin(), advice.interventions.end(),
                                  [](const Intervention& one) { return one.id == "cuda_graphs"; });
  ASSERT_NE(found, advice.interventions.end());
  const Intervention& graph = *found;
  // The host sets the pace: no kernel is blamed, and the other ways to relieve it come along.
  for (const Intervention& one : advice.interventions)
    EXPECT_TRUE(one.regime == "host" || one.id == "compile_model") << one.id;
  const double before = truth["before_ms"].as_double() * 1e6;
  const double saved = truth["saved_ms"].as_double() * 1e6;
  expect_holds(graph.saved_ns, saved);
  expect_holds(graph.saved_share, saved / before);
  expect_holds(advice.unit.baseline_ns, before);
  EXPECT_NEAR(graph.saved_ns.mid / saved, 1, 0.1);
}

// What is done is not recommended again.
TEST(MeasuredAdvice, AfterwardsItIsSilent) {
  for (const char* name :
       {"kineto_h200_fusion_after.json.gz", "kineto_h200_decode_after.json.gz"}) {
    const Advice advice = advice_of(std::string(kTraces) + name);
    EXPECT_EQ(find_intervention(advice, "fuse_pointwise"), nullptr) << name;
    EXPECT_EQ(find_intervention(advice, "cuda_graphs"), nullptr) << name;
  }
}

// The step of a transformer without a profiler, from one with.
TEST(MeasuredAdvice, TheStepWithoutItsRecorder) {
  const double truth = measured("transformer_train")["ms"].as_double() * 1e6;
  const Advice advice =
      advice_of(PURLIN_SOURCE_DIR "/tests/data/timeline/transformer_h200.json.gz");
  expect_holds(advice.unit.baseline_ns, truth);
}

// PyTorch's own pairs (pytorch/kineto's samples): a ResNet-50 without data loader workers and with
// four. The traces are not here; their published step and loader times are.
TEST(MeasuredAdvice, LoadingInputAhead) {
  struct Pair {
    std::int64_t step_us, loader_us;
    double saved_us;
  };
  for (const Pair& pair : {Pair{177'592, 59'262, 36'524}, Pair{141'068, 35'504, 12'103}}) {
    TimelineBuilder builder;
    const std::int64_t step = pair.step_us * 1'000, loader = pair.loader_us * 1'000;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = i * step;
      builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), at, step);
      builder.range(RangeKind::kDataLoader, "enumerate(DataLoader)#next", at, loader);
      builder.kernel("sgemm", at + loader + 1'000, step - loader - 2'000,
                     builder.launch(at + loader, 1'000));
    }
    for (KernelRow& row : builder.profile.kernels)
      for (int i = 0; i < 4; ++i) row.duration.add(static_cast<double>(step - loader - 2'000));
    const Profile& profile = builder.sorted();
    const Advice advice = advise(profile, analyze_timeline(profile));
    ASSERT_EQ(advice.interventions.size(), 1u);
    EXPECT_EQ(advice.interventions[0].id, "feed_the_device");
    expect_holds(advice.interventions[0].saved_ns, pair.saved_us * 1e3);
    const double margin = margin_of("feed_the_device").above * advice.unit.baseline_ns.mid;
    EXPECT_NEAR(advice.interventions[0].saved_ns.high, static_cast<double>(loader) + margin, 3e3);
  }
}

}  // namespace
}  // namespace purlin::analyze
