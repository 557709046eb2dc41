// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/ids_per_launch.h"

#include <algorithm>

namespace purlin::profile::capture {
namespace {

constexpr double kMaxGaps = 1e6;     // beyond it, old windows count half
constexpr double kMaxStrays = 0.05;  // of the launches, at either end
constexpr double kMinHeld = 0.2;

}  // namespace

// A window is less likely to hold both ends of a long gap than of a short one. Captures take long
// and would be missed at the window's ends. Each gap therefore counts 1 / p, where p is the chance
// that the window holds both of its ends (Horvitz and Thompson). Launches with consecutive IDs may
// have been made together and run one after the other. A gap after them is taken to begin half-way.
void IdsPerLaunch::learn(std::vector<std::pair<std::int64_t, std::int64_t>> launches,
                         double open_ns) {
  if (gaps_ > kMaxGaps) ids_ /= 2, gaps_ /= 2;
  std::sort(launches.begin(), launches.end());
  const std::size_t gaps = launches.size() - 1;
  const auto ids = [&](std::size_t i) {
    return static_cast<double>(launches[i + 1].first - launches[i].first);
  };
  // A thread may have waited between its launch's number and its record: a stray.
  const auto strays = static_cast<std::size_t>(kMaxStrays * static_cast<double>(launches.size()));
  double longest = 0;
  for (std::size_t i = strays; i < gaps - strays; ++i) longest = std::max(longest, ids(i));
  std::int64_t row_ns = launches.front().second;
  for (std::size_t i = 0; i < gaps; ++i) {
    if (ids(i) > longest) continue;
    double lasted = 0;
    if (ids(i) > 1) {
      lasted = static_cast<double>(launches[i + 1].second -
                                   (row_ns + (launches[i].second - row_ns) / 2));
      row_ns = launches[i + 1].second;
    }
    const double held = std::clamp(1 - lasted / open_ns, kMinHeld, 1.0);
    ids_ += ids(i) / held;
    gaps_ += 1 / held;
  }
  value_ = std::max(1.0, ids_ / gaps_);
}

}  // namespace purlin::profile::capture
