// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/tuning_hours.h"

#include "base/files.h"
#include "base/json/json.h"

namespace purlin::cli {
namespace {

constexpr std::int64_t kUtcDayNs = 86'400'000'000'000;
constexpr std::string_view kTuningHoursSchema = "purlin.tuning-hours/1";

}  // namespace

Result<TuningHours> TuningHours::open(const std::string& path, Clock& clock) {
  TuningHours hours(path, clock);
  if (!file_exists(path)) return hours;
  PURLIN_ASSIGN(const std::string text, read_file(path, 1 << 20));
  const Result<Json> json = Json::parse(text);
  if (!json.is_ok() || (*json)["schema"].as_string() != kTuningHoursSchema)
    return error(Code::kCorrupt, "'{}' is no {} document; remove it", path, kTuningHoursSchema);
  hours.day_ = (*json)["day"].as_int();
  for (const Json::Member& member : (*json)["seconds"].members())
    hours.seconds_[member.key] = member.value.as_double();
  return hours;
}

void TuningHours::turn_day() {
  const std::int64_t today = clock_->wall_ns() / kUtcDayNs;
  if (today != day_) seconds_.clear();
  day_ = today;
}

double TuningHours::spent_s(const std::string& device) {
  turn_day();
  const auto found = seconds_.find(device);
  return found == seconds_.end() ? 0 : found->second;
}

Status TuningHours::add(const std::string& device, double seconds) {
  turn_day();
  seconds_[device] += seconds;
  Json json = Json::object({{"schema", kTuningHoursSchema}, {"day", day_}});
  Json list = Json::object();
  for (const auto& [name, spent] : seconds_) list.set(name, spent);
  json.set("seconds", std::move(list));
  return write_atomic(path_, json.dump(1) + "\n");
}

}  // namespace purlin::cli
