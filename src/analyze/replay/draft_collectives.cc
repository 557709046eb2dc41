// SPDX-License-Identifier: Apache-2.0
// Collectives: each is a wait for the last rank and a transfer. Those of one name are matched over
// devices by order, as in timeline/ranks.h, and only where each device ran as many.
#include "analyze/replay/draft.h"
#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/ranks.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace purlin::analyze {
namespace {

using Members = std::vector<std::vector<std::uint32_t>>;  // by device: activities in order

class CollectiveDraft {
 public:
  explicit CollectiveDraft(Draft& draft) : draft_(draft) {}

  void run() {
    const auto& activities = draft_.timeline.activities;
    const std::vector<bool> communication = communication_rows(draft_.profile);
    const std::vector<DeviceWork> devices = split_by_device(draft_.timeline);
    if (devices.size() < 2) return;
    std::vector<std::string> ignored;
    for (const RankStats& rank : compare_ranks(draft_.profile, devices, communication, ignored))
      offset_[rank.device] = static_cast<std::int64_t>(rank.clock_offset_ns);
    std::map<std::string_view, Members> by_name;
    for (std::size_t d = 0; d < devices.size(); ++d)
      for (std::size_t i = devices[d].first; i < devices[d].last; ++i) {
        if (work_of(activities[i], communication) != kCommunicating) continue;
        const std::string_view name = draft_.profile.kernels[activities[i].row].name;
        if (name.find("SendRecv") != std::string_view::npos) continue;
        Members& members = by_name[name];
        members.resize(devices.size());
        members[d].push_back(static_cast<std::uint32_t>(i));
      }
    for (auto& of_name : by_name) {
      Members& members = of_name.second;
      std::erase_if(members, [](const auto& list) { return list.empty(); });
      const bool same = std::all_of(members.begin(), members.end(), [&](const auto& list) {
        return list.size() == members[0].size();
      });
      if (members.size() < 2 || !same) continue;
      for (std::size_t k = 0; k < members[0].size(); ++k) couple(members, k);
    }
    set_transfers();
  }

 private:
  std::int64_t offset(std::uint32_t index) const {
    const auto found = offset_.find(draft_.timeline.activities[index].device);
    return found != offset_.end() ? found->second : 0;
  }
  std::int64_t begin(std::uint32_t index) const {
    return begin_of(draft_.timeline.activities[index]) - offset(index);
  }

  void couple(const Members& members, std::size_t k) {
    std::uint32_t last = members[0][k];
    for (const auto& list : members) {
      if (draft_.graph.activities[list[k]].begin == kNone) return;  // not all are in the window
      if (begin(list[k]) > begin(last)) last = list[k];
    }
    for (const auto& list : members) {
      const Activity& own = draft_.timeline.activities[list[k]];
      const std::int64_t transfer = end_of(own) - begin_of(own) - (begin(last) - begin(list[k]));
      if (transfer <= 0) continue;  // it ended before the last began: no barrier
      draft_.graph.collective_ns += static_cast<double>(end_of(own) - begin_of(own));
      draft_.graph.collective_wait_ns += static_cast<double>(begin(last) - begin(list[k]));
      for (const auto& other : members) add(other[k], list[k], transfer);
    }
  }

  // From any rank's begin the transfer takes as long as from that of the last rank; clocks may
  // differ.
  void add(std::uint32_t from, std::uint32_t to, std::int64_t transfer) {
    const std::uint32_t end = draft_.graph.activities[to].end;
    if (from == to) {
      transfers_[end] = static_cast<double>(transfer);
      return;
    }
    draft_.add_edge(draft_.graph.activities[from].begin, end, EdgeKind::kTransfer);
    draft_.edges.back().weight = static_cast<double>(transfer + offset(to) - offset(from));
  }

  void set_transfers() {
    for (Edge& edge : draft_.edges) {
      if (edge.kind != EdgeKind::kRun) continue;
      const auto transfer = transfers_.find(edge.to);
      if (transfer != transfers_.end()) edge.weight = transfer->second;
    }
  }

  Draft& draft_;
  std::map<int, std::int64_t> offset_;         // of a device's clock
  std::map<std::uint32_t, double> transfers_;  // by end node
};

}  // namespace

void draft_collectives(Draft& draft) { CollectiveDraft(draft).run(); }

}  // namespace purlin::analyze
