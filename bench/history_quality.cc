// SPDX-License-Identifier: Apache-2.0
// How often the change points of a history are wrong, and how often they find what is there: series
// of 1 % noise, white or autocorrelated, unchanged or with a planted step or bump.
//
//   history_quality [TRIALS]     prints a Markdown table; 300 trials take about 2 minutes
#include "base/random.h"
#include "base/status.h"
#include "guard/history/change_points.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace purlin {
namespace {

std::vector<double> series(std::size_t n, double sd, double phi, Random& random) {
  std::vector<double> values;
  double noise = random.normal();
  for (std::size_t i = 0; i < n; ++i) {
    noise = phi * noise + std::sqrt(1 - phi * phi) * random.normal();
    values.push_back(100 * std::exp(sd * noise));
  }
  return values;
}

std::vector<double> raised(std::vector<double> values, std::size_t begin, std::size_t end,
                           double factor) {
  for (std::size_t i = begin; i < end; ++i) values[i] *= factor;
  return values;
}

bool finds(const std::vector<double>& values, std::size_t at,
           const guard::ChangePointOptions& options) {
  for (const guard::ChangePoint& point : guard::find_change_points(values, options))
    if (point.index + 2 >= at && point.index <= at + 2) return true;
  return false;
}

void measure(double phi, std::size_t n, int trials) {
  int unchanged = 0, default_unchanged = 0, middle = 0, large = 0, last = 0, bump = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial) * 7 + 1);
    guard::ChangePointOptions any;
    any.min_magnitude = 0;
    any.permutations = 499;
    any.seed = static_cast<std::uint64_t>(trial);
    guard::ChangePointOptions usual = any;
    usual.min_magnitude = guard::ChangePointOptions{}.min_magnitude;
    const std::vector<double> plain = series(n, 0.01, phi, random);
    unchanged += !guard::find_change_points(plain, any).empty();
    default_unchanged += !guard::find_change_points(plain, usual).empty();
    middle += finds(raised(plain, n / 2, n, 1.05), n / 2, usual);
    large += finds(raised(plain, n / 2, n, 1.22), n / 2, usual);
    last += finds(raised(plain, n - 3, n, 1.05), n - 3, usual);
    bump += guard::find_change_points(raised(plain, n / 3, 2 * n / 3, 1.1), usual).size() >= 2;
  }
  const auto share = [&](int count) { return 100.0 * count / trials; };
  std::printf("| %s | %zu | %.1f %% | %.1f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %% |\n",
              phi == 0 ? "white" : fmt::format("AR({:.1f})", phi).c_str(), n, share(unchanged),
              share(default_unchanged), share(middle), share(large), share(last), share(bump));
  std::fflush(stdout);
}

}  // namespace
}  // namespace purlin

int main(int argc, char** argv) {
  const int trials = argc > 1 ? std::atoi(argv[1]) : 300;
  if (trials < 1) return 2;
  std::printf(
      "| noise, 1 %% | points | annotated though unchanged | the same, at least 2 %% | +5 %% in "
      "the middle | +22 %% in the middle | +5 %% in the last 3 points | +10 %% bump of a third, "
      "both ends |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const double phi : {0.0, 0.3, 0.5, 0.7, 0.9})
    for (const std::size_t n : {6u, 14u, 30u, 60u, 120u, 200u}) purlin::measure(phi, n, trials);
}
