// SPDX-License-Identifier: Apache-2.0
#include "gpu/replay/replay_space.h"

#include "base/files.h"

#include <algorithm>
#include <numeric>

namespace purlin::gpu {

Result<ReplaySpace> ReplaySpace::of(Recording recording) {
  ReplaySpace space;
  space.recording_ = std::move(recording);
  for (const Parameter& parameter : space.parameters()) {
    std::unordered_map<std::string, std::uint16_t>& places = space.places_.emplace_back();
    for (std::size_t i = 0; i < parameter.values.size(); ++i)
      places.try_emplace(value_key(parameter.values[i]), static_cast<std::uint16_t>(i));
  }
  std::vector<RecordedRun>& runs = space.recording_.runs;
  std::vector<std::uint32_t>& order = space.order_;
  const auto number = [&] {
    order.resize(runs.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return runs[a].values < runs[b].values;
    });
  };
  number();
  std::vector<bool> repeated(runs.size());
  for (std::size_t i = 1; i < order.size(); ++i)
    repeated[order[i]] = runs[order[i]].values == runs[order[i - 1]].values;
  if (std::find(repeated.begin(), repeated.end(), true) == repeated.end()) return space;
  std::size_t at = 0;
  std::erase_if(runs, [&](const RecordedRun&) { return repeated[at++]; });
  number();
  return space;
}

Result<ReplaySpace> ReplaySpace::parse(std::string_view text) {
  PURLIN_ASSIGN(Recording recording, parse_recording(parts_of(text)));
  return of(std::move(recording));
}

Result<ReplaySpace> ReplaySpace::read(const std::string& path) {
  Result<Recording> recording = parse_recording(parts_of_file(path));
  if (!recording.is_ok()) return recording.status().with_context(path);
  return of(std::move(recording).value());
}

Result<const RecordedRun*> ReplaySpace::find(const Config& config) const {
  std::vector<std::uint16_t> values;
  bool known = true;  // all its values
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const Value* value = config.find(parameters()[i].name);
    if (value == nullptr)
      return error(Code::kInvalid, "the config {} lacks the recorded parameter '{}'", config.text(),
                   parameters()[i].name);
    const auto place = places_[i].find(value_key(*value));
    known &= place != places_[i].end();
    if (known) values.push_back(place->second);
  }
  for (const auto& item : config.items()) {  // no binding: clang 14 cannot capture one
    const std::string& name = item.first;
    if (std::none_of(parameters().begin(), parameters().end(),
                     [&](const Parameter& parameter) { return parameter.name == name; }))
      return error(Code::kInvalid, "the recorded space has no parameter '{}'", name);
  }
  const auto found = std::lower_bound(
      order_.begin(), order_.end(), values,
      [&](std::uint32_t run, const auto& wanted) { return runs()[run].values < wanted; });
  if (!known || found == order_.end() || runs()[*found].values != values)
    return error(Code::kInvalid, "the recorded space has no config {}", config.text());
  return &runs()[*found];
}

}  // namespace purlin::gpu
