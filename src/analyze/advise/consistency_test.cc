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
#include <cmath>
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

// ">> GPU idle 55%…", ">> 2 GPUs idle 55%…", with its continuation lines.
std::string headline_of(const std::string& report) {
  const std::size_t begin = report.find(">> ");
  if (begin == std::string::npos) return "";
  const std::size_t end = report.find(" launches, wall time", begin);
  return report.substr(begin, std::min(end, begin + 400) - begin);
}
bool headline_is_idle(const std::string& report) {
  const std::string line = headline_of(report).substr(0, 20);
  return line.find("GPU idle") != std::string::npos || line.find("GPUs idle") != std::string::npos;
}

double idle_share_of(const TimelineAnalysis& timeline) {
  double span = 0, busy = 0;
  for (const DeviceTime& device : timeline.devices) {
    span += static_cast<double>(device.span_ns);
    busy += static_cast<double>(device.busy_ns);
  }
  return span > 0 ? 1 - busy / span : 0;
}

// The idle share that the report begins with is that of its timeline, or of a step that is known to
// be shorter than the recorded ones.
void expect_headline(const Statements& all) {
  if (!headline_is_idle(all.report_text)) return;
  const std::string headline = headline_of(all.report_text);
  const double recorded = idle_share_of(all.report.timeline);
  const std::string percent = fmt::format(" {:.0f}%", recorded * 100);
  EXPECT_NE(headline.find(percent), std::string::npos) << headline << percent;
  if (headline.find("while recorded") == std::string::npos) return;
  EXPECT_GT(all.report.coverage.step_ns, 0) << headline;
  EXPECT_LT(all.report.coverage.step_ns,
            static_cast<double>(all.report.timeline.mean_step.duration_ns));
}

// Levels are shares of one whole; a plan saves no more than all; what is to be tuned is not
// removed.
void expect_plan(const Advice& advice) {
  double levels = 0;
  for (const double share : advice.levels) {
    EXPECT_GE(share, 0);
    levels += share;
  }
  EXPECT_LE(levels, 1.001);
  if (advice.verdict == "tune") {
    EXPECT_FALSE(advice.tune.empty() && advice.interventions.empty());
  }
  double saved = 0;
  for (const PlanStep& step : advice.plan) {
    ASSERT_LT(step.intervention, advice.interventions.size());
    EXPECT_GE(step.saved_share, 0);
    saved += step.saved_share;
  }
  EXPECT_LE(saved, 1.001);
  EXPECT_EQ(advice.plan.size(), advice.interventions.size());
  for (const ListedKernel& kernel : advice.tune) {
    EXPECT_LE(kernel.obsolete_after, advice.plan.size());
    EXPECT_LE(kernel.share, 1);
    if (kernel.obsolete_after > 0) continue;
    for (const Intervention& one : advice.interventions) {
      const bool names =
          std::find(one.kernels.begin(), one.kernels.end(), kernel.label) != one.kernels.end();
      EXPECT_FALSE(names && loss_level(one) == LossLevel::kRestructure)
          << kernel.label << " is to be tuned, and " << one.title;
    }
  }
  for (const NoGain& none : advice.no_gain)
    for (const Intervention& one : advice.interventions)
      EXPECT_NE(none.what, one.title) << "advised, and of no gain";
}

// A step's parts and the report's other figures of time.
void expect_steps(const Statements& all) {
  const TimelineAnalysis& timeline = all.report.timeline;
  const StepTime& mean = timeline.mean_step;
  EXPECT_EQ(mean.duration_ns, mean.kernel_ns + mean.communication_ns + mean.copy_ns + mean.set_ns +
                                  mean.runtime_ns + mean.data_loader_ns + mean.cpu_ns +
                                  mean.other_ns);
  double shares = 0;
  for (const KernelStat& kernel : all.report.kernels) {
    EXPECT_GE(kernel.share, 0);
    shares += kernel.share;
  }
  EXPECT_LE(shares, 1.001);
}

// The two lengths of a step agree, or the text says what makes the difference. The recorder does
// not take the device's work.
void expect_unit(const Statements& all) {
  const Unit& unit = all.advice.unit;
  const auto mean = static_cast<double>(all.report.timeline.mean_step.duration_ns);
  if (unit.kind != "step" || mean <= 0) return;
  if (std::abs(unit.recorded_ns - mean) > 0.06 * mean) {
    EXPECT_TRUE(all.advice_text.find("in the steps, and") != std::string::npos ||
                all.advice_text.find("with the one-off gaps") != std::string::npos)
        << unit.recorded_ns << " is no step of " << mean;
  }
  if (all.report.coverage.step_ns <= 0 && unit.devices < 2) {
    EXPECT_GE(unit.baseline_ns.mid, 0.98 * unit.busy_ns);
  }
}

// Gaps that come again are none of one time only.
void expect_one_off(const TimelineAnalysis& timeline) {
  for (const Gap& gap : timeline.gaps) {
    if (!gap.one_off) continue;
    const auto alike =
        std::count_if(timeline.gaps.begin(), timeline.gaps.end(), [&](const Gap& other) {
          return other.device == gap.device && other.duration_ns >= gap.duration_ns;
        });
    const auto again =
        std::count_if(timeline.gaps.begin(), timeline.gaps.end(), [&](const Gap& other) {
          return other.device == gap.device && other.duration_ns >= gap.duration_ns / 2;
        });
    EXPECT_TRUE(alike < 3 && again < 3) << alike << " gaps of " << gap.duration_ns << " ns";
  }
}

void expect_sums(const TimelineAnalysis& timeline) {
  std::set<int> seen;
  for (const DeviceTime& device : timeline.devices) {
    EXPECT_TRUE(seen.insert(device.device).second) << "a device is listed twice";
    std::int64_t idle = 0;
    for (const std::int64_t ns : device.idle_ns) idle += ns;
    EXPECT_EQ(idle, device.idle_total_ns());
    EXPECT_EQ(device.window_ns, device.span_ns + device.one_off_ns + device.other_work_ns);
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
  expect_headline(all);
  expect_plan(advice);
  expect_steps(all);
  expect_unit(all);
  expect_one_off(all.report.timeline);
  // Causes of idle time, in the advice and in the report.
  for (const std::string& note : advice.notes)
    if (note.find("causes of idle time are not known") != std::string::npos) {
      for (const std::string& line : split(all.report_text, '\n')) {
        EXPECT_FALSE(starts_with(line, "  idle ") && line.find("host launch") != std::string::npos)
            << line;
      }
    }
  for (const NoGain& one : advice.no_gain)
    EXPECT_EQ(one.why.find("only 100.0%"), std::string::npos) << one.why;
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
  // What is not known is not estimated, and nothing else claims to know it.
  for (const UnknownRoof& one : advice.unknown_roofs) {
    EXPECT_EQ(all.advice_text.find("Nothing to recommend"), std::string::npos) << one.kernel;
    EXPECT_FALSE(one.collect.empty() || one.look_at.empty() || one.launch.empty()) << one.kernel;
    EXPECT_LE(one.share, 1) << one.kernel;
    EXPECT_LT(advice.judged_share, 1) << one.kernel;
    EXPECT_NE(advice.verdict, "scale_hardware") << one.kernel;
    for (const ListedKernel& listed : advice.tune) EXPECT_NE(listed.label, one.kernel);
  }
  // Savings are shares of the whole, in order within themselves.
  for (const Intervention& one : advice.interventions) {
    EXPECT_LE(one.saved_share.low, one.saved_share.mid) << one.id;
    EXPECT_LE(one.saved_share.mid, one.saved_share.high) << one.id;
    EXPECT_LE(one.saved_share.high, 1) << one.id;
    EXPECT_FALSE(one.evidence.empty()) << one.id;
  }
  // A host that takes no time saves no less than a faster one. Loops that become
  // fewer kernels save the device's time, too.
  const auto of_the_host_alone = [](const Intervention& one) {
    return (one.id == "cut_host_work" || one.id == "feed_the_device") &&
           std::none_of(one.evidence.begin(), one.evidence.end(), [](const Evidence& evidence) {
             return evidence.what == "launches in loops within a step";
           });
  };
  for (const WhatIf& host : advice.what_if)
    for (const Intervention& one : advice.interventions)
      if (host.resource == "host" && of_the_host_alone(one)) {
        EXPECT_LE(one.saved_share.mid, host.saved_share + 0.01) << one.id;
      }
  // Each has an own place, interventions in their order.
  std::set<std::size_t> places;
  std::size_t last = 0;
  for (const Intervention& one : advice.interventions) {
    EXPECT_GT(one.place, last) << one.id;
    last = one.place;
    places.insert(one.place);
  }
  for (const Intervention& one : advice.trades) places.insert(one.place);
  EXPECT_EQ(places.size(), advice.interventions.size() + advice.trades.size());
  EXPECT_TRUE(places.empty() || (*places.begin() == 1 && *places.rbegin() == places.size()));
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

// Programs that repeat a step: bound by the host or by the device, with waits, start-up, another
// rank, marks or none, and with a step that was also timed while nothing was recorded.
Profile random_loop(Random& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  const int ranks = random.below(3) == 0 ? 2 : 1;
  TimelineBuilder builder(ranks);
  builder.profile.processes.resize(static_cast<std::size_t>(ranks));
  const std::int64_t launches = 2 + below(12), host_ns = 2'000 + below(20'000);
  const std::int64_t kernel_ns = 1'000 + below(30'000),
                     pause_ns = below(3) == 0 ? below(200'000) : 0;
  const std::int64_t steps = 4 + below(30);
  const bool marked = below(2) == 0, waits = below(3) != 0, known = below(3) != 0;
  // The input comes late each so many steps; other work lies between some steps; a result is read
  // by a memcpy to pageable memory.
  const std::int64_t stall_each = below(3) == 0 ? 2 + below(5) : 0,
                     stall_ns = 100'000 + below(2'000'000);
  const std::int64_t other_each = below(4) == 0 ? 3 + below(5) : 0;
  const bool reads = below(3) == 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto process = static_cast<std::uint32_t>(rank);
    std::int64_t host = 1'000'000 + below(5'000'000), device = host;
    builder.copy("h2d", below(500'000), 400'000, kNone, 7, rank).process = process;
    for (std::int64_t step = 0; step < steps; ++step) {
      if (other_each > 0 && step % other_each == 1)
        for (std::int64_t i = 0; i < launches; ++i, host += host_ns) {
          device = std::max(device, host + 3'000);
          const std::uint32_t call =
              known ? builder.call(CallKind::kLaunch, kQueuedCall, host, 0, kNone, process) : kNone;
          builder.kernel(fmt::format("eval_{}", i % 3), device, kernel_ns, call, 7, rank).process =
              process;
          device += kernel_ns;
        }
      const std::int64_t begin = host;
      if (stall_each > 0 && step % stall_each == 0) {
        builder.range(RangeKind::kDataLoader, "enumerate(DataLoader)", host, stall_ns, process);
        host += stall_ns;
      }
      for (std::int64_t i = 0; i < launches; ++i, host += host_ns) {
        device = std::max(device, host + 3'000);
        const std::uint32_t call =
            known ? builder.call(CallKind::kLaunch, kQueuedCall, host, 0, kNone, process) : kNone;
        const bool talks = ranks > 1 && i + 1 == launches;
        builder
            .kernel(talks ? "ncclDevKernel_AllReduce" : fmt::format("gemm_{}", i % 5), device,
                    kernel_ns, call, 7, rank)
            .process = process;
        device += kernel_ns;
      }
      if (reads) {
        device = std::max(device, host + 3'000) + 1'000;
        const std::int64_t end = device + 2'000;
        const std::uint32_t call =
            builder.call(CallKind::kCopy, "cudaMemcpyAsync", host, end - host, 5, process);
        builder.copy("d2h pageable", device - 1'000, 1'000, call, 7, rank).process = process;
        host = end;
      }
      if (waits) {
        const std::int64_t end = std::max(host + 1'000, device + 2'000);
        builder.call(CallKind::kSync, "cuStreamSynchronize", host, end - host, 5, process);
        host = end;
      }
      host += pause_ns;
      if (marked) builder.range(RangeKind::kStep, "step", begin, host - begin, process);
    }
    if (below(2) == 0)
      builder.profile.processes[process].paces = {
          {1'000, 1e3 * static_cast<double>(std::max(launches * host_ns, launches * kernel_ns))}};
  }
  Profile profile = builder.sorted();
  for (const Activity& activity : profile.timeline.activities)
    if (activity.kind == ActivityKind::kKernel)
      profile.kernels[activity.row].duration.add(static_cast<double>(activity.duration_ns));
  profile.source = "purlin";
  return profile;
}

TEST(Consistency, OfGeneratedLoops) {
  Random random(21);
  for (int i = 0; i < 150; ++i) {
    const Profile profile = random_loop(random);
    for (const PhaseChoice choice : {PhaseChoice::kSteadyState, PhaseChoice::kAll})
      expect_no_contradiction(state(profile, choice));
    if (testing::Test::HasFailure()) FAIL() << "loop " << i;
  }
}

// Of the repository, and of the folders of shared inputs where they lie next to it; of every type
// that can be opened.
TEST(Consistency, OfRecordedTraces) {
  int traces = 0;
  for (const char* folder :
       {"/tests/data/traces", "/tests/data/timeline", "/tests/data/imports",
        "/../shared/field/import", "/../shared/field/conclusions", "/../shared/data/traces"}) {
    std::error_code absent;
    for (const auto& entry :
         std::filesystem::directory_iterator(PURLIN_SOURCE_DIR + std::string(folder), absent)) {
      const std::string path = entry.path().string();
      const Result<Profile> profile = profile::open_profile(path);
      if (!profile.is_ok()) continue;
      SCOPED_TRACE(path);
      for (const PhaseChoice choice : {PhaseChoice::kSteadyState, PhaseChoice::kAll})
        expect_no_contradiction(state(*profile, choice));
      ++traces;
    }
  }
  EXPECT_GT(traces, 8);
}

}  // namespace
}  // namespace purlin::analyze
