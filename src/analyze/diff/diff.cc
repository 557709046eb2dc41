// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff/diff.h"

#include "analyze/diff/build_changes.h"
#include "analyze/diff/causes.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace purlin::analyze {
namespace {

// What one profile spends on one kernel with one problem, devices and builds merged.
struct Entry {
  const KernelStat* stat = nullptr;  // the heaviest of those merged
  Sketch duration;
  double clock_sum = 0, clock_ns = 0;
  bool used = false;
};

using RowKey = std::tuple<std::string, std::string, std::string, std::string>;
using Entries = std::map<RowKey, Entry>;

Entries entries_of(const Report& report) {
  Entries out;
  for (const KernelStat& stat : report.kernels) {
    if (stat.duration.empty()) continue;
    Entry& entry = out[{stat.name.full, stat.op, stat.shape, stat.dtype}];
    if (entry.stat == nullptr) entry.stat = &stat;  // rows come heaviest first
    entry.duration.merge(stat.duration);
    if (stat.roof.clock_mhz > 0) {
      entry.clock_sum += stat.roof.clock_mhz * stat.duration.total_ns();
      entry.clock_ns += stat.duration.total_ns();
    }
  }
  return out;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end())
    list.push_back(text);
}

DiffSide side_of(std::vector<Entry*> entries, double units) {
  DiffSide side;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return a->duration.total_ns() > b->duration.total_ns();
  });
  double clock_sum = 0, clock_ns = 0;
  for (Entry* entry : entries) {
    entry->used = true;
    side.duration.merge(entry->duration);
    clock_sum += entry->clock_sum, clock_ns += entry->clock_ns;
    add_once(side.kernels, entry->stat->name.full);
    add_once(side.shapes, entry->stat->shape);
  }
  side.count = side.duration.count() / units;
  side.total = side.duration.total_ns() / units;
  if (clock_ns > 0) side.clock_mhz = clock_sum / clock_ns;
  if (!entries.empty()) {
    const Roof& roof = entries.front()->stat->roof;
    side.flops_per_s = roof.flops_per_s;
    side.bytes_per_s = roof.bytes_per_s;
    side.occupancy = roof.occupancy_achieved;
    side.tensor_share = roof.tensor_share;
  }
  return side;
}

std::string_view class_of(const KernelStat& stat) { return stat.name.op_class; }

class Differ {
 public:
  Differ(const Report& a, const Report& b, Diff& diff)
      : a_(entries_of(a)), b_(entries_of(b)), diff_(diff) {}

  void run() {
    pair_up(Match::kKernelAndShape, [](const RowKey& key, const Entry&) { return key; });
    pair_up(Match::kKernel, [](const RowKey& key, const Entry&) { return std::get<0>(key); });
    // Of kernels that a compiler made of regions: the region, else the function around it.
    pair_up(Match::kKernel, [](const RowKey&, const Entry& entry) {
      const KernelName& name = entry.stat->name;
      return name.outlined.empty() ? std::string() : name.brief;
    });
    pair_up(Match::kKernel,
            [](const RowKey&, const Entry& entry) { return entry.stat->name.outlined; });
    pair_up(Match::kOpAndShape, [](const RowKey& key, const Entry&) {
      const auto& [name, op, shape, dtype] = key;
      return op.empty() || shape.empty() ? std::string() : op + "\n" + shape + "\n" + dtype;
    });
    pair_up(Match::kOpClass, [](const RowKey&, const Entry& entry) {
      return class_of(*entry.stat) == "other" ? std::string() : std::string(class_of(*entry.stat));
    });
    for (auto& [key, entry] : a_)
      if (!entry.used) add({&entry}, {}, Match::kNone);
    for (auto& [key, entry] : b_)
      if (!entry.used) add({}, {&entry}, Match::kNone);
    std::stable_sort(diff_.items.begin(), diff_.items.end(),
                     [](const DiffItem& x, const DiffItem& y) {
                       return std::abs(x.change) > std::abs(y.change);
                     });
  }

 private:
  using List = std::vector<Entry*>;

  // What is not used up yet and has the same text on both sides becomes one item; "" matches not.
  template <class KeyOf>
  void pair_up(Match match, KeyOf key_of) {
    using Text = decltype(key_of(std::declval<const RowKey&>(), std::declval<const Entry&>()));
    std::map<Text, std::pair<List, List>> groups;
    for (auto& [key, entry] : a_)
      if (!entry.used) groups[key_of(key, entry)].first.push_back(&entry);
    for (auto& [key, entry] : b_)
      if (!entry.used) groups[key_of(key, entry)].second.push_back(&entry);
    for (auto& [text, group] : groups)
      if (text != Text() && !group.first.empty() && !group.second.empty())
        add(group.first, group.second, match);
  }

  void add(const List& from, const List& to, Match match) {
    DiffItem item;
    item.match = match;
    item.a = side_of(from, diff_.a.units);
    item.b = side_of(to, diff_.b.units);
    item.a.error = diff_.a.error, item.b.error = diff_.b.error;
    name_item(item, from, to);
    attribute(item, diff_, memory_bound(from) && memory_bound(to));
    if (!from.empty() && !to.empty() && item.match != Match::kOpClass) {
      std::vector<std::string> changes = build_changes(*heaviest(from)->stat, *heaviest(to)->stat);
      item.why.insert(item.why.end(), changes.begin(), changes.end());
    }
    diff_.items.push_back(std::move(item));
  }

  static const Entry* heaviest(const List& entries) {
    return *std::max_element(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
      return a->duration.total_ns() < b->duration.total_ns();
    });
  }

  static bool memory_bound(const List& entries) {
    return !entries.empty() && std::all_of(entries.begin(), entries.end(), [](const Entry* entry) {
      return entry->stat->roof.bound == Bound::kMemory;
    });
  }

  static void name_item(DiffItem& item, const List& from, const List& to) {
    const KernelStat& stat = *(to.empty() ? from : to).front()->stat;
    item.op_class = class_of(stat);
    const auto agree = [&](auto&& text_of) {
      std::set<std::string> texts;
      for (const List* list : {&from, &to})
        for (const Entry* entry : *list) texts.insert(text_of(*entry->stat));
      return texts.size() == 1 ? *texts.begin() : std::string();
    };
    item.op = agree([](const KernelStat& each) { return each.op; });
    item.shape = agree([](const KernelStat& each) { return each.shape; });
    item.dtype = agree([](const KernelStat& each) { return each.dtype; });
    if (item.match == Match::kOpClass) {
      item.name = item.label = std::string(item.op_class);
    } else if (item.match == Match::kOpAndShape) {
      item.name = item.label = item.op;
    } else {
      item.name = stat.name.full;
      item.label = stat.label;
    }
  }

  Entries a_, b_;
  Diff& diff_;
};

// memcpy and memset by kind. A change of the bytes of one counts as a change of shape.
void diff_copies(const Report& a, const Report& b, Diff& diff) {
  struct Kind {
    Sketch duration[2];
    double bytes[2] = {0, 0};
  };
  std::map<std::string, Kind> kinds;
  const Report* reports[] = {&a, &b};
  for (int side = 0; side < 2; ++side)
    for (const CopyStat& copy : reports[side]->copies) {
      kinds[copy.kind].duration[side].merge(copy.duration);
      kinds[copy.kind].bytes[side] += copy.bytes;
    }
  for (const auto& [name, kind] : kinds) {
    DiffItem item;
    item.name = item.label = name;
    item.op_class = "copy";
    const double units[] = {diff.a.units, diff.b.units};
    DiffSide* sides[] = {&item.a, &item.b};
    for (int side = 0; side < 2; ++side) {
      sides[side]->duration = kind.duration[side];
      sides[side]->count = kind.duration[side].count() / units[side];
      sides[side]->total = kind.duration[side].total_ns() / units[side];
    }
    item.match = item.a.count > 0 && item.b.count > 0 ? Match::kKernel : Match::kNone;
    const double size_a = item.a.count > 0 ? kind.bytes[0] / kind.duration[0].count() : 0;
    const double size_b = item.b.count > 0 ? kind.bytes[1] / kind.duration[1].count() : 0;
    if (std::abs(size_a - size_b) <= 0.01 * std::max(size_a, size_b) &&
        item.match == Match::kKernel)
      item.match = Match::kKernelAndShape;
    if (item.match == Match::kKernel) {
      item.a.shapes = {format_bytes(size_a)};
      item.b.shapes = {format_bytes(size_b)};
    }
    attribute(item, diff, true);
    diff.copies.push_back(std::move(item));
  }
  std::stable_sort(
      diff.copies.begin(), diff.copies.end(),
      [](const DiffItem& x, const DiffItem& y) { return std::abs(x.change) > std::abs(y.change); });
}

Profile without_timeline(const Profile& profile) {
  Profile out;
  out.environment = profile.environment;
  out.kernels = profile.kernels;
  out.copies = profile.copies;
  return out;
}

// The launches whose call, or where that is not known, whose start lies in a step; the rows' other
// facts stay. What it holds as a timeline is not needed any more.
Profile within_steps(const Profile& profile, const std::vector<StepTime>& steps) {
  Profile out = without_timeline(profile);
  const Timeline& timeline = profile.timeline;
  for (KernelRow& row : out.kernels) row.duration = {};
  for (CopyRow& row : out.copies) row.duration = {}, row.bytes = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> windows;
  for (const StepTime& step : steps)
    windows.emplace_back(step.start_ns, step.start_ns + step.duration_ns);
  std::sort(windows.begin(), windows.end());
  for (const Activity& activity : timeline.activities) {
    const std::int64_t at = activity.call < timeline.calls.size()
                                ? timeline.calls[activity.call].start_ns
                                : activity.start_ns;
    auto window = std::upper_bound(windows.begin(), windows.end(), std::make_pair(at, INT64_MAX));
    if (window == windows.begin() || at >= (--window)->second) continue;
    const auto ns = static_cast<double>(activity.duration_ns);
    if (activity.kind == ActivityKind::kKernel) {
      if (activity.row < out.kernels.size()) out.kernels[activity.row].duration.add(ns);
    } else if (activity.row < out.copies.size()) {
      out.copies[activity.row].duration.add(ns);
      out.copies[activity.row].bytes += static_cast<double>(activity.bytes);
    }
  }
  const auto idle = [](const auto& row) { return row.duration.empty(); };
  out.kernels.erase(std::remove_if(out.kernels.begin(), out.kernels.end(), idle),
                    out.kernels.end());
  out.copies.erase(std::remove_if(out.copies.begin(), out.copies.end(), idle), out.copies.end());
  return out;
}

void add_totals(DiffTotals& totals, const Profile& profile, const Report& report) {
  const Environment& environment = profile.environment;
  totals.command = profile.command;
  totals.source = profile.source;
  totals.build = environment.build;
  totals.recorded_at = environment.recorded_at;
  totals.partial = profile.partial;
  for (const DeviceInfo& device : environment.devices) {
    add_once(totals.devices, device.name);
    add_once(totals.drivers, device.driver);
  }
  totals.launches = report.launches / totals.units;
  totals.kernel = report.kernel_ns / totals.units;
  totals.copy = report.copy_ns / totals.units;
}

void add_notes(Diff& diff, const Profile& a, const Profile& b) {
  const std::pair<const DiffTotals*, const char*> sides[] = {{&diff.a, "A"}, {&diff.b, "B"}};
  for (const auto& [side, name] : sides) {
    if (side->partial)
      diff.notes.push_back(
          fmt::format("{} is a partial profile: its missing kernels are shown as gone", name));
    if (side->outside > 0)
      diff.notes.push_back(
          fmt::format("{:.3g} ms of kernel time in {} was outside of its steps and is not compared",
                      side->outside / 1e6, name));
  }
  constexpr double kNotable = 0.05;
  for (const auto& [side, name] : sides)
    if (side->error > kNotable)
      diff.notes.push_back(fmt::format("totals of {} are estimates from windows, ±{:.0f} % (95 %)",
                                       name, 100 * side->error));
  if (!diff.per_step)
    diff.notes.emplace_back(
        "steps are not known on both sides: totals cover whole runs and are comparable only if "
        "both ran the same work");
  const bool other_build = a.environment.build != b.environment.build;
  if (diff.a.drivers != diff.b.drivers && diff.a.devices == diff.b.devices && other_build)
    diff.notes.emplace_back("driver and build both changed: 'duration' includes the driver's part");
}

}  // namespace

Causes& Causes::operator+=(const Causes& other) {
  count += other.count, duration += other.duration, shape += other.shape, kernel += other.kernel;
  environment += other.environment, gone += other.gone, appeared += other.appeared;
  return *this;
}

std::string_view to_text(Match match) {
  switch (match) {
    case Match::kKernelAndShape:
      return "kernel_and_shape";
    case Match::kKernel:
      return "kernel";
    case Match::kOpAndShape:
      return "op_and_shape";
    case Match::kOpClass:
      return "op_class";
    case Match::kNone:
      return "none";
  }
  return "";
}

Result<Diff> diff_profiles(const Profile& a, const Profile& b, DiffUnit unit) {
  Diff diff;
  const auto timeline_of = [](const Profile& profile) {
    return profile.timeline.empty() || profile.timeline.left_out > 0 ? TimelineAnalysis()
                                                                     : analyze_timeline(profile);
  };
  TimelineAnalysis time_a, time_b;
  if (unit != DiffUnit::kRun) time_a = timeline_of(a), time_b = timeline_of(b);
  diff.per_step = !time_a.steps.empty() && !time_b.steps.empty();
  // Steps found by repeated launches may be a layer in one profile and an iteration in the other.
  const bool alike = time_a.steps_from == time_b.steps_from && time_a.steps_from != kGuessedSteps;
  if (diff.per_step && !alike) {
    diff.notes.push_back(fmt::format(
        "steps of A are from {}, those of B from {}: {}", time_a.steps_from, time_b.steps_from,
        unit == DiffUnit::kStep ? "they may not be the same"
                                : "not compared by step; use --per step"));
    diff.per_step = unit == DiffUnit::kStep;
  }
  if (unit == DiffUnit::kStep && !diff.per_step)
    return error(
        Code::kInvalid,
        "{} has no steps (ranges such as 'ProfilerStep#1', or repeated launch sequences, in "
        "a complete timeline): compare whole runs with --per run",
        time_a.steps.empty() ? "A" : "B");
  if (diff.per_step) {
    diff.a.units = static_cast<double>(time_a.steps.size());
    diff.b.units = static_cast<double>(time_b.steps.size());
    diff.a.step = time_a.mean_step, diff.b.step = time_b.mean_step;
  }
  const auto report_of = [&](const Profile& profile, const TimelineAnalysis& time) {
    if (diff.per_step) return build_report(within_steps(profile, time.steps), GroupBy::kShape);
    return build_report(without_timeline(profile), GroupBy::kShape);
  };
  const Report report_a = report_of(a, time_a), report_b = report_of(b, time_b);
  if (!diff.per_step) {  // the timeline has every launch of its time
    diff.a.error = a.coverage.sampling.total_error();
    diff.b.error = b.coverage.sampling.total_error();
  }
  add_totals(diff.a, a, report_a);
  add_totals(diff.b, b, report_b);
  if (diff.per_step) {
    const auto outside = [](const Profile& profile, const Report& report) {
      double all = 0;
      for (const KernelRow& row : profile.kernels) all += row.duration.total_ns();
      return std::max(0.0, all - report.kernel_ns);
    };
    diff.a.outside = outside(a, report_a);
    diff.b.outside = outside(b, report_b);
  }
  Differ(report_a, report_b, diff).run();
  diff_copies(report_a, report_b, diff);
  for (const DiffItem& item : diff.items) {
    diff.change += item.change;
    diff.causes += item.causes;
  }
  add_notes(diff, a, b);
  return diff;
}

}  // namespace purlin::analyze
