// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/ids_per_launch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace purlin::profile::capture {
namespace {

constexpr double kMaxGaps = 1e6;     // beyond it, old windows count half
constexpr double kMaxStrays = 0.05;  // of the launches, at either end
constexpr double kMinHeld = 0.2;

using Launches = std::vector<std::pair<std::int64_t, std::int64_t>>;  // ID and start

// Of the gaps between launches, at most all: those that last longest.
std::vector<std::size_t> longest_gaps(const Launches& launches, std::size_t count) {
  if (count == 0) return {};
  std::vector<std::size_t> gaps(launches.size() - 1);
  std::iota(gaps.begin(), gaps.end(), std::size_t{0});
  count = std::min(count, gaps.size());
  const auto lasted = [&](std::size_t gap) {
    return launches[gap + 1].second - launches[gap].second;
  };
  std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(count), gaps.end(),
                    [&](std::size_t a, std::size_t b) { return lasted(a) > lasted(b); });
  gaps.resize(count);
  return gaps;
}

}  // namespace

// A window is less likely to hold both ends of a long gap than of a short one. Captures take long
// and would be missed at the window's ends. Each gap therefore counts 1 / p, where p is the chance
// that the window holds both of its ends (Horvitz and Thompson). Launches with consecutive IDs may
// have been made together and run one after the other. A gap after them is taken to begin half-way.
//
// What was launched between two windows has IDs and no record. These gaps are left out: they are
// those that last longest.
void IdsPerLaunch::learn(Launches launches, double open_ns, int windows) {
  if (gaps_ > kMaxGaps)
    for (double* sum :
         {&ids_, &gaps_, &plain_ids_, &plain_gaps_, &squares_ids_, &products_, &squares_gaps_})
      *sum /= 2;
  std::sort(launches.begin(), launches.end());
  const std::size_t gaps = launches.size() - 1;
  const auto ids = [&](std::size_t i) {
    return static_cast<double>(launches[i + 1].first - launches[i].first);
  };
  const std::vector<std::size_t> between =
      longest_gaps(launches, static_cast<std::size_t>(windows - 1));
  const auto is_between = [&](std::size_t i) {
    return std::find(between.begin(), between.end(), i) != between.end();
  };
  // A thread may have waited between its launch's number and its record: a stray.
  const auto strays = static_cast<std::size_t>(kMaxStrays * static_cast<double>(launches.size()));
  double longest = 0;
  for (std::size_t i = strays; i < gaps - strays; ++i)
    if (!is_between(i)) longest = std::max(longest, ids(i));
  double window_ids = 0, window_gaps = 0;
  std::int64_t row_ns = launches.front().second;
  for (std::size_t i = 0; i < gaps; ++i) {
    if (is_between(i)) row_ns = launches[i + 1].second;
    if (is_between(i) || ids(i) > longest) continue;
    double lasted = 0;
    if (ids(i) > 1) {
      lasted = static_cast<double>(launches[i + 1].second -
                                   (row_ns + (launches[i].second - row_ns) / 2));
      row_ns = launches[i + 1].second;
    }
    const double held = std::clamp(1 - lasted / open_ns, kMinHeld, 1.0);
    window_ids += ids(i) / held;
    window_gaps += 1 / held;
    plain_ids_ += ids(i);
    plain_gaps_ += 1;
  }
  ids_ += window_ids;
  gaps_ += window_gaps;
  squares_ids_ += window_ids * window_ids;
  products_ += window_ids * window_gaps;
  squares_gaps_ += window_gaps * window_gaps;
  value_ = std::max(1.0, ids_ / gaps_);
}

// The variance is that of a ratio of two sums over windows (Cochran, Sampling Techniques, 6.3).
double IdsPerLaunch::doubt() const {
  if (!learned() || value_ <= 1) return 0;
  const double variance =
      (squares_ids_ - 2 * value_ * products_ + value_ * value_ * squares_gaps_) / (gaps_ * gaps_);
  const double plain = plain_ids_ / plain_gaps_;
  return (2 * std::sqrt(std::max(0.0, variance)) + std::abs(value_ - plain)) / value_;
}

}  // namespace purlin::profile::capture
