// SPDX-License-Identifier: Apache-2.0
#include "fleet/cache_api.h"

#include "base/files.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/time.h"
#include "base/version.h"
#include "blobs/directory_blobs.h"
#include "cache/share/bundle.h"
#include "cache/share/share_index.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

constexpr std::string_view kIndexKey = "index.json", kSegmentFolder = "segments/",
                           kSegmentSuffix = ".bundle", kProbePrefix = "probe-",
                           kTemporary = ".tmp.";
constexpr std::size_t kMaxObject = std::size_t{64} << 20, kMaxProbe = 64, kPage = 10'000;
constexpr std::size_t kMaxCaches = 10'000;

Json document(std::string_view schema) {
  Json result = Json::object({{"schema", schema}});
  result.set("tool_version", version());
  return result;
}

HttpAnswer json_answer(const Json& json, int status = 200) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = json.dump() + "\n";
  return answer;
}

enum class Kind { kIndex, kSegment, kProbe, kLeftOver, kOther };

// "segments/9f….bundle" -> "9f…"; "" for other keys.
std::string_view segment_name(std::string_view key) {
  if (!starts_with(key, kSegmentFolder) || !ends_with(key, kSegmentSuffix)) return {};
  key.remove_prefix(kSegmentFolder.size());
  if (key.size() < kSegmentSuffix.size()) return {};
  key.remove_suffix(kSegmentSuffix.size());
  return cache::is_segment_name(key) ? key : std::string_view{};
}

Kind kind_of(std::string_view key) {
  if (key == kIndexKey) return Kind::kIndex;
  if (!segment_name(key).empty()) return Kind::kSegment;
  if (starts_with(key, kProbePrefix) && key.find('/') == std::string_view::npos)
    return Kind::kProbe;
  // What a write that was killed left beside the place.
  if (const std::size_t end = key.find(kTemporary);
      end != std::string_view::npos && !segment_name(key.substr(0, end)).empty())
    return Kind::kLeftOver;
  return Kind::kOther;
}

// What nobody could use is not kept. An index of a newer Purlin is: newer clients use it.
Status check_object(Kind kind, std::string_view key, const std::string& bytes) {
  switch (kind) {
    case Kind::kIndex: {
      if (bytes.size() > cache::kMaxIndexBytes)
        return error(Code::kInvalid, "an index may have {} bytes at most", cache::kMaxIndexBytes);
      const Status status = cache::decode_index(bytes).status();
      return status.code() == Code::kCorrupt ? Status::ok() : status;
    }
    case Kind::kSegment:
      if (!cache::is_bundle(bytes)) return error(Code::kInvalid, "this is no bundle of records");
      if (sha256_hex(bytes) != segment_name(key))
        return error(Code::kInvalid, "the segment's bytes do not have the hash that is its name");
      return Status::ok();
    case Kind::kProbe:
      if (bytes.size() > kMaxProbe)
        return error(Code::kInvalid, "a probe may have {} bytes at most", kMaxProbe);
      return Status::ok();
    case Kind::kLeftOver:
    case Kind::kOther:
      break;
  }
  return error(Code::kInvalid, "a shared cache has index.json, segments/NAME.bundle and probe-HEX");
}

// "\"abc\"" -> "abc"; "" for what is no strong tag.
std::string unquoted(std::string_view tag) {
  if (tag.size() < 2 || tag.front() != '"' || tag.back() != '"') return "";
  return std::string(tag.substr(1, tag.size() - 2));
}

}  // namespace

HttpAnswer error_answer(int status, std::string_view message) {
  Json json = document("purlin.error/1");
  json.set("error", Json::object({{"status", status}, {"message", message}}));
  return json_answer(json, status);
}

HttpAnswer error_answer(const Status& status) {
  const Code code = status.code();
  return error_answer(code == Code::kNotFound  ? 404
                      : code == Code::kInvalid ? 400
                      : code == Code::kIo      ? 507  // a full disk, mostly; the text says
                                               : 500,
                      status.message());
}

CacheApi::CacheApi(CacheApi&& other) noexcept
    : options_(std::move(other.options_)), stored_(other.stored_.load()) {}

std::string CacheApi::folder(const std::string& cache) const {
  return join_path(options_.directory, cache);
}

Result<CacheApi> CacheApi::open(CacheApiOptions options) {
  PURLIN_TRY(make_directories(options.directory));
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(options.directory));
  CacheApi api(std::move(options));
  std::uint64_t stored = 0;
  for (const std::string& name : names) {
    if (!is_cache_name(name)) continue;
    PURLIN_ASSIGN(const auto objects,
                  blobs::make_directory_blobs(api.folder(name))->list(std::string(kSegmentFolder)));
    for (const blobs::BlobInfo& object : objects) stored += object.size;
  }
  api.stored_.store(stored);
  return api;
}

HttpAnswer CacheApi::answer(const Route& route, const HttpHead& head, const std::string& body) {
  switch (route.action) {
    case Action::kListCaches:
      return list_caches();
    case Action::kDescribeCache:
      return describe(route.cache);
    case Action::kListObjects:
      return list(route);
    case Action::kGetObject:
      return get(route);
    case Action::kPutObject:
      return put(route, head, body);
    case Action::kDeleteObject:
      return remove(route);
    case Action::kHealth:
    case Action::kMetrics:
      break;
  }
  return error_answer(404, "there is no such path here");
}

HttpAnswer CacheApi::list_caches() const {
  const Result<std::vector<std::string>> names = list_directory(options_.directory);
  if (!names.is_ok()) return error_answer(names.status());
  Json json = document("purlin.caches/1"), caches = Json::array();
  for (const std::string& name : *names)
    if (is_cache_name(name) && file_exists(join_path(folder(name), std::string(kIndexKey))))
      caches.push(name);
  json.set("caches", std::move(caches));
  json.set("stored_bytes", stored_.load());
  json.set("quota_bytes", options_.quota_bytes);
  return json_answer(json);
}

HttpAnswer CacheApi::describe(const std::string& cache) const {
  const auto blob = blobs::make_directory_blobs(folder(cache))
                        ->get(std::string(kIndexKey), cache::kMaxIndexBytes);
  if (!blob.is_ok() && blob.status().code() == Code::kNotFound)
    return error_answer(404, fmt::format("there is no cache '{}' here", cache));
  if (!blob.is_ok()) return error_answer(blob.status());
  const Result<cache::ShareIndex> index = cache::decode_index(blob->bytes);
  if (!index.is_ok()) return error_answer(500, index.status().message());
  std::uint64_t records = 0, bytes = 0;
  for (const cache::Segment& segment : index->segments) {
    records += segment.records;
    bytes += segment.bytes;
  }
  Json json = document("purlin.shared-cache/1");
  json.set("name", cache);
  json.set("generation", index->generation);
  json.set("segments", index->segments.size());
  json.set("records", records);
  json.set("bytes", bytes);
  return json_answer(json);
}

HttpAnswer CacheApi::list(const Route& route) const {
  const auto objects = blobs::make_directory_blobs(folder(route.cache))->list(route.folder);
  if (!objects.is_ok()) return error_answer(objects.status());
  Json json = document("purlin.objects/1"), listed = Json::array();
  auto object = std::upper_bound(
      objects->begin(), objects->end(), route.after,
      [](const std::string& key, const blobs::BlobInfo& info) { return key < info.key; });
  for (; object != objects->end() && listed.size() < kPage; ++object)
    listed.push(Json::object(
        {{"key", object->key}, {"bytes", object->size}, {"modified_ns", object->modified_ns}}));
  json.set("objects", std::move(listed));
  json.set("more", object != objects->end());
  return json_answer(json);
}

HttpAnswer CacheApi::get(const Route& route) const {
  Result<blobs::Blob> blob =
      blobs::make_directory_blobs(folder(route.cache))->get(route.key, kMaxObject);
  if (!blob.is_ok()) {
    if (blob.status().code() == Code::kNotFound)
      return error_answer(404,
                          fmt::format("there is no object '{}' in '{}'", route.key, route.cache));
    return error_answer(blob.status());
  }
  HttpAnswer answer;
  answer.content_type = "application/octet-stream";
  answer.headers.emplace_back("ETag", "\"" + blob->tag + "\"");
  answer.body = std::move(blob->bytes);
  return answer;
}

HttpAnswer CacheApi::put(const Route& route, const HttpHead& head, const std::string& body) {
  const std::string_view absent = head.header("if-none-match"), match = head.header("if-match");
  if ((absent == "*") == !match.empty() || (absent.empty() && unquoted(match).empty()))
    return error_answer(428, "a PUT says 'If-None-Match: *' or 'If-Match: \"TAG\"'");
  const Kind kind = kind_of(route.key);
  if (const Status status = check_object(kind, route.key, body); !status.is_ok())
    return error_answer(400, status.message());
  if (kind == Kind::kSegment && absent.empty())
    return error_answer(400, "a segment is written once: 'If-None-Match: *'");
  if (!is_directory(folder(route.cache))) {
    const auto names = list_directory(options_.directory);
    if (names.is_ok() && names->size() >= kMaxCaches)
      return error_answer(507, fmt::format("this server keeps {} caches at most", kMaxCaches));
  }
  // Taken before it is written, so that writers at once cannot go beyond it together.
  const std::uint64_t size = kind == Kind::kSegment ? body.size() : 0;
  if (stored_.fetch_add(size) + size > options_.quota_bytes && options_.quota_bytes > 0 &&
      size > 0) {
    stored_.fetch_sub(size);
    return error_answer(
        507,
        fmt::format("the server's quota of {} is used up; merge segments with `purlin cache gc "
                    "--share URL`, or have the quota raised",
                    format_bytes(static_cast<double>(options_.quota_bytes))));
  }
  const auto store = blobs::make_directory_blobs(folder(route.cache));
  const Result<blobs::Put> put = absent == "*"
                                     ? store->put_if_absent(route.key, body)
                                     : store->put_if_match(route.key, body, unquoted(match));
  if (!put.is_ok() || *put == blobs::Put::kConflict) stored_.fetch_sub(size);
  if (!put.is_ok()) return error_answer(put.status());
  if (*put == blobs::Put::kConflict)
    return error_answer(412, absent == "*" ? "the object is there already"
                                           : "the object is no longer the one of that tag");
  Json json = document("purlin.object/1");
  json.set("key", route.key);
  HttpAnswer answer = json_answer(json, 201);
  answer.headers.emplace_back("ETag", "\"" + sha256_hex(body) + "\"");
  return answer;
}

HttpAnswer CacheApi::remove(const Route& route) {
  const Kind kind = kind_of(route.key);
  const bool counted = kind == Kind::kSegment || kind == Kind::kLeftOver;
  if (!counted && kind != Kind::kProbe)
    return error_answer(403,
                        "only segments and probes can be removed; a whole cache is removed on "
                        "the server, where its folder is");
  const std::lock_guard lock(removals_);
  const std::string path = join_path(folder(route.cache), route.key);
  const std::uint64_t size = counted ? file_size(path).value_or(0) : 0;
  if (const Status status = blobs::make_directory_blobs(folder(route.cache))->remove(route.key);
      !status.is_ok())
    return error_answer(status);
  stored_.fetch_sub(size);
  Json json = document("purlin.object/1");
  json.set("key", route.key);
  return json_answer(json);
}

}  // namespace purlin::fleet
