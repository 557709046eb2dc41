// SPDX-License-Identifier: Apache-2.0
// Value numbers: two values of one number are the same, in any memory. The number of a
// result is a hash of its op, its plain arguments and the numbers of what it reads. What cannot be
// known has a separate number: random numbers, ops of other libraries, and tensors of the host,
// which Python changes without an op. Pure functions.
#pragma once

#include "profile/import/flow/steps.h"
#include "profile/import/flow/units.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::flow {

struct UnitNumber {
  std::uint64_t exact = 0;
  // The same where a step has the same scalars of the host, random numbers and state as the others:
  // it differs where other data came in.
  std::uint64_t by_data = 0;
  bool constant = false;  // it depends on no memory from before, on no random number and no host
};

// By unit.
std::vector<UnitNumber> number_values(const ExecutionTrace& trace, const Units& units,
                                      const std::vector<FlowStep>& steps);

}  // namespace purlin::profile::flow
