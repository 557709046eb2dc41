// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/coverage.h"

#include "base/status.h"

#include <algorithm>
#include <map>
#include <set>

namespace purlin::fleet::analysis {

std::optional<double> Coverage::seen_share() const {
  if (busy_ns <= 0) return std::nullopt;
  return std::min(seen_ns / busy_ns, 1.0);
}

std::optional<double> Coverage::lost_share() const {
  const double launches = launches_seen + launches_lost;
  if (launches <= 0) return std::nullopt;
  return launches_lost / launches;
}

Coverage summarise(const std::vector<CoverageCell>& cells) {
  Coverage sum;
  std::set<std::string_view> nodes;
  std::set<std::pair<std::string_view, std::string_view>> devices;
  std::map<std::string, double> missing;  // reason -> busy time that was not seen
  for (const CoverageCell& cell : cells) {
    nodes.insert(cell.node);
    devices.emplace(cell.node, cell.device);
    sum.busy_ns += cell.busy_ns;
    sum.seen_ns += cell.seen_ns;
    sum.overhead_ns += cell.overhead_ns;
    sum.launches_seen += cell.launches_seen;
    sum.launches_lost += cell.launches_lost;
    sum.bad_timestamps += cell.bad_timestamps;
    if (!cell.why.empty()) missing[cell.why] += std::max(cell.busy_ns - cell.seen_ns, 0.0);
  }
  sum.nodes = static_cast<int>(nodes.size());
  sum.devices = static_cast<int>(devices.size());
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [why, ns] : missing) ranked.emplace_back(-ns, why);
  std::sort(ranked.begin(), ranked.end());
  for (auto& [ns, why] : ranked) sum.why.push_back(std::move(why));
  return sum;
}

std::optional<std::string> too_thin(const Coverage& coverage, const Needs& needs) {
  const std::string because = coverage.why.empty() ? "" : " (" + coverage.why.front() + ")";
  const std::optional<double> seen = coverage.seen_share();
  if (!seen) return "no GPU of this selection reported busy time";
  if (*seen < needs.seen_share)
    return fmt::format("only {:.1f} % of the busy GPU time was recorded; {:.0f} % are needed{}",
                       *seen * 100, needs.seen_share * 100, because);
  const std::optional<double> lost = coverage.lost_share();
  if (lost && *lost > needs.lost_share)
    return fmt::format("{:.1f} % of the launches were lost; at most {:.0f} % may be{}", *lost * 100,
                       needs.lost_share * 100, because);
  return std::nullopt;
}

std::vector<ThinNode> thin_nodes(const std::vector<CoverageCell>& cells, const Needs& needs) {
  std::map<std::string, std::vector<CoverageCell>> nodes;
  for (const CoverageCell& cell : cells) nodes[cell.node].push_back(cell);
  std::vector<ThinNode> thin;
  for (const auto& [node, own] : nodes)
    if (const auto why = too_thin(summarise(own), needs)) thin.push_back({node, *why});
  return thin;
}

}  // namespace purlin::fleet::analysis
