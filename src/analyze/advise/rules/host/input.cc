// SPDX-License-Identifier: Apache-2.0
// The device waits for input.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/timeline/host.h"

#include <fmt/format.h>

namespace purlin::analyze {
namespace {

// Share of the unit: that of PyTorch's TensorBoard plugin.
constexpr double kStarved = 0.05;
// Of the starvation a PyTorch ResNet-50 had without workers, what four of them took away, twice
// measured: 0.34 and 0.62 (pytorch/kineto's samples). Three measured pairs: 0.9 to 1.
constexpr Interval3 kFed = {0.3, 0.75, 1.0};

}  // namespace

void add_input_rule(HostView& view) {
  const double starved = view.idle(IdleCause::kDataStarvation);
  if (starved < kStarved * view.length) return;
  Intervention out = from_remedy("feed_the_device");
  out.evidence.push_back(
      {"device idle while the program waits for input", view.part(starved), "timeline"});
  view.add_longest(IdleCause::kDataStarvation, out);
  out.assumptions.emplace_back(
      "the host has spare cores; at most the whole wait can be hidden: five measured cases hid "
      "34%, 62% and, three times, over 90%");
  const HostFacts host(*view.facts.profile);
  for (std::uint32_t process = 0; process < view.facts.profile->processes.size(); ++process) {
    edit::ScaleHost edit{{1 - kFed.low, 1 - kFed.mid, 1 - kFed.high}, {}, process};
    for (const NamedInterval& one : host.process(process).loading)
      edit.when.push_back(one.interval);
    if (!edit.when.empty()) out.change.edits.emplace_back(std::move(edit));
  }
  view.add(std::move(out), kFed * starved, starved, "B");
}

}  // namespace purlin::analyze
