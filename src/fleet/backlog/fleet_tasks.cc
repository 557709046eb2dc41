// SPDX-License-Identifier: Apache-2.0
#include "fleet/backlog/fleet_tasks.h"

#include "base/json/json.h"
#include "base/output/escaped.h"
#include "fleet/metrics.h"

#include <array>

namespace purlin::fleet {
namespace {

std::string basis_text(const analysis::TuneTask& task) {
  switch (task.basis) {
    case analysis::HeadroomBasis::kBestKnown:
      return fmt::format(", {:.1f} us where {:.1f} us is known", task.p50_ns * 1e-3,
                         task.best_ns * 1e-3);
    case analysis::HeadroomBasis::kRoofline:
      return fmt::format(", at {:.0f} % of its roof", (1 - task.headroom) * 100);
    case analysis::HeadroomBasis::kAssumed:
      break;
  }
  return "";
}

}  // namespace

std::vector<backlog::Leases::Put> fleet_tasks(const std::vector<analysis::TuneTask>& tasks,
                                              const std::string& toolkit,
                                              const std::string& driver) {
  std::vector<backlog::Leases::Put> puts;
  for (const analysis::TuneTask& from : tasks) {
    backlog::Leases::Put put;
    put.stale = from.stale;
    backlog::RankedTask& ranked = put.ranked;
    ranked.gpu_time_ns = from.gpu_s * 1e9;
    ranked.headroom = from.headroom;
    ranked.headroom_assumed = from.basis == analysis::HeadroomBasis::kAssumed;
    backlog::Task& task = ranked.task;
    task.key = {from.stale ? "retune" : "tune", from.kernel, from.shape, from.gpu, toolkit, driver};
    task.dtype = from.dtype;
    task.launches = static_cast<std::uint64_t>(from.launches);
    if (from.launches > 0) task.launch_ns = ranked.gpu_time_ns / from.launches;
    if (!ranked.headroom_assumed) task.headroom = from.headroom;
    task.reason =
        fmt::format("{:.0f} GPU seconds of the fleet, {} kernel{}{}", from.gpu_s, from.role,
                    basis_text(from), from.stale ? ", tuned with another driver only" : "");
    puts.push_back(std::move(put));
  }
  return puts;
}

std::string backlog_metrics(backlog::Leases& leases, std::int64_t now_ns) {
  const Result<std::vector<backlog::SharedTask>> tasks = leases.list(now_ns);
  const Result<double> spent_s = leases.spent_gpu_s(now_ns);
  if (!tasks.is_ok() || !spent_s.is_ok()) return "";
  std::array<int, 4> states{};
  for (const backlog::SharedTask& task : *tasks) ++states[static_cast<std::size_t>(task.state)];
  std::string text =
      "# HELP purlin_backlog_tasks Tasks of the shared backlog.\n"
      "# TYPE purlin_backlog_tasks gauge\n";
  for (std::size_t i = 0; i < states.size(); ++i)
    text += fmt::format("purlin_backlog_tasks{{state=\"{}\"}} {}\n",
                        backlog::to_text(static_cast<backlog::TaskState>(i)), states[i]);
  return text + RequestMetrics::single("purlin_tuning_gpu_seconds_today", "gauge",
                                       "GPU time that tuning took on this UTC day.", *spent_s);
}

std::string suggested_suite(const std::string& name, const std::string& since,
                            const std::vector<SuggestedItem>& items) {
  // Names come from other machines: quoted as strings, on one line in comments.
  std::string text = fmt::format(
      "# The kernels with the most GPU time of the fleet since {}. Review, then record a "
      "baseline:\n"
      "# purlin guard baseline THIS_FILE\n"
      "schema = \"purlin.suite/1\"\nname = {}\n",
      one_line(since), json_quote(name));
  for (const SuggestedItem& item : items) {
    const std::string label =
        fmt::format("{:.1f} % of the GPU time: {}", item.share * 100, one_line(item.kernel));
    if (!item.left_out.empty()) {
      text += fmt::format("\n# {} {}: {}\n", label, one_line(item.shape), one_line(item.left_out));
      continue;
    }
    text += fmt::format("\n[[items]]  # {}\nspec = {}\nshape = {}\ntags = [\"fleet\"]\n", label,
                        json_quote(item.spec), json_quote(item.shape));
  }
  return text;
}

}  // namespace purlin::fleet
