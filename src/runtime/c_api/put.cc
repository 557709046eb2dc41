// SPDX-License-Identifier: Apache-2.0
// purlin_cache_put: winners that other tuners found, from any language.
#include "base/time.h"
#include "base/version.h"
#include "cache/store/store.h"
#include "runtime/c_api/support.h"

#include <cstring>
#include <purlin/purlin.h>

namespace {

using purlin::Code;
using purlin::Json;
using purlin::Result;
using purlin::Status;
using purlin::runtime::fail;
using purlin::runtime::guarded;

constexpr std::size_t kMaxEntryBytes = std::size_t{1} << 20;

// What the caller need not know: the bucket follows from the rules, the provenance is ours.
Result<purlin::cache::Entry> read(const char* text) {
  const std::size_t length = ::strnlen(text, kMaxEntryBytes + 1);
  if (length > kMaxEntryBytes)
    return purlin::error(Code::kInvalid, "the entry has more than {} bytes", kMaxEntryBytes);
  PURLIN_ASSIGN(Json json, Json::parse({text, length}));
  if (!json.is_object() || json.find("key") == nullptr || !json["key"].is_object())
    return purlin::error(Code::kInvalid, "the entry is not an object with a 'key'");
  PURLIN_ASSIGN(const purlin::ProblemShape problem, purlin::shape_from_json(json["problem"]));
  purlin::cache::BucketRules rules;
  for (const auto& [dimension, extent] : problem.items()) {
    const Json* rule = json["bucket_rules"].find(dimension);
    rules.emplace_back(dimension, purlin::cache::BucketRule());
    if (rule != nullptr && !rule->is_null()) {
      PURLIN_ASSIGN(rules.back().second, purlin::cache::BucketRule::parse(rule->as_string()));
    }
  }
  PURLIN_ASSIGN(const std::string bucket, purlin::cache::bucket_of(rules, problem));
  Json key = json["key"];
  key.set("bucket", bucket);
  json.set("key", std::move(key));
  if (json.find("schema") == nullptr) json.set("schema", "purlin.entry/1");
  PURLIN_ASSIGN(purlin::cache::Entry entry, purlin::cache::entry_from_json(json));
  entry.tool_version = purlin::version();
  entry.host = purlin::cache::host_name();
  entry.user = purlin::cache::user_name();
  entry.recorded_at = purlin::format_rfc3339(purlin::system_clock().wall_ns());
  return entry;
}

}  // namespace

purlin_status purlin_cache_put(purlin_cache* cache, const char* entry_json) {
  if (cache == nullptr || entry_json == nullptr)
    return fail(PURLIN_INVALID, "purlin_cache_put: an argument is NULL");
  return guarded([&]() -> purlin_status {
    const Result<purlin::cache::Entry> entry = read(entry_json);
    if (!entry.is_ok()) return fail(entry.status().with_context("purlin_cache_put"));
    const Status put = cache->session->put(*entry);
    return put.is_ok() ? PURLIN_OK : fail(put);
  });
}
