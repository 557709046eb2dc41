// SPDX-License-Identifier: Apache-2.0
// Rules: each looks at the facts of one profile and adds interventions, with their evidence, or
// says why one that suggests itself is not made. A rule that lacks evidence adds nothing. Here are
// the groups of rules that are not in the playbook (playbook.h). Pure functions over facts.
#pragma once

#include "analyze/advise/facts.h"

namespace purlin::analyze {

void add_host_rules(const Facts& facts, Advice& advice);    // host/: the host and the schedule
void add_kernel_rules(const Facts& facts, Advice& advice);  // a kernel's roofline and counters
void add_stall_rules(const Facts& facts, Advice& advice);   // what a kernel's warps wait for

}  // namespace purlin::analyze
