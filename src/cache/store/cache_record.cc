// SPDX-License-Identifier: Apache-2.0
#include "cache/store/cache_record.h"

#include "base/hash.h"
#include "base/time.h"
#include "model/document.h"

#include <algorithm>
#include <array>
#include <utility>

namespace purlin::cache {
namespace {

constexpr int kStatusVersion = 1;
constexpr std::size_t kMaxTextBytes = 4096;
// July 2261: what comes after a status must still be a time that can be written, until 2262.
constexpr std::int64_t kLatestNs = 9'200'000'000'000'000'000;

constexpr std::array<std::pair<EntryState, std::string_view>, 4> kStates = {{
    {EntryState::kActive, "active"},
    {EntryState::kValidated, "validated"},
    {EntryState::kDemoted, "demoted"},
    {EntryState::kQuarantined, "quarantined"},
}};

// Objects by the bytes of their members' names, all the way down.
Json sorted(const Json& json) {
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& item : json.items()) list.push(sorted(item));
    return list;
  }
  if (!json.is_object()) return json;
  std::vector<const Json::Member*> members;
  for (const Json::Member& member : json.members()) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return a->key < b->key; });
  Json object = Json::object();
  for (const Json::Member* member : members) object.set(member->key, sorted(member->value));
  return object;
}

CacheRecord record_of(RecordKind kind, const Json& json) {
  return {kind, record_id(json), json.dump()};
}

}  // namespace

std::string_view record_kind_name(RecordKind kind) {
  return kind == RecordKind::kEntry ? "entry" : "status";
}

std::string_view entry_state_name(EntryState state) {
  for (const auto& [value, name] : kStates)
    if (value == state) return name;
  return "";
}

Result<EntryState> parse_entry_state(std::string_view name) {
  for (const auto& [value, known] : kStates)
    if (known == name) return value;
  return error(Code::kInvalid, "'{}' is none of: active, validated, demoted, quarantined", name);
}

std::int64_t EntryStatus::at_ns() const { return parse_rfc3339(at).value_or(0); }

EntryStatus new_status(std::string record, EntryState state, std::string reason) {
  EntryStatus status;
  status.record = std::move(record);
  status.state = state;
  status.reason = std::move(reason);
  status.by = user_name();
  status.host = host_name();
  status.at = format_rfc3339_ns(system_clock().wall_ns());
  return status;
}

Json to_json(const EntryStatus& status) {
  return Json::object({{"schema", fmt::format("purlin.entry-status/{}", kStatusVersion)},
                       {"record", status.record},
                       {"status", entry_state_name(status.state)},
                       {"reason", status.reason},
                       {"by", status.by},
                       {"host", status.host},
                       {"at", status.at},
                       {"toolkit", status.toolkit},
                       {"driver", status.driver}});
}

Result<EntryStatus> status_from_json(const Json& json) {
  PURLIN_TRY(check_schema(json, "purlin.entry-status", kStatusVersion));
  EntryStatus status;
  status.record = json["record"].as_string();
  if (Id128::parse(status.record) == Id128())
    return error(Code::kInvalid, "'record' is not the id of a record: 32 hex digits");
  PURLIN_ASSIGN(status.state, parse_entry_state(json["status"].as_string()));
  for (const auto& [name, member] :
       {std::pair{"reason", &EntryStatus::reason}, std::pair{"by", &EntryStatus::by},
        std::pair{"host", &EntryStatus::host}, std::pair{"at", &EntryStatus::at},
        std::pair{"toolkit", &EntryStatus::toolkit}, std::pair{"driver", &EntryStatus::driver}}) {
    const std::string& text = json[name].as_string();
    if (text.size() > kMaxTextBytes)
      return error(Code::kInvalid, "'{}' has more than {} bytes", name, kMaxTextBytes);
    status.*member = text;
  }
  if (!parse_rfc3339(status.at))
    return error(Code::kInvalid, "'at' is '{}', not a time such as 2026-11-20T12:43:00.5Z",
                 status.at);
  if (status.at_ns() > kLatestNs)
    return error(Code::kInvalid, "'at' is '{}', past all use; set the clock of '{}'", status.at,
                 status.host);
  return status;
}

CacheRecord make_record(const Entry& entry) {
  return record_of(RecordKind::kEntry, to_json(entry));
}
CacheRecord make_record(const EntryStatus& status) {
  return record_of(RecordKind::kStatus, to_json(status));
}

std::string record_id(const Json& payload) { return hash128_hex(sorted(payload).dump()); }

Id128 RecordIds::of(const JsonView& payload) { return hash(payload, false); }

bool RecordIds::agrees(const JsonView& payload, const Id128& id) {
  return id != Id128() && hash(payload, true) == id;
}

Id128 RecordIds::hash(const JsonView& payload, bool as_written) {
  canonical_.clear();
  members_.clear();
  if (!append(payload, as_written)) return {};
  const Hash128 hash = hash128(canonical_);
  return {hash.high, hash.low};
}

namespace {

// All of a member that is a text, a number or a word, where no space is in it; else "".
std::string_view dense(const JsonView::Member& member) {
  if (member.value.is_object() || member.value.is_array()) return {};
  const std::size_t quote = member.value.is_string() ? 1 : 0;
  const std::string_view text = member.value.text();
  const char* const begin = member.key.data() - 1;
  if (text.data() != member.key.data() + member.key.size() + 2 + quote) return {};
  return {begin, static_cast<std::size_t>(text.data() + text.size() + quote - begin)};
}

}  // namespace

// As sorted(json).dump() is, without a copy of the document.
bool RecordIds::append(const JsonView& json, bool as_written) {
  if (json.is_array() && as_written && json.is_dense() && !json.holds_objects()) {
    canonical_ += json.text();  // samples are many
  } else if (json.is_object()) {
    const std::size_t first = members_.size();
    for (const JsonView::Member member : json.members()) members_.push_back(member);
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, members_.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    const auto same_key = [](const auto& a, const auto& b) { return a.key == b.key; };
    if (std::adjacent_find(begin, members_.end(), same_key) != members_.end()) return false;
    canonical_ += '{';
    const std::size_t end = members_.size();
    for (std::size_t i = first; i < end; ++i) {
      if (i > first) canonical_ += ',';
      if (const std::string_view whole = as_written ? dense(members_[i]) : ""; !whole.empty()) {
        canonical_ += whole;
        continue;
      }
      canonical_ += '"';
      canonical_ += members_[i].key;
      canonical_ += "\":";
      const JsonView value = members_[i].value;
      if (!append(value, as_written)) return false;
    }
    members_.resize(first);
    canonical_ += '}';
  } else if (json.is_array()) {
    canonical_ += '[';
    bool comma = false;
    for (const JsonView item : json.items()) {
      if (comma) canonical_ += ',';
      comma = true;
      if (!append(item, as_written)) return false;
    }
    canonical_ += ']';
  } else if (json.is_string()) {
    canonical_ += '"';
    canonical_ += json.text();
    canonical_ += '"';
  } else if (json.is_number() && !json.is_int() && !as_written) {
    canonical_ += Json(json.as_double()).dump();
  } else {
    canonical_ += json.text();
  }
  return true;
}

Id128 Id128::parse(std::string_view hex) {
  if (hex.size() != 32) return {};
  Id128 id;
  for (std::size_t i = 0; i < 32; ++i) {
    const char c = hex[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return {};
    std::uint64_t& half = i < 16 ? id.high : id.low;
    half = half << 4 | static_cast<std::uint64_t>(digit);
  }
  return id;
}

std::string Id128::hex() const { return hex32(high, low); }

}  // namespace purlin::cache
