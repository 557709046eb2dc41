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
#include <numeric>

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

// The history of a kernel: the median level of its nodes by step, without steps
// that lack one.
struct History {
  std::vector<double> logs;
  std::vector<std::size_t> steps;  // of each point
};
History history_of(const Levels& levels) {
  const std::vector<double> medians = levels.median_over_nodes();
  History history;
  for (std::size_t i = 0; i < medians.size(); ++i)
    if (!std::isnan(medians[i])) history.logs.push_back(medians[i]), history.steps.push_back(i);
  return history;
}

constexpr std::size_t kMinSegment = 3;  // points on each side of a change

double median_between(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  return guard::median_of(std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                              values.begin() + static_cast<std::ptrdiff_t>(end)));
}

// The rise that splits the history best (least squares), where it is there to
// the end. Whether it is more than chance, the nodes decide.
std::optional<std::size_t> lasting_rise(const History& history, double magnitude) {
  const std::vector<double>& logs = history.logs;
  std::size_t best = 0;
  double gain = 0, left = 0;
  const double total = std::accumulate(logs.begin(), logs.end(), 0.0);
  const double n = static_cast<double>(logs.size());
  for (std::size_t split = 1; split < logs.size(); ++split) {
    left += logs[split - 1];
    if (split < kMinSegment || logs.size() - split < kMinSegment) continue;
    const double m = static_cast<double>(split);
    const double rise = (total - left) / (n - m) - left / m;
    const double explained = rise * rise * m * (n - m) / n;
    if (rise > 0 && explained > gain) gain = explained, best = split;
  }
  if (best == 0) return std::nullopt;
  const double before = median_between(logs, 0, best), least = std::log1p(magnitude);
  if (median_between(logs, best, logs.size()) - before < least ||
      median_between(logs, logs.size() - kMinSegment, logs.size()) - before < least)
    return std::nullopt;
  return history.steps[best];
}

// The p-value of the history's own change points: for kernels on too few nodes.
// 1: none lasts.
double change_point_p(const History& history, double magnitude) {
  std::vector<double> series;
  for (const double value : history.logs) series.push_back(std::exp(value));
  guard::ChangePointOptions options;
  options.min_magnitude = magnitude;
  double p = 1;
  if (series.size() < 2 * kMinSegment) return p;
  for (const guard::ChangePoint& change : guard::find_change_points(series, options))
    if (change.ratio > 1) p = std::min(p, change.p_value);
  return p;
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

}  // namespace

// The evidence of one kernel, before the level is shared out over all.
struct SlowerEvidence {
  SlowerKernel row;
  bool tested = false,
       moved = false;  // moved: large enough, by the nodes' own shifts
  bool lasts = false, history_moved = false;
  std::string thin;
};

namespace {

SlowerEvidence gather(const KernelKey& key, const std::vector<const Cell*>& cells,
                      const SlowerOptions& options) {
  SlowerEvidence evidence;
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
  const History history = history_of(levels);
  const auto lasting = lasting_rise(history, options.min_magnitude);
  if (test.shifts.empty() && !lasting) {
    evidence.thin = fmt::format(
        "too few nodes have it a day before and a day "
        "after any time; {} are needed",
        options.needs.nodes);
    return evidence;
  }
  evidence.tested = !test.shifts.empty();
  evidence.lasts = lasting.has_value();
  row.p_value = test.p_value;
  if (lasting) row.history_p = change_point_p(history, options.min_magnitude);
  evidence.history_moved = row.history_p <= options.alpha;
  const std::size_t step = lasting.value_or(test.step);
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

std::string what_lacks(const SlowerEvidence& evidence, const SlowerOptions& options) {
  if (!evidence.tested)
    return fmt::format("{} nodes have the kernel on both sides of a day; {} are needed",
                       evidence.row.nodes, options.needs.nodes);
  if (!evidence.lasts) return "the history has no rise that lasts: it drifted, or came back";
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

struct SlowerSearch::State {
  SlowerOptions options;
  Slower result;
  std::vector<SlowerEvidence> gathered;
  std::vector<double> p_values;
};

SlowerSearch::SlowerSearch(const SlowerOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
SlowerSearch::~SlowerSearch() = default;

void SlowerSearch::add(const KernelKey& key, const std::vector<const Cell*>& cells) {
  if (cells.empty()) return;
  SlowerEvidence evidence = gather(key, cells, state_->options);
  if (!evidence.thin.empty()) {
    state_->result.thin.push_back({key, evidence.thin});
    return;
  }
  state_->p_values.push_back(evidence.tested ? evidence.row.p_value : 1);
  state_->result.tested += evidence.tested;
  state_->gathered.push_back(std::move(evidence));
}

Slower SlowerSearch::finish() {
  const SlowerOptions& options = state_->options;
  Slower result = std::move(state_->result);
  const std::vector<bool> stands = holm(state_->p_values, options.alpha);
  for (std::size_t i = 0; i < state_->gathered.size(); ++i) {
    SlowerEvidence& evidence = state_->gathered[i];
    evidence.row.alarm = stands[i] && evidence.moved && evidence.lasts;
    const bool suspect = evidence.moved && (stands[i] || evidence.history_moved);
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

Slower got_slower(const std::vector<Cell>& cells, const std::vector<CoverageCell>& coverage,
                  const SlowerOptions& options) {
  Slower refused;
  if (!coverage.empty()) refused.refused = too_thin(summarise(coverage), options.needs);
  if (refused.refused) return refused;
  std::map<KernelKey, std::vector<const Cell*>> kernels;
  for (const Cell& cell : cells) kernels[{cell.kernel, cell.gpu}].push_back(&cell);
  SlowerSearch search(options);
  for (const auto& [key, own] : kernels) search.add(key, own);
  return search.finish();
}

}  // namespace purlin::fleet::analysis
