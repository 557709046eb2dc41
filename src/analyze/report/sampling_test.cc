// SPDX-License-Identifier: Apache-2.0
// S97: a sample of the launches ranks as all of them do. The text states no total of a sample that
// a reader can refute.
#include "analyze/report/report.h"
#include "analyze/report/text.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace purlin::analyze {
namespace {

constexpr int kKernels = 200;
constexpr std::size_t kTop = 10;

std::vector<std::string> top(const Report& report) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kTop; ++i) out.push_back(report.kernels[i].name.full);
  return out;
}

std::string on_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const char plain = c == '\n' ? ' ' : c;
    if (plain != ' ' || out.empty() || out.back() != ' ') out += plain;
  }
  return out;
}

// Many short launches and few long ones may own as much time: shares fall off slowly, counts and
// durations differ by three orders.
TEST(Sampling, OneLaunchInTenRanksAsAllOfThem) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    Profile all, sample;
    for (int k = 0; k < kKernels; ++k) {
      KernelRow row;
      row.name = "kernel_" + std::to_string(k);
      all.kernels.push_back(row);
      sample.kernels.push_back(row);
      const double total = 1e9 / std::pow(k + 1, 0.9);
      const double mean = 1e3 * std::pow(10, 2.0 * static_cast<double>(random.below(1000)) / 1000);
      const auto count = static_cast<int>(total / mean / 10) + 1;
      for (int i = 0; i < count; ++i) {
        const double ns = mean * (0.5 + static_cast<double>(random.below(1000)) / 1000);
        all.kernels.back().duration.add(ns);
        if (random.below(10) == 0) sample.kernels.back().duration.add(ns, 10);
      }
    }
    const Report truth = build_rows(all, GroupBy::kKernel);
    const Report guess = build_rows(sample, GroupBy::kKernel);
    const std::vector<std::string> wanted = top(truth);
    std::size_t overlap = 0;
    for (const std::string& name : top(guess))
      overlap += std::count(wanted.begin(), wanted.end(), name) > 0 ? 1 : 0;
    EXPECT_GE(overlap, kTop - 1) << "seed " << seed;
    EXPECT_NEAR(guess.kernel_ns / truth.kernel_ns, 1, 0.02);
    for (std::size_t i = 0; i < kTop; ++i)
      for (const KernelStat& kernel : guess.kernels)
        if (kernel.name.full == truth.kernels[i].name.full) {
          EXPECT_NEAR(kernel.share, truth.kernels[i].share, 0.02);
        }
  }
}

// Of windows with any error, and of totals below and beyond the wall time.
TEST(Sampling, ATotalIsNeverStatedAsMoreThanIsKnown) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const auto part = [&] { return static_cast<double>(random.below(1001)) / 1000; };
    Profile profile;
    profile.wall_ns = 1'000'000'000;
    profile.kernels.resize(1);
    profile.kernels[0].name = "kernel";
    const double total = 2e9 * part(), weight = 1 + 9 * part();
    profile.kernels[0].duration.add(total / weight, weight);
    Coverage& coverage = profile.coverage;
    coverage.launches_seen = 1;
    coverage.launches_sampled_out = trial % 5 == 0 ? 0 : weight;
    coverage.sampling.budget = 0.01;
    coverage.sampling.governed_ns = 1e9;
    coverage.sampling.recorded_ns = 1e8;
    coverage.sampling.windows = coverage.sampling.timed_windows = 10;
    coverage.sampling.total_ns = total;
    coverage.sampling.total_variance = std::pow(0.1 * total * part(), 2);
    coverage.sampling.unsure_ns = trial % 3 == 0 ? 0 : 0.5 * total * part();
    const Report report = build_rows(profile, GroupBy::kKernel);
    const std::string text = on_one_line(render_text(report, Terminal(false, false, false, 100)));
    const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
    const bool sampled = coverage.launches_sampled_out > 0;
    const double error = coverage.sampling.total_error();
    EXPECT_EQ(has("An estimated"), sampled && (error > 0.25 || total > 1e9)) << text;
    EXPECT_EQ(has("beyond the wall time"), sampled && total > 1e9) << text;
    EXPECT_EQ(has("Compare shares"), sampled && error > 0.25) << text;
    EXPECT_EQ(has("overloaded"), sampled && coverage.sampling.unsure_ns > 0.02 * total) << text;
    EXPECT_NEAR(to_json(report)["coverage"]["sampling"]["unsure_ns"].as_double(),
                coverage.sampling.unsure_ns, 1);
  }
}

}  // namespace
}  // namespace purlin::analyze
