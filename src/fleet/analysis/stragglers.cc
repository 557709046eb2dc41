// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/stragglers.h"

#include "base/status.h"
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>

namespace purlin::fleet::analysis {
namespace {

struct DeviceKey {
  std::string node, device, gpu;
  auto operator<=>(const DeviceKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
using PeerKey = std::tuple<std::string, std::string, std::string>;  // kernel, shape, data type
using DeviceStrata = std::map<PeerKey, Sketch>;

std::map<DeviceKey, DeviceStrata> by_device(const std::vector<Cell>& cells) {
  std::map<DeviceKey, DeviceStrata> devices;
  for (const Cell& cell : cells)
    devices[{cell.node, cell.device, cell.gpu}][{cell.kernel, cell.shape, cell.dtype}].merge(
        cell.time);
  return devices;
}

// The median over the devices of a model that run the stratum.
struct Reference {
  double log_ns = 0;
  int devices = 0;
};
using References = std::map<std::pair<std::string, PeerKey>, Reference>;

References references_of(const std::map<DeviceKey, DeviceStrata>& devices, const Needs& needs) {
  std::map<std::pair<std::string, PeerKey>, std::vector<double>> levels;
  for (const auto& [device, strata] : devices)
    for (const auto& [key, sketch] : strata)
      if (sketch.count() >= needs.cell_launches)
        levels[{device.gpu, key}].push_back(log_p50(sketch));
  References references;
  for (auto& [key, values] : levels) {
    const int count = static_cast<int>(values.size());
    references[key] = {guard::median_of(std::move(values)), count};
  }
  return references;
}

struct PeerLevel {
  DeviceKey device;
  double log_ratio = 0, launches = 0, gpu_ns = 0, worst_ns = 0;
  int strata = 0, peers = 0;
  std::string worst;
};

PeerLevel level_against_peers(const DeviceKey& device, const DeviceStrata& strata,
                              const References& references, const StragglerOptions& options) {
  PeerLevel level;
  level.device = device;
  double weights = 0;
  for (const auto& [key, sketch] : strata) {
    level.gpu_ns += sketch.total_ns();
    const auto found = references.find({device.gpu, key});
    if (found == references.end() || found->second.devices <= options.min_peers) continue;
    if (sketch.count() < options.needs.cell_launches) continue;
    const double shift = log_p50(sketch) - found->second.log_ns;
    level.log_ratio += sketch.total_ns() * shift;
    weights += sketch.total_ns();
    level.launches += sketch.count();
    level.peers = std::max(level.peers, found->second.devices - 1);
    ++level.strata;
    const double lost = sketch.total_ns() * (1 - std::exp(-shift));
    if (lost > level.worst_ns) level.worst_ns = lost, level.worst = std::get<0>(key);
  }
  if (weights > 0) level.log_ratio /= weights;
  return level;
}

// A robust standard deviation: Rousseeuw and Croux' Qn, a low quantile of the distances of all
// pairs. Half of the devices may be anything, as with the median absolute deviation, but of 24
// devices it is half as uncertain, so that fewer of them seem far away by chance.
double spread_of(std::vector<double> levels) {
  constexpr double kToStandardDeviation = 2.2219;
  constexpr double kBucket = 0.003;  // a sketch shows nothing finer
  std::sort(levels.begin(), levels.end());
  const std::size_t half = levels.size() / 2 + 1, wanted = half * (half - 1) / 2;
  const auto pairs_within = [&](double distance) {
    std::size_t pairs = 0;
    for (std::size_t low = 0, high = 0; high < levels.size(); ++high) {
      while (levels[high] - levels[low] > distance) ++low;
      pairs += high - low;
    }
    return pairs;
  };
  double below = 0, enough = levels.back() - levels.front();
  for (int i = 0; i < 60; ++i) {  // by bisection: thousands of devices have millions of pairs
    const double middle = (below + enough) / 2;
    (pairs_within(middle) >= wanted ? enough : below) = middle;
  }
  return std::max(kToStandardDeviation * enough, kBucket);
}

// A spread of few devices is uncertain. In 200,000 made-up fleets without a straggler, the slowest
// of 6, 7, 8 or 9 devices is this far away in less than 0.3 %, of ten and more in less than 0.1 %
// (docs/design/fleet-analysis.md).
double deviations_needed(std::size_t devices, const StragglerOptions& options) {
  constexpr std::size_t kFewDevices = 10;
  constexpr double kOfFew = 1.6;
  return options.min_deviations * (devices < kFewDevices ? kOfFew : 1);
}

// Against the first half of the period; none without strata common to both halves.
std::map<DeviceKey, double> shifts_against_past(const std::vector<Cell>& cells,
                                                const Needs& needs) {
  const auto [first, last] =
      std::minmax_element(cells.begin(), cells.end(),
                          [](const Cell& a, const Cell& b) { return a.begin_ns < b.begin_ns; });
  if (first == cells.end() || first->begin_ns == last->begin_ns) return {};
  const std::int64_t middle = first->begin_ns + (last->begin_ns - first->begin_ns + 1) / 2;
  struct Halves {
    Strata before, after;
  };
  std::map<DeviceKey, std::map<std::string, Halves>> devices;  // by kernel
  for (const Cell& cell : cells) {
    Halves& halves = devices[{cell.node, cell.device, cell.gpu}][cell.kernel];
    (cell.begin_ns < middle ? halves.before : halves.after)[{cell.shape, cell.dtype}].merge(
        cell.time);
  }
  std::map<DeviceKey, double> shifts;
  for (const auto& [device, kernels] : devices) {
    double sum = 0, weights = 0;
    for (const auto& [kernel, halves] : kernels) {
      const Shift shift = shift_of(halves.before, halves.after, needs);
      const double weight = std::min(shift.common_before_ns, shift.common_after_ns);
      sum += weight * shift.log_ratio, weights += weight;
    }
    if (weights > 0) shifts[device] = sum / weights;
  }
  return shifts;
}

std::string named(const DeviceKey& device) {
  return device.device.empty() ? device.node : device.node + " " + device.device;
}

}  // namespace

Stragglers find_stragglers(const std::vector<Cell>& cells, const StragglerOptions& options) {
  Stragglers result;
  const std::map<DeviceKey, DeviceStrata> devices = by_device(cells);
  const References references = references_of(devices, options.needs);
  std::map<std::string, std::vector<PeerLevel>> models;
  for (const auto& [device, strata] : devices) {
    PeerLevel level = level_against_peers(device, strata, references, options);
    if (level.strata == 0 || level.launches < options.needs.launches)
      result.thin.push_back(fmt::format(
          "{}: {:.0f} launches of kernels and shapes that {} peers run, too; {:.0f} are needed",
          named(device), level.launches, options.min_peers, options.needs.launches));
    else
      models[device.gpu].push_back(std::move(level));
  }
  const std::map<DeviceKey, double> past = shifts_against_past(cells, options.needs);
  for (const auto& [gpu, levels] : models) {
    std::vector<double> shifts, own_shifts;
    for (const PeerLevel& level : levels) {
      shifts.push_back(level.log_ratio);
      if (const auto own = past.find(level.device); own != past.end())
        own_shifts.push_back(own->second);
    }
    const bool has_past = own_shifts.size() > static_cast<std::size_t>(options.min_peers);
    if (own_shifts.empty()) own_shifts.push_back(0);  // a period of one step has no past
    const double needed = deviations_needed(shifts.size(), options),
                 own_needed = deviations_needed(own_shifts.size(), options);
    if (shifts.size() <= static_cast<std::size_t>(options.min_peers)) continue;
    result.devices += static_cast<int>(shifts.size());
    const double centre = guard::median_of(shifts), spread = spread_of(shifts);
    const double own_centre = guard::median_of(own_shifts), own_spread = spread_of(own_shifts);
    for (const PeerLevel& level : levels) {
      Straggler row;
      row.node = level.device.node, row.device = level.device.device, row.gpu = gpu;
      const double slower = level.log_ratio - centre;
      row.deviations = slower / spread;
      row.relative_score = std::exp(-slower);
      row.slow_to_peers = slower >= std::log1p(options.min_slowdown) && row.deviations >= needed;
      double lost = row.slow_to_peers ? slower : 0;
      if (const auto own = past.find(level.device); own != past.end()) {
        row.individual_score = std::exp(-own->second);
        // A change that its peers share is no fault of this GPU.
        const double alone = own->second - own_centre;
        row.slow_to_past = has_past && alone >= std::log1p(options.min_slowdown) &&
                           alone / own_spread >= own_needed;
        if (row.slow_to_past) lost = std::max(lost, alone);
      }
      if (!row.slow_to_peers && !row.slow_to_past) continue;
      row.peers = level.peers, row.strata = level.strata;
      row.gpu_s = level.gpu_ns * 1e-9;
      row.lost_gpu_s = row.gpu_s * (1 - std::exp(-lost));
      row.worst_kernel = level.worst;
      result.devices_slow.push_back(std::move(row));
    }
  }
  if (result.devices == 0)
    result.refused = fmt::format("no GPU has {} peers that run the same kernels at the same shapes",
                                 options.min_peers);
  std::stable_sort(
      result.devices_slow.begin(), result.devices_slow.end(),
      [](const Straggler& a, const Straggler& b) { return a.lost_gpu_s > b.lost_gpu_s; });
  return result;
}

}  // namespace purlin::fleet::analysis
