// SPDX-License-Identifier: Apache-2.0
#include "guard/bisect/search.h"

namespace purlin::guard {

BisectSearch::BisectSearch(std::size_t commits)
    : probes_(commits, Probe::kUntried), good_(0), bad_(commits - 1) {
  probes_.front() = Probe::kGood;
  probes_.back() = Probe::kBad;
}

std::optional<std::size_t> BisectSearch::next() const {
  // From the middle outwards. Broken builds come in runs, so a neighbour of one is often broken
  // too. Distances grow by half each time; then the skipped commits follow one by one.
  const std::size_t middle = good_ + (bad_ - good_) / 2;
  const auto triable = [&](std::size_t commit) {
    return commit > good_ && commit < bad_ && probes_[commit] == Probe::kUntried;
  };
  for (std::size_t distance = 0; distance < bad_ - good_; distance += 1 + distance / 2) {
    if (triable(middle + distance)) return middle + distance;
    if (distance <= middle && triable(middle - distance)) return middle - distance;
  }
  for (std::size_t commit = good_ + 1; commit < bad_; ++commit)
    if (triable(commit)) return commit;
  return std::nullopt;
}

void BisectSearch::tell(std::size_t commit, Probe probe) {
  if (commit == 0 || commit + 1 >= probes_.size() || probes_[commit] != Probe::kUntried) return;
  if (probe == Probe::kUntriable) ++untriable_;
  probes_[commit] = probe;
  if (probe == Probe::kGood && commit > good_ && commit < bad_) good_ = commit;
  if (probe == Probe::kBad && commit < bad_ && commit > good_) bad_ = commit;
}

int BisectSearch::tries_left() const {
  int tries = 0;
  for (std::size_t width = bad_ - good_; width > 1; width = (width + 1) / 2) ++tries;
  return tries;
}

}  // namespace purlin::guard
