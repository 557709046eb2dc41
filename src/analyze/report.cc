// SPDX-License-Identifier: Apache-2.0
#include "analyze/report.h"

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
};

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

// Kernels whose brief names are the same are told apart; numbers go by full name, not by rank.
void label_kernels(std::vector<KernelStat>& kernels) {
  std::map<std::string, std::map<std::string, const KernelName*>> namesakes;
  for (const KernelStat& kernel : kernels)
    namesakes[kernel.name.brief].emplace(kernel.name.full, &kernel.name);
  std::map<std::string, std::string> labels;
  for (const auto& [brief, by_full_name] : namesakes) {
    std::vector<const KernelName*> names;
    for (const auto& [full, name] : by_full_name) names.push_back(name);
    const std::vector<std::string> told = tell_apart(names);
    for (std::size_t i = 0; i < names.size(); ++i) labels[names[i]->full] = told[i];
  }
  for (KernelStat& kernel : kernels) kernel.label = labels[kernel.name.full];
}

template <class Stat>
bool heavier(const Stat& a, const Stat& b) {
  return a.duration.total_ns() > b.duration.total_ns();
}

}  // namespace

Report build_report(const Profile& profile, GroupBy group_by,
                    const std::vector<Ceilings>& measured) {
  Report report;
  report.group_by = group_by;
  report.environment = profile.environment;
  report.command = profile.command;
  report.source = profile.source;
  report.wall_ns = profile.wall_ns;
  report.exit_code = profile.exit_code;
  report.processes = profile.processes;
  report.coverage = profile.coverage;
  report.partial = profile.partial;
  report.ceilings = ceilings_of(profile, measured);
  if (!profile.timeline.empty()) report.timeline = analyze_timeline(profile);

  using Key = std::tuple<std::string, std::string, Dim3, Dim3, Dim3, std::uint32_t, std::string,
                         std::string>;
  std::map<Key, Group> groups;  // ordered, so that equal totals rank the same each time
  std::map<std::string, KernelName> names;
  for (const KernelRow& row : profile.kernels) {
    auto [name, added] = names.try_emplace(row.name);
    if (added) name->second = describe_kernel(row.name);
    Key key{name->second.full, device_name(profile, row.device), {}, {}, {}, 0, "", ""};
    if (group_by == GroupBy::kLaunch)
      key = {name->second.full,
             std::get<1>(key),
             row.launch.grid,
             row.launch.block,
             row.launch.cluster,
             row.launch.dynamic_shared_bytes,
             row.op,
             row.shape};
    Group& group = groups[key];
    group.stat.name = name->second;
    group.stat.device = std::get<1>(key);
    add_row(group, row);
    if (!group.work)
      group.work.emplace(device_of(profile, row.device),
                         ceilings_for(report.ceilings, group.stat.device));
    group.work->add(row, name->second);
    report.kernel_ns += row.duration.total_ns();
    report.launches += row.duration.count();
  }
  for (auto& [key, group] : groups) {
    group.stat.launch_shapes = static_cast<int>(group.shapes.size());
    if (report.kernel_ns > 0) group.stat.share = group.stat.duration.total_ns() / report.kernel_ns;
    group.stat.roof = group.work->roof();
    report.kernels.push_back(std::move(group.stat));
  }
  std::stable_sort(report.kernels.begin(), report.kernels.end(), heavier<KernelStat>);
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
  for (auto& [key, copy] : copies) report.copies.push_back(std::move(copy));
  std::stable_sort(report.copies.begin(), report.copies.end(), heavier<CopyStat>);
  return report;
}

}  // namespace purlin::analyze
