// SPDX-License-Identifier: Apache-2.0
#include "tune/records/prior_runs.h"

#include "tune/records/recordings.h"

#include <algorithm>
#include <unordered_map>

namespace purlin::tune {
namespace {

// A recording of nine tenths of the space says what the rest is like.
constexpr double kComplete = 0.9;

int nearness(const PriorRun& run) {
  return 4 * run.same_device + 2 * run.same_vendor + run.same_shape;
}

}  // namespace

PriorReader::PriorReader(const Space& space, const DeviceInfo& device, const ProblemShape& problem)
    : space_(space), device_(device), problem_(problem) {}

void PriorReader::add(const gpu::Recording& recording, const std::string& name) {
  const std::vector<Parameter>& parameters = space_.parameters();
  std::vector<std::unordered_map<std::string, std::uint16_t>> places(parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (std::size_t i = 0; i < parameters[p].values.size(); ++i)
      places[p].emplace(gpu::value_key(parameters[p].values[i]), static_cast<std::uint16_t>(i));
  // Of each parameter of the space: the recording's of this name, and the place of its values.
  std::vector<std::optional<std::size_t>> own(parameters.size());
  std::vector<std::vector<std::optional<std::uint16_t>>> place_of(parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (std::size_t r = 0; r < recording.parameters.size(); ++r) {
      if (recording.parameters[r].name != parameters[p].name) continue;
      own[p] = r;
      for (const Value& value : recording.parameters[r].values) {
        const auto place = places[p].find(gpu::value_key(value));
        place_of[p].push_back(place == places[p].end() ? std::nullopt
                                                       : std::optional(place->second));
      }
    }
  const auto find = [&](const gpu::RecordedRun& one) -> std::optional<std::size_t> {
    Assignment assignment(parameters.size(), 0);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (!own[p] && parameters[p].values.size() == 1) continue;
      const std::optional<std::uint16_t> place =
          own[p] ? place_of[p][one.values[*own[p]]] : std::nullopt;
      if (!place) return std::nullopt;
      assignment[p] = *place;
    }
    return space_.find(assignment);
  };

  PriorRun run;
  PriorSource source{name, recording.device, recording.problem.text(), recording.toolkit, 0, 0, 0};
  // Several configs of a recording may match one config of the space: the fastest represents it.
  std::unordered_map<std::size_t, double> times;
  std::vector<std::size_t> failed;
  for (const gpu::RecordedRun& one : recording.runs) {
    const std::optional<std::size_t> index = find(one);
    if (!index) {
      ++source.left_out;
    } else if (one.ok()) {
      const double time_ms = one.time_ms();
      const auto [at, added] = times.emplace(*index, time_ms);
      if (!added) at->second = std::min(at->second, time_ms);
    } else {
      failed.push_back(*index);
    }
  }
  for (const std::size_t index : failed)
    if (!times.contains(index)) run.failed.push_back(index);
  std::sort(run.failed.begin(), run.failed.end());
  run.failed.erase(std::unique(run.failed.begin(), run.failed.end()), run.failed.end());
  run.times.assign(times.begin(), times.end());
  std::sort(run.times.begin(), run.times.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first < b.first;
  });
  run.source = name;
  run.device = recording.device;
  run.vendor = recording.vendor;
  run.shape = source.shape;
  const std::string vendor = vendor_of(device_.vendor.empty() ? device_.name : device_.vendor);
  run.same_device = !run.device.empty() && run.device == device_.name;
  run.same_vendor = !run.vendor.empty() && run.vendor == vendor;
  run.same_shape = recording.problem == problem_;
  source.configs = run.times.size();
  source.failed = run.failed.size();
  run.complete = static_cast<double>(source.configs + source.failed) >=
                 kComplete * static_cast<double>(space_.size());
  found_.emplace_back(std::move(run), std::move(source));
}

Priors PriorReader::take(std::size_t at_most) {
  // By nearness, then by how much each knows; names decide what is left, so that the order in which
  // files are given does not matter.
  std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
    const int x = nearness(a.first), y = nearness(b.first);
    if (x != y) return x > y;
    if (a.second.configs != b.second.configs) return a.second.configs > b.second.configs;
    return a.first.source < b.first.source;
  });
  Priors priors;
  for (auto& [run, source] : found_) {
    if (!run.times.empty() && priors.runs.size() < at_most) priors.runs.push_back(std::move(run));
    priors.sources.push_back(std::move(source));
  }
  found_.clear();
  return priors;
}

}  // namespace purlin::tune
