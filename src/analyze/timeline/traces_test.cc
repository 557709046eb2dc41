// SPDX-License-Identifier: Apache-2.0
// Recorded traces, imported and analysed, against figures that another program computed from the
// same files (tests/data/timeline/breakdown.py).
#include "analyze/timeline/timeline.h"
#include "base/files.h"
#include "profile/import/import.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

class TimelineTrace : public testing::TestWithParam<const char*> {};

TEST_P(TimelineTrace, AgreesWithAnIndependentComputation) {
  const std::string stem = std::string(PURLIN_SOURCE_DIR "/tests/data/timeline/") + GetParam();
  const auto text = read_file(stem + ".expected.json");
  ASSERT_TRUE(text.is_ok()) << text.status().message();
  const auto expected = Json::parse(*text);
  ASSERT_TRUE(expected.is_ok());
  const auto profile = profile::import_chrome_trace(stem + ".json.gz", {});
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  const TimelineAnalysis analysis = analyze_timeline(*profile);

  ASSERT_EQ(analysis.devices.size(), 1u);
  const DeviceTime& device = analysis.devices[0];
  EXPECT_EQ(device.span_ns, (*expected)["span_ns"].as_int());
  EXPECT_EQ(device.busy_ns, (*expected)["busy_ns"].as_int());
  EXPECT_EQ(device.kernel_ns, (*expected)["kernel_ns"].as_int());
  EXPECT_EQ(device.work_span_ns, (*expected)["work_span_ns"].as_int());
  EXPECT_EQ(device.work_busy_ns, (*expected)["work_busy_ns"].as_int());
  EXPECT_EQ(device.kernel_sum_ns, (*expected)["kernel_sum_ns"].as_double());
  const auto& steps = (*expected)["steps"].items();
  ASSERT_EQ(analysis.steps.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepTime& step = analysis.steps[i];
    EXPECT_EQ(step.name, steps[i]["name"].as_string());
    EXPECT_EQ(step.duration_ns, steps[i]["duration_ns"].as_int());
    EXPECT_EQ(step.kernel_ns, steps[i]["kernel_ns"].as_int());
    EXPECT_EQ(step.copy_ns, steps[i]["copy_ns"].as_int());
    EXPECT_EQ(step.set_ns, steps[i]["set_ns"].as_int());
    EXPECT_EQ(step.communication_ns, steps[i]["communication_ns"].as_int());
    EXPECT_EQ(step.runtime_ns, steps[i]["runtime_ns"].as_int());
    EXPECT_EQ(step.data_loader_ns, steps[i]["data_loader_ns"].as_int());
    EXPECT_EQ(step.cpu_ns, steps[i]["cpu_ns"].as_int());
    EXPECT_EQ(step.other_ns, steps[i]["other_ns"].as_int());
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, TimelineTrace,
                         testing::Values("resnet50_v100", "transformer_h200"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace purlin::analyze
