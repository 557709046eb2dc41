// SPDX-License-Identifier: Apache-2.0
// What would not help: each resource doubled, on the roofline, end to end.
#include "analyze/advise/what_if/what_if.h"
#include "analyze/text/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kWorthNaming = 0.03;  // of the unit
constexpr std::size_t kNamed = 5;
constexpr double kHostBoundIdle = 0.2;
constexpr double kMostPace = 0.9;  // of the kernels' time: more sets the pace, as good as all

struct Doubled {
  const char *resource, *what;
  double compute, memory;
  Bound useless_for;
  const char* why;
};
constexpr Doubled kDoubled[] = {
    {"compute", "twice the FLOP/s", 2, 1, Bound::kMemory,
     "memory bound: its arithmetic is hidden behind its traffic"},
    {"memory_bandwidth", "twice the memory bandwidth", 1, 2, Bound::kCompute,
     "compute bound: its traffic is hidden behind its arithmetic"},
};

// If the host took no time at all, as a share of the unit.
double saved_by_no_host(const Replayer& replayer) {
  Change change;
  change.edits.emplace_back(edit::ScaleHost{{0, 0, 0}, {}, kNone});
  return std::max(0.0, replayer.saving(change).share.mid);
}

}  // namespace

void add_no_gain(const Facts& facts, Advice& advice) {
  const double whole = facts.unit.baseline_ns.mid;
  if (whole <= 0) return;
  const auto& kernels = facts.rows.kernels;
  for (const Doubled& doubled : kDoubled) {
    WhatIf what_if;
    what_if.resource = doubled.resource;
    NoGain none;
    none.what = doubled.what;
    none.why = doubled.why;
    none.saved_ns = 0;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const double ns = facts.in_unit(kernels[i].duration.total_ns());
      const double saved = saved_by_more(kernels[i].roof, doubled.compute, doubled.memory);
      what_if.saved_ns += ns * saved * facts.exposed[i].mid;
      if (kernels[i].roof.bound != doubled.useless_for || kernels[i].roof.utilization <= 0 ||
          saved > 0 || ns < kWorthNaming * whole || none.kernels.size() >= kNamed)
        continue;
      none.kernels.push_back(kernels[i].label);
    }
    what_if.saved_ns = std::min(what_if.saved_ns, facts.max_by_kernels.mid);
    what_if.saved_share = what_if.saved_ns / whole;
    what_if.text = fmt::format("{} would save {:.1f}%", doubled.what, 100 * what_if.saved_share);
    if (std::any_of(kernels.begin(), kernels.end(),
                    [](const KernelStat& kernel) { return kernel.roof.utilization > 0; }))
      advice.what_if.push_back(std::move(what_if));
    if (!none.kernels.empty()) advice.no_gain.push_back(std::move(none));
  }
  const Unit& unit = facts.unit;
  if (unit.kind == "kernel_time") return;
  double kernel_ns = 0, exposed_ns = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const double ns = facts.in_unit(kernels[i].duration.total_ns());
    kernel_ns += ns;
    exposed_ns += ns * facts.exposed[i].mid;
  }
  if (facts.exposure.known) {
    const double saved = std::min({0.5 * kernel_ns, exposed_ns, facts.max_by_kernels.mid});
    advice.what_if.push_back(
        {"kernels", saved, saved / whole,
         fmt::format("all kernels twice as fast would save {:.1f}%", 100 * saved / whole)});
    if (advice.idle_share >= kHostBoundIdle && saved < 0.5 * 0.5 * kernel_ns &&
        exposed_ns < kMostPace * kernel_ns)
      advice.no_gain.push_back({"faster kernels",
                                {},
                                saved,
                                fmt::format("all of them twice as fast save {} instead of {}: only "
                                            "{} of the kernel time sets the pace",
                                            short_ns(saved), short_ns(0.5 * kernel_ns),
                                            percent(kernel_ns > 0 ? exposed_ns / kernel_ns : 0))});
  }
  if (facts.replayer == nullptr) return;  // what the host does is not known
  const double host = saved_by_no_host(*facts.replayer);
  advice.what_if.push_back(
      {"host", host * whole, host,
       fmt::format("a host that took no time would save {:.1f}%", 100 * host)});
}

}  // namespace purlin::analyze
