// SPDX-License-Identifier: Apache-2.0
// ProgramChoice: of the launches that have the name of a kernel, the one that ran. Programs have
// kernels of equal names, so the kernels that ran before and after it decide: the program whose
// schedule has them near it. Of one process and device. The schedules must outlive it. Not
// thread-safe. Without a certain answer it gives an unknown launch.
#pragma once

#include "model/profile/profile.h"
#include "profile/jax/schedules.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace purlin::profile {

using LaunchCandidates =
    const std::vector<LaunchRef>*;  // launches with one kernel's name, by program

// The same problem: which of the two launches it was makes no difference.
bool same_work(const hlo::Launch& a, const hlo::Launch& b);

class ProgramChoice {
 public:
  // `looks`: at launches so far; all choices of a run share it, as it bounds their time.
  ProgramChoice(const Schedules& schedules, std::size_t& looks)
      : schedules_(schedules), looks_(looks) {}

  // `named`: the candidates of each kernel with a known name, in the order in which they ran; the
  // row is that of the n-th.
  LaunchRef choose(const std::vector<LaunchCandidates>& named, std::size_t n, const KernelRow& row);

 private:
  struct Choice {
    LaunchRef best;
    std::size_t score = 0;  // neighbours that are near in the schedule
    bool tie = false;       // with a launch that does other work
  };

  const Choice& best_of(const std::vector<LaunchCandidates>& named, std::size_t n);
  bool near(const std::vector<LaunchRef>& others, LaunchRef ref, bool before);

  const Schedules& schedules_;
  std::size_t& looks_;
  std::unordered_map<std::uint64_t, Choice> choices_;  // by the names around
};

}  // namespace purlin::profile
