// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/pair_journal.h"

#include "model/document.h"

#include <algorithm>
#include <cmath>

namespace purlin::guard {
namespace {

constexpr std::string_view kSchema = "purlin.guard-pairs";

constexpr double kLeastTime = 1e-6, kMostSize = 1e30;

// What is written must be read again: a figure that no device has is clamped.
Json to_json(const ArmReading& reading) {
  const auto size = [](double value, double least) {
    return value >= least ? std::min(value, kMostSize) : least;  // NaN is least, too
  };
  return Json::array(
      {size(reading.time_ns, kLeastTime), size(reading.cycles, 0), size(reading.resolution_ns, 0)});
}

Result<ArmReading> reading_from_json(const Json& json) {
  const Json::Array& numbers = json.items();
  // Ratios of numbers between these limits are finite.
  const auto is_size = [](const Json& number, double least) {
    const double value = number.as_double(-1);
    return value >= least && value <= kMostSize;
  };
  if (numbers.size() != 3 || !is_size(numbers[0], kLeastTime) || !is_size(numbers[1], 0) ||
      !is_size(numbers[2], 0))
    return error(Code::kCorrupt, "a reading is [time_ns, cycles, resolution_ns], not {}",
                 json.dump());
  return ArmReading{numbers[0].as_double(), numbers[1].as_double(), numbers[2].as_double()};
}

Result<Verdict> verdict_from_name(const std::string& name) {
  for (const Verdict verdict : {Verdict::kInvalid, Verdict::kInconclusive})
    if (name == verdict_name(verdict)) return verdict;
  return error(Code::kCorrupt, "an item is given up as invalid or inconclusive, not '{}'", name);
}

}  // namespace

Result<PairJournal> PairJournal::open(const std::string& path, const Json& identity,
                                      std::size_t items) {
  PURLIN_ASSIGN(JsonLines file, JsonLines::open(path));
  PairJournal journal(std::move(file));
  const std::vector<Json> lines = journal.file_.take_lines();
  if (lines.empty()) {
    PURLIN_TRY(journal.file_.append(identity));
    return journal;
  }
  PURLIN_TRY(check_schema(lines[0], kSchema, 1).with_context(path));
  // Member by member: the message names the first difference.
  for (const Json::Member& member : identity.members()) {
    if (member.key == "environment" || member.key == "tool_version") continue;
    if (!(lines[0][member.key] == member.value))
      return error(Code::kInvalid,
                   "'{}' is the journal of another comparison (it differs in '{}'); remove it, or "
                   "name another",
                   path, member.key);
  }
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (const Status status = journal.take(lines[i], items); !status.is_ok())
      return status.with_context(fmt::format("'{}' line {}", path, i + 1));
  return journal;
}

Status PairJournal::take(const Json& line, std::size_t items) {
  for (const Json& entry : line["events"].items()) {
    Event event;
    PURLIN_ASSIGN(const std::int64_t item, entry.int_at("item"));
    if (item < 0 || static_cast<std::size_t>(item) >= items)
      return error(Code::kCorrupt, "there is no item {}", item);
    event.item = static_cast<std::size_t>(item);
    if (const Json* verdict = entry.find("gave_up")) {
      event.gave_up = true;
      PURLIN_ASSIGN(event.verdict, verdict_from_name(verdict->as_string()));
      event.reason = entry["reason"].as_string();
    } else {
      PURLIN_ASSIGN(event.pair.baseline, reading_from_json(entry["baseline"]));
      PURLIN_ASSIGN(event.pair.current, reading_from_json(entry["current"]));
    }
    events_.push_back(std::move(event));
  }
  return Status::ok();
}

Status PairJournal::append(const std::vector<Event>& events) {
  Json list = Json::array();
  for (const Event& event : events) {
    Json entry = Json::object({{"item", event.item}});
    if (event.gave_up) {
      entry.set("gave_up", verdict_name(event.verdict));
      entry.set("reason", event.reason);
    } else {
      entry.set("baseline", to_json(event.pair.baseline));
      entry.set("current", to_json(event.pair.current));
    }
    list.push(std::move(entry));
  }
  return file_.append(Json::object({{"events", std::move(list)}}));
}

}  // namespace purlin::guard
