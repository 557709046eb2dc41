// SPDX-License-Identifier: Apache-2.0
#include "gpu/replay/replay_space.h"

#include "base/files.h"

#include <algorithm>

namespace purlin::gpu {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

}  // namespace

Result<ReplaySpace> ReplaySpace::of(Recording recording) {
  ReplaySpace space;
  space.recording_ = std::move(recording);
  std::vector<RecordedRun>& runs = space.recording_.runs;
  std::size_t kept = 0;
  for (RecordedRun& run : runs) {
    PURLIN_ASSIGN(std::string key, space.key_of(run.config));
    if (!space.by_key_.emplace(std::move(key), kept).second) continue;
    if (&runs[kept] != &run) runs[kept] = std::move(run);
    ++kept;
  }
  runs.resize(kept);
  return space;
}

Result<ReplaySpace> ReplaySpace::parse(std::string_view text) {
  PURLIN_ASSIGN(Recording recording, parse_recording(text));
  return of(std::move(recording));
}

Result<ReplaySpace> ReplaySpace::read(const std::string& path) {
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxBytes));
  auto space = parse(text);
  if (!space.is_ok()) return space.status().with_context(path);
  return space;
}

Result<std::string> ReplaySpace::key_of(const Config& config) const {
  std::string key;
  for (const Parameter& parameter : parameters()) {
    const Value* value = config.find(parameter.name);
    if (value == nullptr)
      return error(Code::kInvalid, "the config {} lacks the recorded parameter '{}'", config.text(),
                   parameter.name);
    key += value_key(*value);
    key += '\x1f';  // not in any value: ("ab", "c") is not ("a", "bc")
  }
  return key;
}

Result<const RecordedRun*> ReplaySpace::find(const Config& config) const {
  PURLIN_ASSIGN(const std::string key, key_of(config));
  for (const auto& item : config.items()) {  // no binding: clang 14 cannot capture one
    const std::string& name = item.first;
    if (std::none_of(parameters().begin(), parameters().end(),
                     [&](const Parameter& parameter) { return parameter.name == name; }))
      return error(Code::kInvalid, "the recorded space has no parameter '{}'", name);
  }
  const auto found = by_key_.find(key);
  if (found == by_key_.end())
    return error(Code::kInvalid, "the recorded space has no config {}", config.text());
  return &runs()[found->second];
}

}  // namespace purlin::gpu
