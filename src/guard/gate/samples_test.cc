// SPDX-License-Identifier: Apache-2.0
#include "guard/gate/samples.h"

#include "base/files.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace purlin::guard {
namespace {

// `processes` processes of 11 iterations of two kernels; `slower` slows the second one.
std::string recording(std::uint64_t seed, int processes, double slower, double clock = 1980) {
  Random random(seed);
  std::string csv = "process,kernel,iteration,time_us,sm_clock_mhz\n";
  for (int process = 1; process <= processes; ++process)
    for (const char* kernel : {"saxpy", "gemm"}) {
      const double base = (kernel[0] == 'g' ? 500 * slower : 40) * random.uniform(0.997, 1.003);
      for (int iteration = 0; iteration < 11; ++iteration)
        csv += fmt::format("{},{},{},{:.3f},{}\n", process, kernel, iteration,
                           base * random.uniform(0.99, 1.02), clock);
    }
  return csv;
}

std::vector<KernelSamples> parsed(const std::string& csv) {
  Result<std::vector<KernelSamples>> samples = parse_samples(csv, "a.csv");
  EXPECT_TRUE(samples.is_ok()) << samples.status().message();
  return samples.value();
}

TEST(Samples, ReadsAnyColumnOrderAndIgnoresOthers) {
  const auto kernels =
      parsed("time_us,host,kernel,process\r\n1.5,a,k,7\r\n2.5,a,k,7\r\n\r\n3.5,a,k,8\r\n");
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].processes.size(), 2u);
  EXPECT_EQ(kernels[0].processes[0].id, "7");
  EXPECT_EQ(kernels[0].processes[0].times_ns, (std::vector<double>{1500, 2500}));
}

TEST(Samples, TwoKernelsWithOneNameAreNotPooled) {
  const auto complaint = [](std::string_view csv) {
    return parse_samples(csv, "a.csv").status().message();
  };
  EXPECT_NE(complaint("process,kernel,iteration,time_us\n1,k,0,1\n1,k,1,1\n1,k,0,9\n")
                .find("process 1 has iteration 0 of 'k' twice"),
            std::string::npos);
  EXPECT_EQ(complaint("process,kernel,iteration,time_us\n1,k,0,1\n2,k,0,1\n1,j,0,9\n"), "");
}

TEST(Samples, QuotedCellsMayHoldCommas) {
  const auto kernels = parsed("process,kernel,time_us\n1,\"f<int, \"\"x\"\">\",2\n");
  EXPECT_EQ(kernels[0].kernel, "f<int, \"x\">");
}

TEST(Samples, ComplaintsNameTheLine) {
  const auto complaint = [](std::string_view csv) {
    return parse_samples(csv, "a.csv").status().message();
  };
  EXPECT_NE(complaint("process,kernel\n").find("a.csv:1: no column 'time_us'"), std::string::npos);
  EXPECT_NE(complaint("process,kernel,time_us\n1,k\n").find("a.csv:2: 2 cells"), std::string::npos);
  for (const char* bad : {"x", "0", "-1", "nan", "inf", ""})
    EXPECT_NE(
        complaint(fmt::format("process,kernel,time_us\n1,k,1\n1,k,{}\n", bad)).find("a.csv:3"),
        std::string::npos)
        << bad;
  EXPECT_NE(complaint("").find("no samples"), std::string::npos);
  EXPECT_NE(complaint("process,kernel,time_us\n").find("no samples"), std::string::npos);
  EXPECT_EQ(load_samples("/nonexistent.csv").status().code(), Code::kNotFound);
}

TEST(Samples, ReadsGzipAndRefusesATruncatedOne) {
  const std::string folder = make_temporary_directory("samples").value();
  const std::string plain = join_path(folder, "a.csv"), path = plain + ".gz";
  ASSERT_TRUE(write_atomic(plain, recording(1, 20, 1)).is_ok());
  ASSERT_EQ(std::system(fmt::format("gzip -k '{}'", plain).c_str()), 0);
  const auto whole = load_samples(path);
  ASSERT_TRUE(whole.is_ok()) << whole.status().message();
  EXPECT_EQ((*whole)[0].processes.size(), 20u);

  const std::string bytes = read_file(path).value();
  ASSERT_TRUE(write_atomic(path, bytes.substr(0, bytes.size() / 2)).is_ok());
  EXPECT_NE(load_samples(path).status().message().find("ends too early"), std::string::npos);
  (void)remove_tree(folder);
}

TEST(Samples, ReadingHoldsMediansOfTimeAndCycles) {
  const ArmReading reading = reading_of({100, 300, 200}, {1000, 1000, 2000});
  EXPECT_EQ(reading.time_ns, 200);
  EXPECT_EQ(reading.cycles, 300);                          // of 100, 300 and 400
  EXPECT_EQ(reading_of({100, 200}, {1000, 0}).cycles, 0);  // one clock missing: none
  EXPECT_EQ(reading_of({100, 200}, {}).cycles, 0);
}

TEST(Samples, TimerResolutionIsTheStepOfACoarseTimer) {
  EXPECT_NEAR(timer_resolution_ns({1024, 1056, 1024, 1088, 1056}), 32, 1e-9);
  EXPECT_EQ(timer_resolution_ns({1000.1, 1003.7, 1011.9}), 0);  // no repeats: a fine timer
  EXPECT_EQ(timer_resolution_ns({5, 5, 5}), 0);
}

TEST(CompareSamples, FindsTheSlowerKernelAndOnlyThat) {
  const auto verdicts = compare_samples(parsed(recording(1, 30, 1)), parsed(recording(2, 30, 1.06)),
                                        Thresholds{}, Design{});
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].kernel, "saxpy");
  EXPECT_EQ(verdicts[0].result.verdict, Verdict::kPass) << verdicts[0].result.reason;
  EXPECT_EQ(verdicts[1].result.verdict, Verdict::kRegression) << verdicts[1].result.reason;
  EXPECT_NEAR(verdicts[1].result.effect.ratio, 1.06, 0.01);
}

TEST(CompareSamples, AFileAgainstItselfPasses) {
  const auto samples = parsed(recording(1, 30, 1));
  for (const SamplesVerdict& verdict : compare_samples(samples, samples, {}, {}))
    EXPECT_EQ(verdict.result.verdict, Verdict::kPass);
}

TEST(CompareSamples, ALowerClockIsNotBlamedOnTheCode) {
  // 10 % slower at a 10 % lower clock.
  std::string slow = recording(2, 30, 1.1, 1800);
  const auto verdicts =
      compare_samples(parsed(recording(1, 30, 1)), parsed(slow), Thresholds{}, Design{});
  EXPECT_EQ(verdicts[1].result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(verdicts[1].result.cause, "clocks");
}

TEST(CompareSamples, AClockBelowHalfOfTheHighestDoesNotCountAsWhenMeasuredNow) {
  // Twelve equal processes. Every fourth sample of `now` ran at 40 % of the clock and took 2.5
  // times as long. The last `asleep` processes of it slept all the time.
  const auto file = [](bool now, int asleep) {
    std::string csv = "process,kernel,time_us,sm_clock_mhz\n";
    for (int process = 1; process <= 12; ++process)
      for (int i = 0; i < 12; ++i) {
        const bool slow = now && (i % 4 == 3 || process > 12 - asleep);
        csv += fmt::format("{},k,{},{}\n", process, (slow ? 25 : 10) + 0.01 * (i + process % 3),
                           slow ? 792 : 1980);
      }
    return parsed(csv);
  };
  auto verdicts = compare_samples(file(false, 0), file(true, 2), {}, {});
  EXPECT_EQ(verdicts[0].result.verdict, Verdict::kPass) << verdicts[0].result.reason;
  EXPECT_EQ(verdicts[0].result.effect.pairs, 8);
  EXPECT_NEAR(verdicts[0].result.effect.ratio, 1, 0.01);
  EXPECT_EQ(verdicts[0].rejected_samples, 10 * 3);
  ASSERT_EQ(verdicts[0].rejected.size(), 2u);
  EXPECT_NE(verdicts[0].rejected[0].find("process 11: 12 of 12 samples ran below 50 %"),
            std::string::npos)
      << verdicts[0].rejected[0];
  verdicts = compare_samples(file(false, 0), file(true, 12), {}, {});
  EXPECT_EQ(verdicts[0].result.verdict, Verdict::kInvalid);
  EXPECT_NE(verdicts[0].result.reason.find("none of 12 pairs"), std::string::npos);
}

TEST(CompareSamples, ShortRecordingsAndMissingKernelsAreInconclusive) {
  const auto few = compare_samples(parsed(recording(1, 6, 1)), parsed(recording(2, 6, 2)), {}, {});
  EXPECT_EQ(few[1].result.verdict, Verdict::kInconclusive);
  const auto missing = compare_samples(parsed("process,kernel,time_us\n1,a,1\n"),
                                       parsed("process,kernel,time_us\n1,b,1\n"), {}, {});
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0].result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(missing[1].result.verdict, Verdict::kInconclusive);
}

TEST(Samples, WhatCannotBeATimeOrAClockIsNone) {
  const auto read = [](const std::string& cells) {
    return parse_samples("process,kernel,time_us,sm_clock_mhz\n1,k," + cells + "\n", "a.csv");
  };
  // Their ratios would be infinite, and their median not a number.
  for (const char* time : {"1e307", "1e-300", "0", "-1", "nan", "inf"})
    EXPECT_FALSE(read(std::string(time) + ",1980").is_ok()) << time;
  const auto samples = read("10,1e300");
  ASSERT_TRUE(samples.is_ok());
  EXPECT_EQ(samples->front().processes.front().clocks_mhz, std::vector<double>{0});
  // A sample that is no time is left out; without others, the process does not count.
  EXPECT_EQ(summarise({10, 0, 10, 10}, {}, 0)->rejected, 1);
  EXPECT_EQ(summarise({10, 0, 10, 10}, {}, 0)->unfit, "");
  for (const double none : {0.0, -1.0, 1e307, std::nan("")})
    EXPECT_NE(summarise({none}, {}, 0)->unfit.find("times that are none"), std::string::npos);
  EXPECT_EQ(summarise({10, 10}, {1e300, 1e300}, 1980)->reading.cycles, 0);
}

}  // namespace
}  // namespace purlin::guard
