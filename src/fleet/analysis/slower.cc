// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/slower.h"

#include "base/status.h"
#include "fleet/analysis/compare.h"
#include "fleet/analysis/role.h"
#include "guard/gate/signed_rank.h"
#include "guard/history/change_points.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace purlin::fleet::analysis {
namespace {

// What the test found at the best of the times that it may choose.
struct NodeTest {
  double p_value = 1;  // over all times
  std::size_t step = 0;
  std::vector<double> shifts;  // of nodes with both sides, at that time
};

std::optional<double> mean_of(const std::vector<double>& values, std::size_t begin,
                              std::size_t end) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = begin; i < end; ++i)
    if (!std::isnan(values[i])) sum += values[i], ++count;
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::vector<double> shifts_at(const Levels& levels, std::size_t step) {
  std::vector<double> shifts;
  for (const std::vector<double>& node : levels.values) {
    const auto before = mean_of(node, 0, step), after = mean_of(node, step, node.size());
    if (before && after) shifts.push_back(*after - *before);
  }
  return shifts;
}

NodeTest test_nodes(const Levels& levels, const SlowerOptions& options) {
  NodeTest best;
  const std::size_t stride =
      std::max<std::size_t>(1, static_cast<std::size_t>(options.test_every_ns / options.step_ns));
  int times = 0;
  for (std::size_t step = stride; step + stride <= levels.steps.size(); step += stride) {
    std::vector<double> shifts = shifts_at(levels, step);
    if (shifts.size() < static_cast<std::size_t>(options.needs.nodes)) continue;
    ++times;
    const double p = guard::signed_rank_test(shifts).p_greater;
    if (best.shifts.empty() || p < best.p_value) best = {p, step, std::move(shifts)};
  }
  best.p_value = std::min(1.0, best.p_value * times);
  return best;
}

// A change of the history that is there to the end: the level of the last segment over that before.
struct LastingChange {
  std::size_t step = 0;
  double p_value = 1;
};
std::optional<LastingChange> lasting_change(const Levels& levels, double magnitude) {
  const std::vector<double> medians = levels.median_over_nodes();
  std::vector<double> series;
  std::vector<std::size_t> at;  // step of each point
  for (std::size_t i = 0; i < medians.size(); ++i)
    if (!std::isnan(medians[i])) series.push_back(std::exp(medians[i])), at.push_back(i);
  if (series.size() < 6) return std::nullopt;
  guard::ChangePointOptions points;
  points.min_magnitude = magnitude;
  std::optional<LastingChange> found;
  double largest = 1 + magnitude;
  const std::vector<guard::ChangePoint> changes = guard::find_change_points(series, points);
  for (const guard::ChangePoint& change : changes) {
    const double lasting = changes.back().after / change.before;
    if (change.ratio <= 1 || lasting < largest) continue;
    largest = lasting;
    found = LastingChange{at[change.index], change.p_value};
  }
  return found;
}

std::pair<std::string, double> dominant(const std::vector<const Cell*>& cells,
                                        const std::function<bool(const Cell&)>& side,
                                        const std::function<const std::string&(const Cell&)>& of) {
  std::map<std::string, double> shares;
  double total = 0;
  for (const Cell* cell : cells) {
    if (!side(*cell)) continue;
    shares[of(*cell)] += cell->time.total_ns();
    total += cell->time.total_ns();
  }
  std::pair<std::string, double> best;
  for (const auto& [value, ns] : shares)
    if (ns > best.second) best = {value, ns};
  if (total > 0) best.second /= total;
  return best;
}

std::vector<EnvironmentMark> marks_at(const std::vector<const Cell*>& cells, std::int64_t at_ns) {
  const std::pair<std::string, std::function<const std::string&(const Cell&)>> dimensions[] = {
      {"build", [](const Cell& cell) -> const std::string& { return cell.build; }},
      {"driver", [](const Cell& cell) -> const std::string& { return cell.driver; }},
      {"toolkit", [](const Cell& cell) -> const std::string& { return cell.runtime; }}};
  std::vector<EnvironmentMark> marks;
  for (const auto& [what, of] : dimensions) {
    const auto before = dominant(
        cells, [&](const Cell& c) { return c.begin_ns < at_ns; }, of);
    const auto after = dominant(
        cells, [&](const Cell& c) { return c.begin_ns >= at_ns; }, of);
    if (before.first.empty() || after.first.empty() || before.first == after.first) continue;
    marks.push_back({what, before.first, after.first, before.second, after.second});
  }
  return marks;
}

// The evidence of one kernel, before the level is shared out over all.
struct Evidence {
  SlowerKernel row;
  bool tested = false, moved = false;  // moved: large enough, by the nodes' own shifts
  bool lasts = false;
  std::string thin;
};

Evidence gather(const KernelKey& key, const std::vector<const Cell*>& cells,
                const SlowerOptions& options) {
  Evidence evidence;
  SlowerKernel& row = evidence.row;
  row.key = key;
  row.role = cells.front()->role.empty() ? std::string(role_of(key.kernel, cells.front()->op))
                                         : cells.front()->role;
  double launches = 0;
  for (const Cell* cell : cells) launches += cell->time.count();
  if (launches < 2 * options.needs.launches) {
    evidence.thin = fmt::format("{:.0f} launches in the period; {:.0f} are needed", launches,
                                2 * options.needs.launches);
    return evidence;
  }
  const Levels levels = levels_of(cells, options.step_ns, options.needs);
  NodeTest test = test_nodes(levels, options);
  const auto lasting = lasting_change(levels, options.min_magnitude);
  if (test.shifts.empty() && !lasting) {
    evidence.thin =
        fmt::format("too few nodes have it a day before and a day after any time; {} are needed",
                    options.needs.nodes);
    return evidence;
  }
  evidence.tested = !test.shifts.empty();
  evidence.lasts = lasting.has_value();
  row.p_value = test.p_value;
  if (lasting) row.history_p = lasting->p_value;
  const std::size_t step = lasting ? lasting->step : test.step;
  row.at_ns = levels.steps[step];
  const std::vector<double> shifts = shifts_at(levels, step);
  row.nodes = static_cast<int>(shifts.size());
  if (!shifts.empty()) {
    const guard::ExactInterval interval = guard::walsh_interval(shifts, 0.01);
    row.ratio = std::exp(guard::hodges_lehmann(shifts));
    row.low = std::exp(interval.low), row.high = std::exp(interval.high);
    row.confidence = interval.confidence;
  }
  evidence.moved = row.ratio >= 1 + options.min_magnitude;
  for (const Cell* cell : cells)
    if (cell->begin_ns >= row.at_ns) row.gpu_s_after += cell->time.total_ns() * 1e-9;
  row.lost_gpu_s = row.gpu_s_after * std::max(0.0, 1 - 1 / row.ratio);
  row.marks = marks_at(cells, row.at_ns);
  return evidence;
}

std::string what_lacks(const Evidence& evidence, const SlowerOptions& options) {
  if (!evidence.tested)
    return fmt::format("{} nodes have the kernel on both sides of a day; {} are needed",
                       evidence.row.nodes, options.needs.nodes);
  if (!evidence.lasts) return "the history has no lasting change point: it drifted, or came back";
  return fmt::format("the nodes alone do not show it (p = {:.2g} over all times)",
                     evidence.row.p_value);
}

// What git and a shell both read as one revision.
bool is_plain_revision(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+";
  return !text.empty() && text.front() != '-' && text.find_first_not_of(kPlain) == text.npos;
}

}  // namespace

std::string bisect_command(const SlowerKernel& kernel) {
  for (const EnvironmentMark& mark : kernel.marks)
    if (mark.what == "build" && is_plain_revision(mark.before) && is_plain_revision(mark.after))
      return fmt::format("purlin guard bisect {} {} --suite SUITE", mark.before, mark.after);
  return "";
}

Slower got_slower(const std::vector<Cell>& cells, const std::vector<CoverageCell>& coverage,
                  const SlowerOptions& options) {
  Slower result;
  if (!coverage.empty()) result.refused = too_thin(summarise(coverage), options.needs);
  if (result.refused) return result;
  std::map<KernelKey, std::vector<const Cell*>> kernels;
  for (const Cell& cell : cells) kernels[{cell.kernel, cell.gpu}].push_back(&cell);
  std::vector<Evidence> gathered;
  std::vector<double> p_values;
  for (const auto& [key, own] : kernels) {
    Evidence evidence = gather(key, own, options);
    if (!evidence.thin.empty()) {
      result.thin.push_back({key, evidence.thin});
      continue;
    }
    p_values.push_back(evidence.tested ? evidence.row.p_value : 1);
    result.tested += evidence.tested;
    gathered.push_back(std::move(evidence));
  }
  const std::vector<bool> stands = holm(p_values, options.alpha);
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    Evidence& evidence = gathered[i];
    evidence.row.alarm = stands[i] && evidence.moved && evidence.lasts;
    const bool suspect = evidence.moved && (stands[i] || evidence.lasts);
    if (!evidence.row.alarm && !suspect) continue;
    if (!evidence.row.alarm) evidence.row.why_suspect = what_lacks(evidence, options);
    result.kernels.push_back(std::move(evidence.row));
  }
  std::stable_sort(result.kernels.begin(), result.kernels.end(),
                   [](const SlowerKernel& a, const SlowerKernel& b) {
                     if (a.alarm != b.alarm) return a.alarm;
                     return a.lost_gpu_s > b.lost_gpu_s;
                   });
  return result;
}

}  // namespace purlin::fleet::analysis
