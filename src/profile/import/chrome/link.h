// SPDX-License-Identifier: Apache-2.0
// Joins the records of a trace into a profile's rows and timeline. Nesting on a thread gives the
// parents of ops and the ops of calls. The correlation id gives the call of device work, and with
// it the op and the problem shape. Where the ids that PyTorch writes disagree with the clock, the
// clock must agree before an id is believed. Takes the records apart; what counts things in them
// stays.
#pragma once

#include "profile/import/chrome/records.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::profile {

struct LinkOptions {
  std::int64_t base_ns = 0;           // added to all times
  std::vector<std::uint16_t> device;  // Records::devices -> Environment::devices
  std::size_t max_kernel_rows = 0;
  std::size_t max_sketch_buckets = 0;
};

struct LinkStats {
  std::uint64_t kernels = 0;
  std::uint64_t kernels_without_call = 0;
  std::uint64_t graph_kernels = 0;          // launched by a graph: no separate op
  std::uint64_t kernels_without_op = 0;     // of the others
  std::uint64_t launches = 0;               // launching calls
  std::uint64_t launches_without_work = 0;  // whose kernel is not in the trace
  std::uint64_t launches_captured = 0;      // into a graph: no kernel is due
  std::uint64_t kernels_in_other_row = 0;   // beyond either bound
  std::uint64_t counters = 0, counters_unplaced = 0;
  bool counters_only = false;  // kernels are known from their counters alone
};

LinkStats link_trace(Records& records, const LinkOptions& options, Profile& profile);

}  // namespace purlin::profile
