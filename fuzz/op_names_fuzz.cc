// SPDX-License-Identifier: Apache-2.0
#include "model/problem/problem.h"
#include "profile/capture/ranges/op_text.h"
#include "profile/ops/op_names.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

// A range's name as a program may give it: what is captured of it is bounded, reads to itself, and
// is named after the run. Then the input as what a damaged file may hold of ops.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin;
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  profile::capture::OpText first, second;
  profile::capture::read_range_name(name, first);
  profile::capture::read_range_name(first.view(), second);
  if (first.size > profile::capture::kMaxOpText || first.view() != second.view()) std::abort();

  for (const std::string& captured : {std::string(first.view()), std::string(name)}) {
    Profile profile;
    profile.kernels.resize(2);
    profile.kernels[0].op = profile.kernels[1].op = captured;
    profile.kernels[1].shape = "M=1,N=2,K=3";
    profile.timeline.names = {"", captured};
    Range range;
    range.name = 1;
    profile.timeline.ranges.push_back(range);
    profile::name_ops(profile);
    if (profile.timeline.ops.size() + profile.timeline.ranges.size() != 1) std::abort();
  }
  return 0;
}
