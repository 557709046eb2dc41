// SPDX-License-Identifier: Apache-2.0
#include "tune/model/counter_features.h"

#include "model/device/launch_counters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>

namespace purlin::tune {
namespace {

constexpr std::size_t kMinCounted = 8;  // profiled observations that a model of a counter takes
constexpr std::size_t kMax = 8;         // counters, those that vary most; each costs a model
constexpr std::size_t kLimits = 31;     // a byte has one value more
constexpr double kVaries = 1e-3;        // standard deviation of the logarithm

// Amounts are bytes, sectors, instructions and wavefronts: each takes time in every kernel. The
// names are those of CUPTI and of launch_counters.h. Shares and ratios are not amounts.
bool is_amount(const std::string& name) {
  const auto ends = [&](std::string_view end) {
    return name.size() >= end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  return ends(".sum") || name == "instructions" || name == "shared_wavefronts" ||
         (ends("_bytes") && is_hardware_counter(name));
}

}  // namespace

void CounterFeatures::add(std::span<const std::uint8_t> row,
                          const std::map<std::string, double>& counters) {
  rows_.insert(rows_.end(), row.begin(), row.end());
  std::map<std::string, float> logs;
  for (const auto& [name, value] : counters)
    if (std::isfinite(value) && value >= 0) logs[name] = static_cast<float>(std::log1p(value));
  logs_.push_back(std::move(logs));
}

std::uint8_t CounterFeatures::byte_of(const std::vector<float>& limits, float value) {
  const auto at = std::upper_bound(limits.begin(), limits.end(), value);
  return static_cast<std::uint8_t>(at - limits.begin());
}

void CounterFeatures::fit(std::size_t row_width, std::span<const std::optional<float>> log_times,
                          const FitRegressor& regressor, Random& random) {
  chosen_.clear();
  observed_.clear();
  // Of each counter, where it was read: facts of compiled kernels are of all, the hardware's of
  // some.
  std::map<std::string, std::vector<std::uint32_t>> read;
  for (std::size_t i = 0; i < logs_.size(); ++i)
    for (const auto& [name, value] : logs_[i]) read[name].push_back(static_cast<std::uint32_t>(i));
  // Those that vary most first.
  std::vector<std::pair<double, std::string>> varying;
  for (const auto& [name, profiled] : read) {
    if (profiled.size() < kMinCounted) continue;
    double sum = 0, squares = 0;
    for (const std::uint32_t i : profiled) {
      const double value = logs_[i].find(name)->second;
      sum += value;
      squares += value * value;
    }
    const double n = static_cast<double>(profiled.size());
    const double deviation = std::sqrt(std::max(squares / n - sum / n * (sum / n), 0.0));
    if (deviation > kVaries) varying.push_back({-deviation, name});
  }
  std::sort(varying.begin(), varying.end());
  varying.resize(std::min(varying.size(), kMax));
  std::vector<float> targets(logs_.size());
  for (const auto& [deviation, name] : varying) {
    const std::vector<std::uint32_t>& profiled = read[name];
    std::vector<float> sorted;
    for (const std::uint32_t i : profiled) {
      targets[i] = logs_[i].find(name)->second;
      sorted.push_back(targets[i]);
    }
    std::sort(sorted.begin(), sorted.end());
    Chosen chosen;
    chosen.name = name;
    // Between neighbours of the observed values, evenly by rank.
    std::set<float> limits;
    for (std::size_t k = 1; k <= kLimits; ++k) {
      const std::size_t at = k * sorted.size() / (kLimits + 1);
      if (at > 0 && sorted[at] > sorted[at - 1]) limits.insert((sorted[at] + sorted[at - 1]) / 2);
    }
    chosen.limits.assign(limits.begin(), limits.end());
    if (is_amount(name))
      for (const std::uint32_t i : profiled)
        if (log_times[i])
          chosen.highest_rate = std::max(chosen.highest_rate.value_or(targets[i] - *log_times[i]),
                                         targets[i] - *log_times[i]);
    chosen.model = regressor({rows_, row_width, targets, profiled}, random);
    chosen_.push_back(std::move(chosen));
  }
  observed_ = expected(rows_, row_width);
  for (std::size_t c = 0; c < chosen_.size(); ++c)
    for (const std::uint32_t i : read[chosen_[c].name])
      observed_[i * chosen_.size() + c] =
          byte_of(chosen_[c].limits, logs_[i].find(chosen_[c].name)->second);
}

std::vector<std::uint8_t> CounterFeatures::expected(std::span<const std::uint8_t> rows,
                                                    std::size_t row_width) const {
  const std::size_t count = row_width == 0 ? 0 : rows.size() / row_width;
  std::vector<std::uint8_t> bytes(count * width());
  std::vector<float> values(count);
  for (std::size_t c = 0; c < chosen_.size(); ++c) {
    chosen_[c].model->predict(rows, values);
    for (std::size_t i = 0; i < count; ++i)
      bytes[i * width() + c] = byte_of(chosen_[c].limits, values[i]);
  }
  return bytes;
}

std::vector<float> CounterFeatures::floors(std::span<const std::uint8_t> rows,
                                           std::size_t row_width) const {
  std::vector<float> floors;
  std::vector<float> amounts(row_width == 0 ? 0 : rows.size() / row_width);
  for (const Chosen& chosen : chosen_) {
    if (!chosen.highest_rate) continue;
    chosen.model->predict(rows, amounts);
    for (float& amount : amounts) amount -= *chosen.highest_rate;
    if (floors.empty()) floors = amounts;
    for (std::size_t i = 0; i < amounts.size(); ++i) floors[i] = std::max(floors[i], amounts[i]);
  }
  return floors;
}

}  // namespace purlin::tune
