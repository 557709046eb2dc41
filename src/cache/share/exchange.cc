// SPDX-License-Identifier: Apache-2.0
#include "cache/share/exchange.h"

#include "base/text.h"
#include "base/time.h"
#include "model/document.h"

#include <algorithm>

namespace purlin::cache {
namespace {

constexpr int kExportVersion = 1;

// What was taken out of a document must be an entry that can be stored.
Status take_entry(const Json& json, Bundle* bundle) {
  PURLIN_ASSIGN(const Entry entry, entry_from_json(json));
  bundle->records.push_back(make_record(entry));
  return Status::ok();
}

Result<Bundle> from_export(const Json& document) {
  PURLIN_TRY(check_schema(document, "purlin.cache-export", kExportVersion));
  const Json& records = document["records"];
  if (!records.is_array()) return error(Code::kInvalid, "'records' is not a list");
  Bundle bundle;
  bundle.written_at = document["written_at"].as_string();
  bundle.damaged =
      static_cast<std::size_t>(std::max<std::int64_t>(document["damaged_records"].as_int(0), 0));
  bundle.tool_version = document["tool_version"].as_string();
  for (const Json& item : records.items()) {
    const Json& payload = item["payload"];
    const bool entry = item["kind"].as_string() == record_kind_name(RecordKind::kEntry);
    if (!entry && item["kind"].as_string() != record_kind_name(RecordKind::kStatus)) {
      ++bundle.newer;
    } else if (record_id(payload) != item["id"].as_string()) {
      ++bundle.refused;
    } else {
      bundle.records.push_back({entry ? RecordKind::kEntry : RecordKind::kStatus,
                                item["id"].as_string(), payload.dump()});
    }
  }
  return bundle;
}

}  // namespace

Result<Json> export_document(std::span<const CacheRecord> records) {
  Json document =
      new_document(fmt::format("purlin.cache-export/{}", kExportVersion), host_environment());
  document.set("written_at", format_rfc3339(system_clock().wall_ns()));
  Json list = Json::array();
  for (const CacheRecord& record : records) {
    PURLIN_ASSIGN(Json payload, Json::parse(record.payload));
    list.push(Json::object({{"kind", record_kind_name(record.kind)},
                            {"id", record.id},
                            {"payload", std::move(payload)}}));
  }
  document.set("records", std::move(list));
  return document;
}

Result<Bundle> read_records(std::string_view bytes, const SigningKey* key) {
  if (is_bundle(bytes)) return decode_bundle(bytes, key);
  if (key != nullptr)
    return error(Code::kInvalid, "only a bundle can be signed; key {} is asked for", key->id());
  constexpr std::string_view kNeither = "neither a bundle nor a document of `purlin cache`";
  const Result<Json> parsed = Json::parse(bytes, {.max_bytes = kMaxBundleBytes});
  if (!parsed.is_ok()) return parsed.status().with_context(kNeither);
  const Json& document = *parsed;
  const std::string& schema = document["schema"].as_string();
  if (starts_with(schema, "purlin.cache-export/")) return from_export(document);
  Bundle bundle;
  if (starts_with(schema, "purlin.cache/")) {
    for (const Json& entry : document["entries"].items()) PURLIN_TRY(take_entry(entry, &bundle));
  } else if (const Json* entry = document.find("entry"); entry != nullptr) {
    if (entry->is_null()) return error(Code::kInvalid, "it holds no entry (the lookup was a miss)");
    PURLIN_TRY(take_entry(*entry, &bundle));
  } else {
    PURLIN_TRY(take_entry(document, &bundle).with_context(kNeither));
  }
  return bundle;
}

}  // namespace purlin::cache
