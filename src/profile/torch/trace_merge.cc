// SPDX-License-Identifier: Apache-2.0
#include "profile/torch/trace_merge.h"

#include "base/text.h"
#include "profile/format/merge.h"
#include "profile/format/timeline_join.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace purlin::profile {
namespace {

// Launches of one kernel by one op, over devices and resources.
struct OpShare {
  const KernelRow* first = nullptr;
  Sketch duration;
  std::vector<Counter> counters;
};

bool same_op(const KernelRow& a, const KernelRow& b) {
  return std::tie(a.op, a.shape, a.dtype) == std::tie(b.op, b.shape, b.dtype);
}

// Kineto has the sum of both.
std::uint32_t shared_bytes(const KernelRow& row) {
  return row.static_shared_bytes + row.launch.dynamic_shared_bytes;
}

class TraceJoin {
 public:
  TraceJoin(Profile& run, const Profile& trace, std::int64_t pid)
      : run_(run), trace_(trace), pid_(pid), held_(run.kernels.size()) {}

  TraceMerge join() {
    map_devices();
    for (std::size_t i = 0; i < trace_.kernels.size(); ++i)
      traced_[key_of(trace_.kernels[i])].push_back(i);
    for (std::size_t i = 0; i < held_; ++i) label(i);
    place_kernels();
    place_copies();
    join_timeline();
    merge_data_flow(run_.data_flow, trace_.data_flow);
    for (const KernelRow& row : run_.kernels) {
      out_.total_ns += row.duration.total_ns();
      if (!row.op.empty()) out_.with_op_ns += row.duration.total_ns();
    }
    return out_;
  }

 private:
  const std::string& readable(const std::string& name) {
    const auto [position, added] = names_.try_emplace(name);
    if (added) position->second = demangle(name);
    return position->second;
  }

  std::string key_of(const KernelRow& row) {
    const Dim3 &grid = row.launch.grid, &block = row.launch.block;
    return fmt::format("{}\n{} {} {} {} {} {}", readable(row.name), grid[0], grid[1], grid[2],
                       block[0], block[1], block[2]);
  }

  // By the number of the driver; a device that the run does not know is added.
  void map_devices() {
    std::vector<DeviceInfo>& known = run_.environment.devices;
    for (const DeviceInfo& device : trace_.environment.devices) {
      auto at = std::find_if(known.begin(), known.end(),
                             [&](const DeviceInfo& each) { return each.id == device.id; });
      if (at == known.end()) at = known.insert(known.end(), device);
      devices_.push_back(static_cast<int>(at - known.begin()));
    }
  }

  int device_of(int traced) const {
    const auto at = static_cast<std::size_t>(traced);
    return traced >= 0 && at < devices_.size() ? devices_[at] : 0;
  }

  // The ops that launch this row's kernel.
  std::vector<OpShare> shares_of(const KernelRow& row, const std::vector<std::size_t>& group) {
    const bool exact = std::any_of(group.begin(), group.end(), [&](std::size_t i) {
      return shared_bytes(trace_.kernels[i]) == shared_bytes(row);
    });
    std::vector<OpShare> shares;
    for (const std::size_t i : group) {
      const KernelRow& traced = trace_.kernels[i];
      if (traced.op.empty() || traced.duration.empty()) continue;
      if (exact && shared_bytes(traced) != shared_bytes(row)) continue;
      auto at = std::find_if(shares.begin(), shares.end(),
                             [&](const OpShare& share) { return same_op(*share.first, traced); });
      if (at == shares.end()) at = shares.insert(at, {&traced, {}, {}});
      at->duration.merge(traced.duration);
      merge_counters(at->counters, traced.counters);
    }
    return shares;
  }

  static void give(KernelRow& row, const OpShare& share) {
    row.op = share.first->op;
    row.shape = share.first->shape;
    row.dtype = share.first->dtype;
    merge_counters(row.counters, share.counters);
  }

  // Rows with an op keep it: the program named it. Nodes of graphs have none in a trace either.
  void label(std::size_t index) {
    const auto group = traced_.find(key_of(run_.kernels[index]));
    if (group == traced_.end()) return;
    const KernelRow whole = run_.kernels[index];
    const bool open = whole.op.empty() && whole.origin == LaunchOrigin::kStream;
    const std::vector<OpShare> shares =
        open ? shares_of(whole, group->second) : std::vector<OpShare>();
    std::vector<std::size_t>& rows = rows_of_[group->first];
    rows.push_back(index);
    if (shares.empty()) return;
    if (shares.size() == 1) {
      give(run_.kernels[index], shares.front());
      return;
    }
    out_.split_launches += whole.duration.count();
    double launches = 0, total = 0;
    for (const OpShare& share : shares) {
      launches += share.duration.count();
      total += share.duration.total_ns();
    }
    const double weight = whole.duration.count() / launches;
    const double time = total > 0 ? whole.duration.total_ns() / (total * weight) : 1;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      KernelRow part = whole;
      part.duration = shares[i].duration.scaled(time, weight);
      for (Counter& counter : part.counters)
        counter.launches *= shares[i].duration.count() / launches;
      give(part, shares[i]);
      if (i == 0) {
        run_.kernels[index] = std::move(part);
      } else {
        rows.push_back(run_.kernels.size());
        run_.kernels.push_back(std::move(part));
      }
    }
  }

  // Of the rows of this kernel: of the same op, then on the same device.
  std::size_t best_row(const KernelRow& traced, const std::vector<std::size_t>& rows) const {
    const auto fit = [&](std::size_t i) {
      const KernelRow& row = run_.kernels[i];
      return std::tuple(same_op(row, traced), row.device == device_of(traced.device),
                        shared_bytes(row) == shared_bytes(traced), row.duration.count());
    };
    return *std::max_element(rows.begin(), rows.end(),
                             [&](std::size_t a, std::size_t b) { return fit(a) < fit(b); });
  }

  void place_kernels() {
    for (const KernelRow& traced : trace_.kernels) {
      out_.launches += traced.duration.count();
      const auto rows = rows_of_.find(key_of(traced));
      if (rows != rows_of_.end()) {
        kernels_.push_back(static_cast<std::uint32_t>(best_row(traced, rows->second)));
        continue;
      }
      kernels_.push_back(static_cast<std::uint32_t>(run_.kernels.size()));
      run_.kernels.push_back(traced);
      run_.kernels.back().device = device_of(traced.device);
      run_.coverage.launches_seen += traced.duration.count();
      out_.added_launches += traced.duration.count();
      ++out_.added_kernels;
    }
  }

  void place_copies() {
    for (const CopyRow& traced : trace_.copies) {
      std::vector<CopyRow>& rows = run_.copies;
      const int device = device_of(traced.device);
      auto at = std::find_if(rows.begin(), rows.end(), [&](const CopyRow& row) {
        return row.kind == traced.kind && row.device == device;
      });
      if (at == rows.end()) {
        at = rows.insert(at, traced);
        at->device = device;
      }
      copies_.push_back(static_cast<std::uint32_t>(at - rows.begin()));
    }
  }

  std::uint32_t process() {
    std::vector<ProcessInfo>& known = run_.processes;
    auto at = std::find_if(known.begin(), known.end(), [&](const ProcessInfo& each) {
      return each.pid == pid_ && each.layer != "opencl";
    });
    if (at == known.end()) {
      ProcessInfo traced = trace_.processes.empty() ? ProcessInfo() : trace_.processes.front();
      traced.pid = pid_;
      traced.complete = true;
      at = known.insert(at, std::move(traced));
    }
    return static_cast<std::uint32_t>(at - known.begin());
  }

  void join_timeline() {
    Timeline& timeline = run_.timeline;
    if (timeline.activities.empty()) timeline = Timeline();  // without work, bounds mean nothing
    std::unordered_map<std::string, std::uint32_t> names;
    for (std::size_t i = 0; i < timeline.names.size(); ++i)
      names.emplace(timeline.names[i], static_cast<std::uint32_t>(i));
    const auto name = [&](const std::string& text) {
      const auto [at, added] =
          names.try_emplace(text, static_cast<std::uint32_t>(timeline.names.size()));
      if (added) timeline.names.push_back(text);
      return at->second;
    };
    const std::uint32_t traced = process();
    join_bounds(timeline, trace_.timeline);
    timeline.left_out += trace_.timeline.left_out;
    append_events(timeline, trace_.timeline,
                  {kernels_, copies_, [&](int device) { return device_of(device); },
                   [&](std::uint32_t) { return traced; }, name});
    sort_timeline(timeline);
  }

  Profile& run_;
  const Profile& trace_;
  const std::int64_t pid_;
  const std::size_t held_;  // rows of the run, before
  TraceMerge out_;
  std::vector<int> devices_;
  std::vector<std::uint32_t> kernels_, copies_;  // of the trace's rows, the run's
  std::unordered_map<std::string, std::string> names_;
  std::unordered_map<std::string, std::vector<std::size_t>> traced_, rows_of_;
};

}  // namespace

TraceMerge merge_trace(Profile& run, const Profile& trace, std::int64_t pid) {
  return TraceJoin(run, trace, pid).join();
}

}  // namespace purlin::profile
