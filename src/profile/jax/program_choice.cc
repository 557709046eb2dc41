// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/program_choice.h"

#include "base/hash.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace purlin::profile {
namespace {

constexpr std::size_t kNeighbours = 4;  // in the timeline, on each side
// Looks at a program's launches, of all kernels together: a few seconds. Foreign texts may give one
// name to all launches of all programs.
constexpr std::size_t kMaxLooks = 30'000'000;

// A thread of a loop computes 1, 2, 4, 8 or 16 elements.
bool fits(const hlo::Launch& launch, const KernelRow& row) {
  const double threads = static_cast<double>(row.launch.threads_per_block());
  for (const double each : {1, 2, 4, 8, 16})
    if (std::ceil(launch.elements / (threads * each)) == static_cast<double>(row.launch.blocks()))
      return launch.elements > 0;
  return false;
}

}  // namespace

bool same_work(const hlo::Launch& a, const hlo::Launch& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.op_class == b.op_class;
}

// The program whose schedule has the kernel near those that ran before and after it.
LaunchRef ProgramChoice::choose(const std::vector<LaunchCandidates>& named, std::size_t n,
                                const KernelRow& row) {
  const Choice& choice = best_of(named, n);
  if (choice.tie || !choice.best.known()) return {};
  const std::size_t kernels = schedules_.named_count(choice.best.program);
  // A program of one kernel has no neighbours: its size must fit.
  if (choice.score == 0)
    return kernels == 1 && named[n]->size() == 1 && fits(schedules_.launch(choice.best), row)
               ? choice.best
               : LaunchRef();
  const std::size_t around = std::min(n, kNeighbours) + std::min(named.size() - 1 - n, kNeighbours);
  const std::size_t least = kernels >= 4 && around >= 4 ? 2 : 1;
  return choice.score >= least ? choice.best : LaunchRef();
}

// Steps repeat, with the kernels around one: the choice between the programs is kept.
const ProgramChoice::Choice& ProgramChoice::best_of(const std::vector<LaunchCandidates>& named,
                                                    std::size_t n) {
  std::array<LaunchCandidates, 2 * kNeighbours + 1> around{};
  for (std::size_t i = 0; i < around.size(); ++i)
    if (n + i >= kNeighbours && n + i - kNeighbours < named.size())
      around[i] = named[n + i - kNeighbours];
  const auto [at, added] = choices_.try_emplace(hash64(around.data(), sizeof around));
  if (!added) return at->second;
  Choice& choice = at->second;
  for (const LaunchRef ref : *named[n]) {
    std::size_t score = 0;
    for (std::size_t i = 0; i < around.size(); ++i)
      if (around[i] != nullptr && i != kNeighbours) score += near(*around[i], ref, i < kNeighbours);
    if (looks_ > kMaxLooks) {
      choice = {};
      break;
    }
    if (!choice.best.known() || score > choice.score) {
      choice = {ref, score, false};
    } else if (score == choice.score) {
      choice.tie = choice.tie || !same_work(schedules_.launch(ref), schedules_.launch(choice.best));
    }
  }
  return choice;
}

bool ProgramChoice::near(const std::vector<LaunchRef>& others, LaunchRef ref, bool before) {
  const auto [first, last] =
      std::equal_range(others.begin(), others.end(), ref,
                       [](LaunchRef a, LaunchRef b) { return a.program < b.program; });
  return std::any_of(first, last, [&](LaunchRef other) {
    if (++looks_ > kMaxLooks) return false;
    const bool itself = schedules_.launch(other).signature == schedules_.launch(ref).signature;
    return !itself && (before ? schedules_.follows(other, ref) : schedules_.follows(ref, other));
  });
}

}  // namespace purlin::profile
