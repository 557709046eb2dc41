// SPDX-License-Identifier: Apache-2.0
// Records: a cache is a set of them. A record is immutable and named by its contents. A record that
// arrives twice, by any way, is therefore one record, and caches merge by union.
//
// An entry record holds an Entry; a status record holds a finding about one. The set alone decides
// which entries a cache serves, never the order of arrival (docs/formats/cache.md has the rules).
// Value types. Failure: kInvalid names the error in a payload; kCorrupt reports a payload of a
// newer Purlin.
#pragma once

#include "base/json/json_view.h"
#include "cache/entry/entry.h"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace purlin::cache {

enum class RecordKind : std::uint16_t { kEntry = 1, kStatus = 2 };
std::string_view record_kind_name(RecordKind kind);  // "entry", "status"

struct CacheRecord {
  RecordKind kind = RecordKind::kEntry;
  std::string id;       // 32 hex digits over the payload's canonical form
  std::string payload;  // JSON, in the form of its first writing
};

enum class EntryState {
  kActive,       // Measured; also: put back after a demotion.
  kValidated,    // Checked again under the environment that the status names.
  kDemoted,      // Not served: slower than another entry, or replaced.
  kQuarantined,  // Not served until a user has examined it: wrong outputs, a crash.
};
std::string_view entry_state_name(EntryState state);
Result<EntryState> parse_entry_state(std::string_view name);
constexpr bool is_served(EntryState state) {
  return state == EntryState::kActive || state == EntryState::kValidated;
}

struct EntryStatus {
  std::string record;  // id of the entry record it is about
  EntryState state = EntryState::kActive;
  std::string reason;           // a sentence
  std::string by, host;         // who; where
  std::string at;               // RFC 3339 with nanoseconds, UTC
  std::string toolkit, driver;  // of the check, where there was one
  std::int64_t at_ns() const;   // 0 where `at` is no time
};
// By this user, on this host, now.
EntryStatus new_status(std::string record, EntryState state, std::string reason);

Json to_json(const EntryStatus& status);
Result<EntryStatus> status_from_json(const Json& json);

CacheRecord make_record(const Entry& entry);
CacheRecord make_record(const EntryStatus& status);
// The id of a payload: members' order and white space do not count.
std::string record_id(const Json& payload);

// 32 hex digits as a number.
struct Id128 {
  std::uint64_t high = 0, low = 0;
  static Id128 parse(std::string_view hex);  // zero where it is no id
  std::string hex() const;
  auto operator<=>(const Id128&) const = default;  // NOLINT(modernize-use-nullptr)
};
struct Id128Hash {
  std::size_t operator()(const Id128& id) const { return static_cast<std::size_t>(id.low); }
};

// The same as record_id(), for payloads in bulk. Zero where a key is repeated, which only the other
// one knows what to make of.
class RecordIds {
 public:
  Id128 of(const JsonView& payload);
  // Whether it is the id of the payload as it stands. Where reals are not written as Json writes
  // them, or a key is repeated, false says nothing.
  bool agrees(const JsonView& payload, const Id128& id);

 private:
  Id128 hash(const JsonView& payload, bool as_written);
  bool append(const JsonView& json, bool as_written);
  std::string canonical_;
  std::vector<JsonView::Member> members_;  // of the objects that are being written, innermost last
};

}  // namespace purlin::cache
