// SPDX-License-Identifier: Apache-2.0
// What the timeline shows: the device waits for input, for launches, for the host that waits for
// it, for copies, for communication.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/rules.h"

namespace purlin::analyze {

void add_host_rules(const Facts& facts, Advice& advice) {
  HostView view(facts, advice);
  if (facts.timeline->devices.empty() || view.length <= 0) return;
  add_input_rule(view);
  add_pinning_rule(view);
  add_made_on_host_rule(view);
  add_stalls_rule(view);
  add_slow_op_rule(view);
  add_graphs_rule(view);
  add_host_work_rule(view);
  add_syncs_rule(view);
  add_between_steps_rule(view);
  if (facts.platform.cpu) {
    add_mapped_rule(view);
  } else {
    add_copies_rule(view);
    add_fills_rule(view);
    add_pinned_rule(view);
  }
  add_communication_rule(view);
}

}  // namespace purlin::analyze
