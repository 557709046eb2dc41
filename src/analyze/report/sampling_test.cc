// SPDX-License-Identifier: Apache-2.0
// S97: a sample of the launches ranks as all of them do.
#include "analyze/report/report.h"
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

}  // namespace
}  // namespace purlin::analyze
