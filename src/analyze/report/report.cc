// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/report.h"

#include "analyze/report/identity.h"
#include "analyze/report/notes.h"
#include "analyze/roofline/op_parts.h"
#include "model/problem/problem.h"
#include "model/profile/copy_kind.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace purlin::analyze {
namespace {

std::string device_name(const Profile& profile, int index) {
  const auto& devices = profile.environment.devices;
  if (index < 0 || static_cast<std::size_t>(index) >= devices.size()) return "";
  return devices[static_cast<std::size_t>(index)].name;
}

// Facts of a row's device; of one without any where the profile names none.
const DeviceInfo& device_of(const Profile& profile, int index) {
  static const DeviceInfo kUnknown;
  const auto& devices = profile.environment.devices;
  if (index < 0 || static_cast<std::size_t>(index) >= devices.size()) return kUnknown;
  return devices[static_cast<std::size_t>(index)];
}

// One for each GPU model, in the order of the devices; measured ones go by the model's name.
std::vector<Ceilings> ceilings_of(const Profile& profile, const std::vector<Ceilings>& measured) {
  std::vector<Ceilings> out;
  for (const DeviceInfo& device : profile.environment.devices) {
    const auto same = [&](const Ceilings& ceilings) { return ceilings.device == device.name; };
    if (std::any_of(out.begin(), out.end(), same)) continue;
    const auto own = std::find_if(measured.begin(), measured.end(), same);
    out.push_back(build_ceilings(device, own == measured.end() ? nullptr : &*own));
  }
  return out;
}

const Ceilings& ceilings_for(const std::vector<Ceilings>& all, const std::string& device) {
  static const Ceilings kUnknown;
  for (const Ceilings& ceilings : all)
    if (ceilings.device == device) return ceilings;
  return kUnknown;
}

// One row in the making: the stat, and how long its heaviest launch shape took.
struct Group {
  KernelStat stat;
  double heaviest_ns = -1;
  std::optional<RoofSum> work;
  std::set<std::tuple<Dim3, Dim3, Dim3, std::uint32_t>> shapes;
  std::set<std::string> kernels;
  std::optional<DtypeGuess> guess;
};

// Device, build, then what GroupBy says; what it merges is empty.
using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string,
                       Dim3, Dim3, Dim3, std::uint32_t>;

Key key_of(const KernelRow& row, const KernelName& name, const std::string& device,
           const std::string& build, GroupBy group_by) {
  const LaunchShape& launch = row.launch;
  switch (group_by) {
    case GroupBy::kKernel:
      return {name.full, device, build, "", "", "", {}, {}, {}, 0};
    case GroupBy::kShape:
      return {name.full, device, build, row.op, row.shape, row.dtype, {}, {}, {}, 0};
    case GroupBy::kLaunch:
      return {name.full, device,      build,        row.op,         row.shape,
              row.dtype, launch.grid, launch.block, launch.cluster, launch.dynamic_shared_bytes};
    case GroupBy::kOp:
      return {row.op, device, build, "", "", "", {}, {}, {}, 0};
    case GroupBy::kOpClass:
      return {std::string(name.op_class), device, build, "", "", "", {}, {}, {}, 0};
  }
  return {};
}

// Where a kernel's name does not tell what it does, the op that launched it may.
KernelName classified(KernelName name, const std::string& op) {
  if (name.op_class == "other" && !op.empty()) name.op_class = problem_of(op, {}).op_class;
  return name;
}

// What a row is called: rows of ops and classes represent many kernels.
KernelName row_name(const KernelName& kernel, const std::string& op, GroupBy group_by) {
  if (group_by != GroupBy::kOp && group_by != GroupBy::kOpClass) return kernel;
  KernelName out;
  out.full = group_by == GroupBy::kOpClass ? std::string(kernel.op_class)
             : op.empty()                  ? "(no op known)"
                                           : op;
  out.brief = out.full;
  const std::string_view of_op = problem_of(op, {}).op_class;
  out.op_class = group_by == GroupBy::kOpClass || of_op == "other" ? kernel.op_class : of_op;
  if (group_by == GroupBy::kOp && op.empty()) out.op_class = "other";
  return out;
}

// Means over the launches that each was read for.
void merge_counters(std::vector<Counter>& into, const std::vector<Counter>& from) {
  for (const Counter& counter : from) {
    const auto same =
        std::lower_bound(into.begin(), into.end(), counter,
                         [](const Counter& a, const Counter& b) { return a.name < b.name; });
    if (same == into.end() || same->name != counter.name) {
      into.insert(same, counter);
    } else if (const double launches = same->launches + counter.launches; launches > 0) {
      same->value += (counter.value - same->value) * counter.launches / launches;
      same->launches = launches;
    }
  }
}

void add_row(Group& group, const KernelRow& row) {
  KernelStat& stat = group.stat;
  const bool first = stat.duration.empty() && group.shapes.empty();
  if (first || stat.op != row.op) stat.op = first ? row.op : "";
  if (first || stat.shape != row.shape) stat.shape = first ? row.shape : "";
  if (first || stat.dtype != row.dtype) stat.dtype = first ? row.dtype : "";
  stat.duration.merge(row.duration);
  merge_counters(stat.counters, row.counters);
  if (row.first_ns > 0 && (stat.first_ns == 0 || row.first_ns < stat.first_ns))
    stat.first_ns = row.first_ns;
  stat.last_ns = std::max(stat.last_ns, row.last_ns);
  group.shapes.emplace(row.launch.grid, row.launch.block, row.launch.cluster,
                       row.launch.dynamic_shared_bytes);
  if (row.duration.total_ns() > group.heaviest_ns) {
    group.heaviest_ns = row.duration.total_ns();
    stat.launch = row.launch;
    stat.registers = row.registers;
    stat.static_shared_bytes = row.static_shared_bytes;
    stat.local_bytes = row.local_bytes;
  }
}

// A guess is a group's where it is that of all its rows.
void add_guesses(const Profile& profile, const std::map<std::string, KernelName>& names,
                 const std::vector<Group*>& group_of) {
  const std::vector<DtypeGuess> guesses = guess_dtypes(profile, names);
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    std::optional<DtypeGuess>& guess = group_of[i]->guess;
    if (!guess) guess = guesses[i];
    if (!(*guess == guesses[i])) guess->dtype.clear();
  }
  for (Group* group : group_of)
    if (group->guess && !group->guess->dtype.empty()) group->stat.dtype_guess = *group->guess;
}

// Kernels whose brief names are the same are told apart; numbers go by full name, not by rank.
void label_kernels(std::vector<KernelStat>& kernels) {
  std::map<std::string, std::map<std::string, const KernelName*>> namesakes;
  for (const KernelStat& kernel : kernels)
    namesakes[kernel.name.brief].emplace(kernel.name.full, &kernel.name);
  std::map<std::string, std::string> labels;
  for (const auto& [brief, by_full_name] : namesakes) {
    std::vector<const KernelName*> names;
    for (const auto& [full, name] : by_full_name) names.push_back(name);
    const std::vector<std::string> labels_of_names = tell_apart(names);
    for (std::size_t i = 0; i < names.size(); ++i) labels[names[i]->full] = labels_of_names[i];
  }
  for (KernelStat& kernel : kernels) kernel.label = labels[kernel.name.full];
}

// Samples go to kernels by name; rows of ops and classes share their kernels with others.
void add_stalls(const Profile& profile, GroupBy group_by, std::map<Key, Group>& groups,
                const std::map<std::string, KernelName>& names, bool has_builds, Report& report) {
  const SampledStalls& stalls = profile.stalls;
  StallSampling& sampling = report.stall_sampling;
  sampling.windows = stalls.windows;
  sampling.sampled_ns = stalls.sampled_ns;
  sampling.least_period = stalls.least_period;
  sampling.most_period = stalls.most_period;
  sampling.dropped = stalls.dropped;
  sampling.untold = stalls.untold;
  sampling.samples = stalls.samples();
  using Owner = std::tuple<std::string, std::string, std::string>;  // kernel, device, build
  std::map<Owner, std::vector<const StallFunction*>> by_owner;
  std::map<std::string, double> elsewhere;
  for (const StallFunction& function : stalls.functions) {
    if (const auto known = names.find(function.name); known != names.end()) {
      by_owner[{known->second.full, device_name(profile, function.device),
                has_builds ? function.build : profile.environment.build}]
          .push_back(&function);
    } else {
      double& samples = elsewhere[describe_kernel(function.name).full];
      for (const StallSite& site : function.sites) samples += site.samples();
    }
  }
  sampling.elsewhere.assign(elsewhere.begin(), elsewhere.end());
  std::stable_sort(sampling.elsewhere.begin(), sampling.elsewhere.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (group_by == GroupBy::kOp || group_by == GroupBy::kOpClass) return;
  for (auto& [key, group] : groups) {
    const auto found = by_owner.find({group.stat.name.full, group.stat.device, group.stat.build});
    if (found != by_owner.end()) group.stat.sampled = sites_of(stalls, found->second);
  }
}

template <class Stat>
bool heavier(const Stat& a, const Stat& b) {
  return a.duration.total_ns() > b.duration.total_ns();
}

// Where nothing else ranks them, by samples.
bool ranks_before(const KernelStat& a, const KernelStat& b) {
  return std::pair(a.duration.total_ns(), a.sampled.samples) >
         std::pair(b.duration.total_ns(), b.sampled.samples);
}

// Functions that were much sampled and of which no launch was recorded, as rows without durations:
// a kernel of which CUPTI gave no records, or a function that kernels call.
std::vector<KernelRow> sampled_only(const Profile& profile) {
  constexpr double kMuch = 0.05;
  std::set<std::string_view> launched;
  for (const KernelRow& row : profile.kernels) launched.insert(row.name);
  const double all = profile.stalls.samples();
  std::vector<KernelRow> rows;
  for (const StallFunction& function : profile.stalls.functions) {
    double samples = 0;
    for (const StallSite& site : function.sites) samples += site.samples();
    if (launched.count(function.name) > 0 || samples < kMuch * all) continue;
    KernelRow& row = rows.emplace_back();
    row.name = function.name;
    row.device = function.device;
    row.build = function.build;
  }
  return rows;
}

constexpr std::pair<GroupBy, std::string_view> kGroupings[] = {{GroupBy::kKernel, "kernel"},
                                                               {GroupBy::kShape, "shape"},
                                                               {GroupBy::kLaunch, "launch"},
                                                               {GroupBy::kOp, "op"},
                                                               {GroupBy::kOpClass, "op_class"}};

}  // namespace

std::string_view to_text(GroupBy group_by) {
  for (const auto& [value, text] : kGroupings)
    if (value == group_by) return text;
  return "";
}

Result<GroupBy> group_by_from_text(std::string_view text) {
  for (const auto& [value, name] : kGroupings)
    if (name == text) return value;
  return error(Code::kInvalid,
               "--by '{}': give what a row is to be: kernel, shape, launch, op or op_class", text);
}

Report build_report(const Profile& profile, GroupBy group_by,
                    const std::vector<Ceilings>& measured) {
  return build_report(profile, analyze_timeline(profile), group_by, measured);
}

Report build_report(const Profile& profile, TimelineAnalysis timeline, GroupBy group_by,
                    const std::vector<Ceilings>& measured) {
  Report report = build_rows(profile, group_by, measured);
  report.timeline = std::move(timeline);
  return report;
}

namespace {

// Copies between host and device are limited by a link, whose rate no table has.
void rate_copy(CopyStat& copy, const std::vector<Ceilings>& all) {
  const std::string_view direction = copy_direction(copy.kind);
  const double passes = direction == "d2d"                             ? 2
                        : direction == "memset" || direction == "fill" ? 1
                                                                       : 0;
  copy.traffic_bytes = passes * copy.bytes;
  const double count = copy.duration.count(), ns = copy.duration.total_ns();
  if (copy.traffic_bytes <= 0 || count <= 0 || ns <= 0) return;
  for (const Ceilings& device : all) {
    const Ceiling* dram = device.memory_for("dram");
    const bool in_cache = copy.traffic_bytes / count <= device.l2_bytes;
    if (device.device == copy.device && dram != nullptr && !in_cache)
      copy.utilization = copy.traffic_bytes / ns * 1e9 / dram->peak;
  }
}

}  // namespace

bool beyond_wall_time(const Report& report) {
  if (report.coverage.launches_sampled_out < 0.5 || report.wall_ns <= 0) return false;
  const auto devices = std::max<std::size_t>(1, report.environment.devices.size());
  const auto processes = std::max<std::size_t>(1, report.processes.size());
  return report.kernel_ns >
         static_cast<double>(report.wall_ns) * static_cast<double>(devices * processes);
}

Report build_rows(const Profile& profile, GroupBy group_by, const std::vector<Ceilings>& measured,
                  std::vector<std::size_t>* row_of) {
  Report report;
  report.profile_id = profile_id(profile);
  report.group_by = group_by;
  report.environment = profile.environment;
  report.command = profile.command;
  report.source = profile.source;
  report.wall_ns = profile.wall_ns;
  report.exit_code = profile.exit_code;
  report.processes = profile.processes;
  report.runs = run_labels(profile);
  report.coverage = profile.coverage;
  report.coverage.notes = group_notes(report.coverage.notes);
  report.partial = profile.partial;
  report.ceilings = ceilings_of(profile, measured);

  std::map<Key, Group> groups;   // ordered, so that equal totals rank the same each time
  std::vector<Group*> group_of;  // of each row
  std::map<std::string, KernelName> names;
  const bool has_builds = std::any_of(profile.kernels.begin(), profile.kernels.end(),
                                      [](const KernelRow& row) { return !row.build.empty(); });
  const std::vector<double> parts = parts_of_ops(profile);
  const auto add = [&](const KernelRow& row, double part = 1) {
    auto [name, added] = names.try_emplace(row.name);
    if (added) name->second = describe_kernel(row.name);
    const KernelName kernel = classified(name->second, row.op);
    const std::string& build = has_builds ? row.build : profile.environment.build;
    const std::string device = device_name(profile, row.device);
    const auto place = groups.try_emplace(key_of(row, kernel, device, build, group_by)).first;
    Group& group = place->second;
    group_of.push_back(&group);
    group.stat.name = row_name(kernel, row.op, group_by);
    group.stat.device = device;
    group.stat.build = build;
    group.kernels.insert(kernel.full);
    add_row(group, row);
    if (!group.work)
      group.work.emplace(device_of(profile, row.device),
                         ceilings_for(report.ceilings, group.stat.device));
    group.work->add(row, name->second, part);
    report.kernel_ns += row.duration.total_ns();
    report.launches += row.duration.count();
  };
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) add(profile.kernels[i], parts[i]);
  if (group_by != GroupBy::kOp && group_by != GroupBy::kOpClass)
    add_guesses(profile, names, group_of);
  if (!profile.stalls.empty()) {
    const std::size_t rows = group_of.size();
    for (const KernelRow& row : sampled_only(profile)) add(row);
    group_of.resize(rows);  // those of the profile
    add_stalls(profile, group_by, groups, names, has_builds, report);
  }
  std::vector<const Group*> order;
  for (const auto& [key, group] : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(),
                   [](const Group* a, const Group* b) { return ranks_before(a->stat, b->stat); });
  if (row_of != nullptr) {
    std::map<const Group*, std::size_t> places;
    for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
    row_of->clear();
    for (const Group* group : group_of) row_of->push_back(places[group]);
  }
  for (auto& [key, group] : groups) {
    group.stat.launch_shapes = static_cast<int>(group.shapes.size());
    group.stat.kernels = static_cast<int>(group.kernels.size());
    if (report.kernel_ns > 0) group.stat.share = group.stat.duration.total_ns() / report.kernel_ns;
    group.stat.roof = group.work->roof();
    report.kernels.push_back(std::move(group.stat));
  }
  std::stable_sort(report.kernels.begin(), report.kernels.end(), ranks_before);
  label_kernels(report.kernels);

  std::map<std::pair<std::string, std::string>, CopyStat> copies;
  for (const CopyRow& row : profile.copies) {
    const std::string device = device_name(profile, row.device);
    CopyStat& copy = copies[{row.kind, device}];
    copy.kind = row.kind;
    copy.device = device;
    copy.bytes += row.bytes;
    copy.duration.merge(row.duration);
    report.copy_ns += row.duration.total_ns();
  }
  for (auto& [key, copy] : copies) {
    rate_copy(copy, report.ceilings);
    report.copies.push_back(std::move(copy));
  }
  std::stable_sort(report.copies.begin(), report.copies.end(), heavier<CopyStat>);
  report.waits = profile.waits;
  std::stable_sort(report.waits.begin(), report.waits.end(), heavier<WaitRow>);
  return report;
}

}  // namespace purlin::analyze
