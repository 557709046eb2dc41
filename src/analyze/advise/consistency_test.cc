// SPDX-License-Identifier: Apache-2.0
// No two statements about one profile contradict each other: report, timeline and advice of all
// recorded traces and of generated timelines.
#include "analyze/advise/advice.h"
#include "analyze/phase/slice.h"
#include "analyze/report/report.h"
#include "analyze/report/text.h"
#include "analyze/timeline/testing.h"
#include "base/files.h"
#include "base/text.h"
#include "profile/import/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace purlin::analyze {
namespace {

struct Statements {
  Report report;
  Advice advice;
  std::string report_text, advice_text;
};

Statements state(Profile profile, PhaseChoice choice = PhaseChoice::kSteadyState) {
  Statements out;
  Result<TimelineAnalysis> timeline = select_phase(profile, choice);
  if (!timeline.is_ok()) return out;
  out.advice = advise(profile, *timeline);
  out.report = build_report(profile, std::move(*timeline), GroupBy::kKernel);
  put_advice(out.advice, out.report);
  const Terminal terminal(false, false, false, 100);
  out.report_text = render_text(out.report, terminal);
  out.advice_text = render_advice(out.advice, terminal);
  return out;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// ">> GPU idle 55%…", ">> 2 GPUs idle 55%…"
bool headline_is_idle(const std::string& report) {
  const std::size_t begin = report.find(">> ");
  if (begin == std::string::npos) return false;
  const std::string line = report.substr(begin, report.find('\n', begin) - begin);
  return line.find("GPU idle") != std::string::npos || line.find("GPUs idle") != std::string::npos;
}

void expect_sums(const TimelineAnalysis& timeline) {
  std::set<int> seen;
  for (const DeviceTime& device : timeline.devices) {
    EXPECT_TRUE(seen.insert(device.device).second) << "a device is listed twice";
    std::int64_t idle = 0;
    for (const std::int64_t ns : device.idle_ns) idle += ns;
    EXPECT_EQ(idle, device.idle_total_ns());
    EXPECT_EQ(device.window_ns, device.span_ns + device.one_off_ns);
    EXPECT_GE(device.one_off_ns, 0);
    EXPECT_LE(device.busy_ns, device.span_ns);
  }
  for (const Phase& phase : timeline.phases) {
    EXPECT_LE(phase.busy_ns, phase.span_ns);
    EXPECT_GE(phase.busy_ns, 0);
  }
  if (!timeline.steps.empty()) {
    EXPECT_FALSE(timeline.steps_from.empty());
  }
}

void expect_no_contradiction(const Statements& all) {
  const Advice& advice = all.advice;
  expect_sums(all.report.timeline);
  // Advice and its absence.
  EXPECT_EQ(advice.interventions.empty(), !advice.nothing.empty());
  if (advice.nothing.find("does not idle") != std::string::npos) {
    EXPECT_LT(advice.idle_share, 0.05);
    EXPECT_FALSE(headline_is_idle(all.report_text)) << all.report_text;
    EXPECT_NE(advice.verdict, "scheduling");
  }
  // The level, and the figures it rests on.
  if (advice.verdict == "scheduling") {
    EXPECT_GT(advice.idle_share, 0);
  }
  if (advice.verdict == "unknown" && advice.kernel_utilization > 0) {
    EXPECT_LT(advice.judged_share, 1);
  }
  // Savings are shares of the whole, in order within themselves.
  for (const Intervention& one : advice.interventions) {
    EXPECT_LE(one.saved_share.low, one.saved_share.mid) << one.id;
    EXPECT_LE(one.saved_share.mid, one.saved_share.high) << one.id;
    EXPECT_LE(one.saved_share.high, 1) << one.id;
    EXPECT_FALSE(one.evidence.empty()) << one.id;
  }
  // One intervention for all devices alike.
  std::set<std::string> titles;
  for (const Intervention& one : advice.interventions)
    EXPECT_TRUE(titles.insert(one.title + "\n" + join(one.kernels, "\n")).second) << one.title;
  EXPECT_EQ(count_of(all.report_text, "a guess:"),
            all.report.timeline.steps_from == kGuessedSteps && !all.report.timeline.steps.empty());
  // The report's first advice is the advice's first.
  if (!advice.interventions.empty()) {
    ASSERT_FALSE(all.report.advice.empty());
    EXPECT_EQ(all.report.advice[0].id, advice.interventions[0].id);
    EXPECT_EQ(all.advice_text.find("Nothing to recommend"), std::string::npos);
  }
  // Steps and their absence.
  EXPECT_FALSE(all.report_text.find("no steps:") != std::string::npos &&
               !all.report.timeline.steps.empty());
}

TEST(Consistency, OfGeneratedTimelines) {
  Random random(20);
  for (int i = 0; i < 400; ++i) {
    Profile profile =
        random_timeline(random, 2'000 + static_cast<std::int64_t>(random.below(1'000'000)));
    for (const Activity& activity : profile.timeline.activities)
      if (activity.kind == ActivityKind::kKernel)
        profile.kernels[activity.row].duration.add(
            static_cast<double>(std::max<std::int64_t>(0, activity.duration_ns)));
    for (const PhaseChoice choice : {PhaseChoice::kSteadyState, PhaseChoice::kAll})
      expect_no_contradiction(state(profile, choice));
    if (testing::Test::HasFailure()) FAIL() << "timeline " << i;
  }
}

// Of the repository, and of the folder of field inputs where it lies next to it.
TEST(Consistency, OfRecordedTraces) {
  int traces = 0;
  for (const char* folder : {"/tests/data/traces", "/tests/data/timeline",
                             "/../shared/field/import", "/../shared/field/conclusions"}) {
    std::error_code absent;
    for (const auto& entry :
         std::filesystem::directory_iterator(PURLIN_SOURCE_DIR + std::string(folder), absent)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".json.gz")) continue;
      const Result<Profile> profile = profile::import_chrome_trace(path, {});
      if (!profile.is_ok()) continue;
      SCOPED_TRACE(path);
      expect_no_contradiction(state(*profile));
      ++traces;
    }
  }
  EXPECT_GT(traces, 5);
}

}  // namespace
}  // namespace purlin::analyze
