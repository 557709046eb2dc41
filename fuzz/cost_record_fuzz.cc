// SPDX-License-Identifier: Apache-2.0
// The record of what capture costs a program, which a process reads that was injected into: from a
// folder that others may write to.
#include "profile/capture/sampling/cost_record.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin::profile::capture;
  const auto record = parse_cost_record({reinterpret_cast<const char*>(data), size});
  if (!record) return 0;
  const auto again = parse_cost_record(to_text(*record));
  if (!again || to_text(*again) != to_text(*record)) std::abort();
  for (const double budget : {1e-4, 0.01, 1.0})
    if (const int n = one_in(*record, budget); n < 1 || n > kMaxRunsPerCapture) std::abort();
  if (blend(*record, *record).runs < 1) std::abort();
  return 0;
}
