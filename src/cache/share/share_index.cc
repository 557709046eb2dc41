// SPDX-License-Identifier: Apache-2.0
#include "cache/share/share_index.h"

#include "base/time.h"
#include "model/document.h"

#include <algorithm>
#include <set>

namespace purlin::cache {
namespace {

constexpr int kShareVersion = 1;

}  // namespace

bool is_segment_name(std::string_view name) {
  return name.size() == 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

const Segment* ShareIndex::find(std::string_view name) const {
  const auto found = std::find_if(segments.begin(), segments.end(),
                                  [&](const Segment& segment) { return segment.name == name; });
  return found == segments.end() ? nullptr : &*found;
}

std::string encode_index(const ShareIndex& index) {
  Json document = new_document(fmt::format("purlin.share/{}", kShareVersion), host_environment());
  document.set("updated_at", format_rfc3339(system_clock().wall_ns()));
  document.set("generation", index.generation);
  Json segments = Json::array(), retired = Json::array();
  for (const Segment& segment : index.segments)
    segments.push(Json::object(
        {{"name", segment.name}, {"bytes", segment.bytes}, {"records", segment.records}}));
  for (const RetiredSegment& segment : index.retired)
    retired.push(Json::object({{"name", segment.name}, {"at", segment.at}}));
  document.set("segments", std::move(segments));
  document.set("retired", std::move(retired));
  return document.dump(1) + "\n";
}

Result<ShareIndex> decode_index(std::string_view text) {
  PURLIN_ASSIGN(const Json document, Json::parse(text, {.max_bytes = kMaxIndexBytes}));
  PURLIN_TRY(check_schema(document, "purlin.share", kShareVersion));
  ShareIndex index;
  PURLIN_ASSIGN(const std::int64_t generation, document.int_at("generation"));
  if (generation < 0) return error(Code::kInvalid, "'generation' is negative");
  index.generation = static_cast<std::uint64_t>(generation);
  const Json& segments = document["segments"];
  const Json& retired = document["retired"];
  if (!segments.is_array() || segments.size() > kMaxIndexSegments)
    return error(Code::kInvalid, "'segments' is not a list of at most {}", kMaxIndexSegments);
  std::set<std::string> names;
  for (const Json& item : segments.items()) {
    const std::int64_t bytes = item["bytes"].as_int(-1), records = item["records"].as_int(-1);
    const std::string& name = item["name"].as_string();
    if (!is_segment_name(name) || bytes < 0 || records < 0 || !names.insert(name).second)
      return error(Code::kInvalid, "segment '{}' has no usable name, 'bytes' or 'records'",
                   name.substr(0, 100));
    index.segments.push_back(
        {name, static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(records)});
  }
  for (const Json& item : retired.items()) {
    const std::string& name = item["name"].as_string();
    if (!is_segment_name(name))
      return error(Code::kInvalid, "retired segment '{}' has no usable name", name.substr(0, 100));
    index.retired.push_back({name, item["at"].as_string()});
  }
  return index;
}

}  // namespace purlin::cache
