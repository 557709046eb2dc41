// SPDX-License-Identifier: Apache-2.0
#include "cache/entry/key.h"

#include "base/hash.h"
#include "base/json/json_view.h"

#include <algorithm>

namespace purlin::cache {
namespace {

// One row per field: what it is called, where it lives, and what a difference means.
struct Field {
  const char* name;
  std::string CacheKey::*member;
  bool required;   // an entry without it cannot be distinguished from another
  bool always;     // compared even where the caller states nothing
  Match on_other;  // kSame is not used here
  int weight;      // of a difference in `distance`
  const char* why;
  bool newer = false;  // entries of an older Purlin lack it
};

constexpr Field kFields[] = {
    {"op", &CacheKey::op, true, true, Match::kForeign, 1 << 12, "another operation"},
    {"kernel", &CacheKey::kernel, true, true, Match::kForeign, 1 << 11, "another kernel"},
    {"dtype", &CacheKey::dtype, false, false, Match::kForeign, 1 << 9, "other element types"},
    {"bucket", &CacheKey::bucket, false, false, Match::kForeign, 1 << 5,
     "this bucket of problem shapes was never tuned"},
    {"backend", &CacheKey::backend, true, true, Match::kForeign, 1 << 10,
     "configs are not shared between backends"},
    {"arch", &CacheKey::arch, false, true, Match::kForeign, 1 << 8,
     "an entry of another arch is never served"},
    {"device", &CacheKey::device, false, false, Match::kTransferable, 1 << 3,
     "measured on another model of the same arch"},
    {"toolkit", &CacheKey::toolkit, false, false, Match::kTransferable, 1 << 2,
     "compiled by another toolkit"},
    {"driver", &CacheKey::driver, false, false, Match::kTransferable, 1 << 1,
     "measured under another driver"},
    {"source_hash", &CacheKey::source_hash, false, false, Match::kForeign, 1 << 7,
     "the kernel's source or options have changed since"},
    {"policy", &CacheKey::policy, false, false, Match::kForeign, 1 << 6,
     "measured under another policy"},
    {"layout", &CacheKey::layout, false, false, Match::kForeign, 1 << 4,
     "measured on buffers of another layout", true},
};
static_assert(std::size(kFields) == kKeyFields);

constexpr std::size_t kMaxFieldBytes = 4096;

KeyMatch compare_field(const Field& field, const CacheKey& wanted, const CacheKey& stored) {
  const std::string &want = wanted.*field.member, &have = stored.*field.member;
  if (field.newer && !want.empty() && have.empty()) return {Match::kSame, kNotRecorded};
  if ((field.always || !want.empty()) && want != have) return {field.on_other, field.weight};
  return {};
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Of a Json or a JsonView.
template <class J>
Result<CacheKey> key_from(const J& json) {
  if (!json.is_object()) return error(Code::kInvalid, "the key is not an object");
  CacheKey key;
  for (const Field& field : kFields) {
    const auto value = json.find(field.name);
    if (!value || (value->is_string() && value->as_string().empty())) {
      if (field.required) return error(Code::kInvalid, "the key lacks '{}'", field.name);
      continue;
    }
    if (!value->is_string() || value->as_string().size() > kMaxFieldBytes)
      return error(Code::kInvalid, "the key's '{}' is not a text of at most {} bytes", field.name,
                   kMaxFieldBytes);
    key.*field.member = value->as_string();
    if (has_control(key.*field.member))
      return error(Code::kInvalid, "the key's '{}' has a control character", field.name);
  }
  return key;
}

}  // namespace

const std::array<KeyFieldRule, kKeyFields>& key_field_rules() {
  static const std::array<KeyFieldRule, kKeyFields> rules = [] {
    std::array<KeyFieldRule, kKeyFields> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = {kFields[i].name,     kFields[i].always, i == kToolkitField || i == kDriverField,
                kFields[i].on_other, kFields[i].weight, kFields[i].newer};
    return all;
  }();
  return rules;
}

std::vector<std::pair<std::string, std::string>> CacheKey::fields() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Field& field : kFields) all.emplace_back(field.name, this->*field.member);
  return all;
}

std::string CacheKey::id() const {
  FieldHasher hasher;
  for (const Field& field : kFields)
    if (!(this->*field.member).empty()) hasher.add(field.name).add(this->*field.member);
  return hasher.hex();
}

Json to_json(const CacheKey& key) {
  Json json = Json::object();
  for (const Field& field : kFields) json.set(field.name, key.*field.member);
  return json;
}

Result<CacheKey> key_from_json(const Json& json) { return key_from(json); }
Result<CacheKey> key_from_json(const JsonView& json) { return key_from(json); }

Result<CacheKey> make_key(const KernelSpec& spec, const ProblemShape& problem,
                          const DeviceInfo& device, bool cold_cache) {
  CacheKey key;
  key.op = spec.op;
  key.kernel = spec.name;
  key.dtype = spec.dtype_text();
  PURLIN_ASSIGN(key.bucket, bucket_of(spec, problem));
  key.backend = device.backend;
  key.arch = device.arch;
  key.device = device.name;
  key.toolkit = device.toolkit;
  key.driver = device.driver;
  // A replayed space has no source. Its device represents the device of the recording.
  const std::string language = spec.sources.count(device.backend) > 0 ? device.backend : "";
  key.source_hash = spec.source_hash(language);
  key.policy = cold_cache ? "cold" : "warm";
  key.layout = spec.layout_text();
  return key;
}

Comparison compare(const CacheKey& wanted, const CacheKey& stored) {
  Comparison result;
  for (const Field& field : kFields) {
    const KeyMatch of_field = compare_field(field, wanted, stored);
    result.match = std::max(result.match, of_field.match);
    result.distance += of_field.distance;
    result.fields.push_back(
        {field.name, wanted.*field.member, stored.*field.member, of_field.match});
  }
  return result;
}

KeyMatch compare_but_bucket(const CacheKey& wanted, const CacheKey& stored) {
  KeyMatch result;
  for (std::size_t i = 0; i < kKeyFields; ++i) {
    if (i == kBucketField) continue;
    const KeyMatch of_field = compare_field(kFields[i], wanted, stored);
    result.match = std::max(result.match, of_field.match);
    result.distance += of_field.distance;
  }
  return result;
}

std::string or_none(std::string_view text) {
  return text.empty() ? "none" : fmt::format("'{}'", text);
}

std::vector<std::string> explain(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < comparison.fields.size(); ++i) {
    const FieldComparison& line = comparison.fields[i];
    if (line.wanted.empty() && line.stored.empty())
      lines.push_back(fmt::format("{}: none, as in the entry", line.field));
    else if (line.wanted.empty() && line.match == Match::kSame)
      lines.push_back(fmt::format("{}: not stated, '{}' stored", line.field, line.stored));
    else if (line.match == Match::kSame && line.wanted != line.stored)
      lines.push_back(fmt::format(
          "{}: '{}' wanted, not recorded in the entry, which an older Purlin or another "
          "tool made: taken for the same",
          line.field, line.wanted));
    else if (line.match == Match::kSame)
      lines.push_back(fmt::format("{}: '{}'", line.field, line.wanted));
    else
      lines.push_back(fmt::format("{}: {} wanted, {} stored: {}", line.field, or_none(line.wanted),
                                  or_none(line.stored), kFields[i].why));
  }
  return lines;
}

}  // namespace purlin::cache
