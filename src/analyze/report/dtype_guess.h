// SPDX-License-Identifier: Apache-2.0
// The element type of kernels that state none, neither in their name nor by the op that launched
// them. It is a guess, from what the same profile holds of the work around them, and is shown as
// one: "bf16?". No figure depends on it. Where the evidence disagrees there is no guess. Pure
// functions.
#pragma once

#include "analyze/kernel_name/kernel_name.h"
#include "model/profile/profile.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct DtypeGuess {
  std::string dtype;  // "" without one
  // "op": inputs of an op around the launch. "neighbours": the launches before and after in its
  // stream. "profile": all other kernels, where the profile has no timeline.
  std::string_view from;

  friend bool operator==(const DtypeGuess& a, const DtypeGuess& b) {
    return a.dtype == b.dtype && a.from == b.from;
  }
};

// One for each row of Profile::kernels; `names` has every name of them.
std::vector<DtypeGuess> guess_dtypes(const Profile& profile,
                                     const std::map<std::string, KernelName>& names);

}  // namespace purlin::analyze
