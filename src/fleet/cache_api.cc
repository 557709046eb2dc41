// SPDX-License-Identifier: Apache-2.0
#include "fleet/cache_api.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/time.h"
#include "blobs/directory_blobs.h"
#include "cache/share/binary_share.h"
#include "cache/share/bundle.h"
#include "cache/share/share_index.h"
#include "fleet/answers.h"
#include "fleet/metrics.h"
#include "fleet/winners.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <system_error>

namespace purlin::fleet {
namespace {

constexpr std::string_view kIndexKey = "index.json", kSegmentFolder = "segments/",
                           kSegmentSuffix = ".bundle", kBinaryFolder = "binaries/",
                           kProbePrefix = "probe-", kTemporary = ".tmp.";
constexpr std::size_t kMaxObject = std::size_t{64} << 20, kMaxProbe = 64, kPage = 10'000;
constexpr std::size_t kMaxCaches = 10'000;
constexpr std::int64_t kMostWinners = 10'000;
constexpr std::int64_t kSecondNs = 1'000'000'000, kLeftOverNs = 3600 * kSecondNs,
                       kTendAgainNs = 10 * kSecondNs, kTendAgainFactor = 10;

enum class Kind { kIndex, kSegment, kBinary, kProbe, kOther };

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
  if (cache::is_binary_object(key)) return Kind::kBinary;
  if (starts_with(key, kProbePrefix) && key.find('/') == std::string_view::npos)
    return Kind::kProbe;
  return Kind::kOther;
}

Status no_object() {
  return error(
      Code::kInvalid,
      "a shared cache has index.json, segments/NAME.bundle, binaries/ID-KEY.bin and probe-HEX");
}

// Unusable objects are not kept. An index of a newer Purlin is kept: newer clients use it.
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
    case Kind::kBinary:
      return cache::check_binary_object(bytes);
    case Kind::kProbe:
      if (bytes.empty())  // no quota would hold it, nor the next one
        return error(Code::kInvalid, "a probe has a byte at least");
      if (bytes.size() > kMaxProbe)
        return error(Code::kInvalid, "a probe may have {} bytes at most", kMaxProbe);
      return Status::ok();
    case Kind::kOther:
      break;
  }
  return no_object();
}

// Whether a write failed because room was missing. A Status has only the system's text for this.
bool is_full(const Status& status) {
  const auto says = [&status](int code) {
    return ends_with(status.message(), std::generic_category().message(code));
  };
  return says(ENOSPC) || says(EDQUOT) || says(EFBIG);
}

// Reports that a change has ended, after success and after failure.
class Changing {
 public:
  Changing(StoredBytes& stored, std::string object, std::uint64_t bytes)
      : stored_(stored), object_(std::move(object)), bytes_(bytes) {}
  ~Changing() { stored_.end(object_, bytes_); }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  StoredBytes& stored_;
  const std::string object_;
  const std::uint64_t bytes_;
};

// "\"abc\"" -> "abc"; "" for what is no strong tag.
std::string unquoted(std::string_view tag) {
  if (tag.size() < 2 || tag.front() != '"' || tag.back() != '"') return "";
  return std::string(tag.substr(1, tag.size() - 2));
}

}  // namespace

CacheApi::CacheApi(CacheApiOptions options, Clock& clock)
    : options_(std::move(options)), clock_(clock), stored_([this](const std::string& object) {
        return file_size(join_path(options_.directory, object)).value_or(0);
      }) {}

std::string CacheApi::folder(const std::string& cache) const {
  return join_path(options_.directory, cache);
}

// A client does not need to know the place of the server's folders on this machine.
HttpAnswer CacheApi::failure(const Status& status, int io_status) const {
  std::string message = status.message();
  const std::string place = options_.directory + "/";
  for (std::size_t at = message.find(place); at != std::string::npos; at = message.find(place))
    message.erase(at, place.size());
  if (status.code() == Code::kIo) return error_answer(io_status, message);
  return error_answer(Status(status.code(), message));
}

Result<std::unique_ptr<CacheApi>> CacheApi::open(CacheApiOptions options, Clock& clock) {
  PURLIN_TRY(make_directories_durably(options.directory));
  std::unique_ptr<CacheApi> api(new CacheApi(std::move(options), clock));
  PURLIN_TRY(api->tend());
  return api;
}

Status CacheApi::tend() {
  const std::lock_guard alone(tending_);
  return tend_alone();
}

Status CacheApi::tend_alone() {
  const std::int64_t begin = clock_.monotonic_ns();
  tended_ns_.store(begin);
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(options_.directory));
  // Also those that were there: a cache may have been removed.
  const std::vector<std::string> known = stored_.folders();
  std::set<std::string> folders(known.begin(), known.end());
  for (const std::string& name : names) {
    if (!is_cache_name(name)) continue;
    folders.insert(name + "/");
    folders.insert(name + "/" + std::string(kSegmentFolder));
    folders.insert(name + "/" + std::string(kBinaryFolder));
  }
  for (const std::string& folder : folders) {
    if (stopping_.load()) break;
    PURLIN_TRY(stored_.count(folder, [&] { return tend_folder(folder); }));
  }
  const std::int64_t end = clock_.monotonic_ns();
  tended_ns_.store(end);
  tend_again_ns_.store(kTendAgainFactor * (end - begin));
  return Status::ok();
}

Result<std::vector<blobs::BlobInfo>> CacheApi::tend_folder(const std::string& folder) {
  PURLIN_ASSIGN(std::vector<blobs::BlobInfo> objects,
                blobs::make_directory_blobs(options_.directory)->list(folder));
  for (const blobs::BlobInfo& object : objects) {
    if (clock_.wall_ns() - object.modified_ns <= kLeftOverNs) continue;
    const std::string_view key = std::string_view(object.key).substr(object.key.find('/') + 1);
    if (base_name(key).find(kTemporary) == std::string::npos && kind_of(key) != Kind::kProbe)
      continue;
    stored_.begin(object.key, 0, 0);
    const Changing changing(stored_, object.key, 0);
    // One that stays is counted.
    static_cast<void>(remove_file(join_path(options_.directory, object.key)).is_ok());
  }
  return objects;
}

// If the quota is used up, the stored bytes are first counted again: a folder may have been
// removed. Most requests skip this count, because it runs only after a minimum interval.
bool CacheApi::begin(const std::string& object, std::uint64_t bytes, std::uint64_t quota) {
  if (stored_.begin(object, bytes, quota)) return true;
  std::int64_t last = tended_ns_.load();
  const std::int64_t now = clock_.monotonic_ns();
  if (now - last < std::max(kTendAgainNs, tend_again_ns_.load()) ||
      !tended_ns_.compare_exchange_strong(last, now))
    return false;
  const std::unique_lock alone(tending_, std::try_to_lock);  // nor does one wait for another
  return alone.owns_lock() && tend_alone().is_ok() && stored_.begin(object, bytes, quota);
}

std::mutex& CacheApi::index_lock(const std::string& cache) {
  return index_locks_[std::hash<std::string>()(cache) % index_locks_.size()];
}

// Whether an index needs that segment; one that cannot be read may need any, one of a newer Purlin
// is that Purlin's to judge. With the index' lock.
Result<bool> CacheApi::lists(const std::string& cache, std::string_view segment) {
  struct stat info {};
  const std::string path = join_path(folder(cache), std::string(kIndexKey));
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT) return false;
  Listed listed{cache,
                {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                 info.st_ctim.tv_nsec, info.st_size, static_cast<std::int64_t>(info.st_ino)},
                {}};
  const auto has = [segment](const Listed& in) {
    return std::binary_search(in.segments.begin(), in.segments.end(), segment);
  };
  {
    const std::lock_guard lock(listed_mutex_);
    if (listed_.cache == cache && listed_.stamp == listed.stamp) return has(listed_);
  }
  const auto blob = blobs::make_directory_blobs(folder(cache))
                        ->get(std::string(kIndexKey), cache::kMaxIndexBytes);
  if (!blob.is_ok() && blob.status().code() == Code::kNotFound) return false;
  if (!blob.is_ok()) return blob.status();
  Result<cache::ShareIndex> index = cache::decode_index(blob->bytes);
  if (!index.is_ok()) return index.status().code() != Code::kCorrupt;
  for (cache::Segment& one : index->segments) listed.segments.push_back(std::move(one.name));
  std::sort(listed.segments.begin(), listed.segments.end());
  const bool found = has(listed);
  const std::lock_guard lock(listed_mutex_);
  listed_ = std::move(listed);
  return found;
}

Result<std::uint64_t> CacheApi::max_bytes(std::string_view key) {
  switch (kind_of(key)) {
    case Kind::kIndex:
      return std::uint64_t{cache::kMaxIndexBytes};
    case Kind::kSegment:
      return std::uint64_t{kMaxObject};
    case Kind::kBinary:
      return std::uint64_t{cache::kMaxSharedBinary};
    case Kind::kProbe:
      return std::uint64_t{kMaxProbe};
    case Kind::kOther:
      break;
  }
  return no_object();
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
  }
  return error_answer(404, "there is no such path here");
}

HttpAnswer CacheApi::list_caches() const {
  const Result<std::vector<std::string>> names = list_directory(options_.directory);
  if (!names.is_ok()) return failure(names.status(), 500);
  Json json = answer_document("purlin.caches/1"), caches = Json::array();
  for (const std::string& name : *names)
    if (is_cache_name(name) && file_exists(join_path(folder(name), std::string(kIndexKey))))
      caches.push(name);
  json.set("caches", std::move(caches));
  json.set("stored_bytes", stored_.get());
  json.set("quota_bytes", options_.quota_bytes);
  return json_answer(json);
}

HttpAnswer CacheApi::describe(const std::string& cache) const {
  const auto blob = blobs::make_directory_blobs(folder(cache))
                        ->get(std::string(kIndexKey), cache::kMaxIndexBytes);
  if (!blob.is_ok() && blob.status().code() == Code::kNotFound)
    return error_answer(404, fmt::format("there is no cache '{}' here", cache));
  if (!blob.is_ok()) return failure(blob.status(), 500);
  const Result<cache::ShareIndex> index = cache::decode_index(blob->bytes);
  if (!index.is_ok()) return error_answer(500, index.status().message());
  std::uint64_t records = 0, bytes = 0;
  for (const cache::Segment& segment : index->segments) {
    records += segment.records;
    bytes += segment.bytes;
  }
  Json json = answer_document("purlin.shared-cache/1");
  json.set("name", cache);
  json.set("generation", index->generation);
  json.set("segments", index->segments.size());
  json.set("records", records);
  json.set("bytes", bytes);
  return json_answer(json);
}

HttpAnswer CacheApi::list(const Route& route) const {
  const auto objects = blobs::make_directory_blobs(folder(route.cache))->list(route.folder);
  if (!objects.is_ok()) return failure(objects.status(), 500);
  Json json = answer_document("purlin.objects/1"), listed = Json::array();
  // By this clock are the times: who asks may have another.
  json.set("now_ns", clock_.wall_ns());
  auto object = std::upper_bound(
      objects->begin(), objects->end(), route.after,
      [](const std::string& key, const blobs::BlobInfo& info) { return key < info.key; });
  for (; object != objects->end() && listed.size() < kPage; ++object)
    if (kind_of(object->key) != Kind::kOther)  // what is being written, say
      listed.push(Json::object(
          {{"key", object->key}, {"bytes", object->size}, {"modified_ns", object->modified_ns}}));
  json.set("objects", std::move(listed));
  json.set("more", object != objects->end());
  return json_answer(json);
}

HttpAnswer CacheApi::get(const Route& route) const {
  Result<blobs::Blob> blob = error(Code::kNotFound, "");
  if (kind_of(route.key) != Kind::kOther)
    blob = blobs::make_directory_blobs(folder(route.cache))->get(route.key, kMaxObject);
  if (!blob.is_ok()) {
    if (blob.status().code() == Code::kNotFound)
      return error_answer(404,
                          fmt::format("there is no object '{}' in '{}'", route.key, route.cache));
    return failure(blob.status(), 500);
  }
  HttpAnswer answer;
  answer.content_type = "application/octet-stream";
  answer.headers.emplace_back("ETag", "\"" + blob->tag + "\"");
  answer.body = std::move(blob->bytes);
  return answer;
}

HttpAnswer CacheApi::put(const Route& route, const HttpHead& head, const std::string& body) {
  const std::string_view absent = head.header("if-none-match"), match = head.header("if-match");
  const bool fresh = absent == "*" && match.empty();
  if (!fresh && (!absent.empty() || unquoted(match).empty()))
    return error_answer(428, "a PUT says 'If-None-Match: *' or 'If-Match: \"TAG\"'");
  const Kind kind = kind_of(route.key);
  if (const Status status = check_object(kind, route.key, body); !status.is_ok())
    return error_answer(400, status.message());
  if ((kind == Kind::kSegment || kind == Kind::kBinary) && !fresh)
    return error_answer(400, "a segment or a binary is written once: 'If-None-Match: *'");
  const bool new_cache = !is_directory(folder(route.cache));
  if (new_cache) {
    const auto names = list_directory(options_.directory);
    if (names.is_ok() && names->size() >= kMaxCaches)
      return error_answer(507, fmt::format("this server keeps {} caches at most", kMaxCaches));
  }
  // A client repeats a request when the first answer was lost. It gets 412 here, even if the quota
  // is used up.
  if (const std::string path = join_path(folder(route.cache), route.key);
      fresh && file_exists(path)) {
    // Whose name need not be safe on the disk yet; the answer says that it is.
    if (const Status status = sync_folder(parent_path(path)); !status.is_ok())
      return failure(status, 500);
    return error_answer(412, "the object is there already");
  }
  // The index of a cache is counted, not refused: without it nothing could be merged or removed.
  const std::string object = route.cache + "/" + route.key;
  if (!begin(object, body.size(), kind == Kind::kIndex && !new_cache ? 0 : options_.quota_bytes))
    return error_answer(
        507,
        fmt::format("the server's quota of {} is used up; `purlin cache gc --share URL` removes "
                    "unneeded objects, else have it raised",
                    format_bytes(static_cast<double>(options_.quota_bytes))));
  const Changing changing(stored_, object, body.size());
  if (kind != Kind::kIndex) return store(route, fresh ? "" : unquoted(match), body);
  const std::lock_guard lock(index_lock(route.cache));
  HttpAnswer answer = store(route, fresh ? "" : unquoted(match), body);
  const std::lock_guard listed(listed_mutex_);
  if (listed_.cache == route.cache) listed_ = {};
  return answer;
}

HttpAnswer CacheApi::store(const Route& route, const std::string& match, const std::string& body) {
  const auto store = blobs::make_directory_blobs(folder(route.cache));
  const Result<blobs::Put> put = match.empty() ? store->put_if_absent(route.key, body)
                                               : store->put_if_match(route.key, body, match);
  if (!put.is_ok())
    return put.status().code() == Code::kNotFound
               ? error_answer(Status(Code::kUnavailable, "the cache was removed meanwhile"))
               : failure(put.status(), is_full(put.status()) ? 507 : 500);
  if (*put != blobs::Put::kStored)
    return error_answer(412, match.empty() ? "the object is there already"
                                           : "the object is no longer the one of that tag");
  Json json = answer_document("purlin.object/1");
  json.set("key", route.key);
  HttpAnswer answer = json_answer(json, 201);
  answer.headers.emplace_back("ETag", "\"" + sha256_hex(body) + "\"");
  return answer;
}

HttpAnswer CacheApi::remove(const Route& route) {
  const Kind kind = kind_of(route.key);
  if (kind == Kind::kIndex || kind == Kind::kOther)
    return error_answer(
        403,
        "only segments, binaries and probes can be removed; a whole cache is removed on "
        "the server, where its folder is");
  std::unique_lock<std::mutex> lock;
  if (kind == Kind::kSegment) {
    lock = std::unique_lock(index_lock(route.cache));
    const Result<bool> listed = lists(route.cache, segment_name(route.key));
    if (!listed.is_ok()) return failure(listed.status(), 500);
    if (*listed) return error_answer(409, "the index lists that segment");
  }
  const std::string object = route.cache + "/" + route.key;
  stored_.begin(object, 0, 0);
  const Changing changing(stored_, object, 0);
  if (const Status status = blobs::make_directory_blobs(folder(route.cache))->remove(route.key);
      !status.is_ok())
    return failure(status, 500);
  Json json = answer_document("purlin.object/1");
  json.set("key", route.key);
  return json_answer(json);
}

std::string cache_metrics(const CacheApi& api) {
  return RequestMetrics::single("purlin_cache_stored_bytes", "gauge",
                                "Bytes of all objects, of all caches.",
                                static_cast<double>(api.stored_bytes())) +
         RequestMetrics::single("purlin_cache_quota_bytes", "gauge",
                                "What they may have; 0: no limit.",
                                static_cast<double>(api.options().quota_bytes));
}

// A question that pulls: one of the few that are answered at once.
Endpoint winners_endpoint(const std::string& directory, Clock& clock) {
  const auto winners = std::make_shared<Winners>(directory, clock);
  return {.method = "GET",
          .path = "/v1/caches/{cache}/winners",
          .scope = Scope::kRead,
          .kind = "winners",
          .summary = "What a shared cache serves for a kernel",
          .answer = "purlin.cache/1",
          .parameters = {{"kernel", "string", "name of its spec; all without it"},
                         {"limit", "integer", "100 by default"}},
          .handle =
              [winners](const Request& request) {
                const std::string& name = value_of(request.path, "cache");
                const std::string& asked = value_of(request.query, "limit");
                const std::int64_t limit = parse_int(asked.empty() ? "100" : asked).value_or(0);
                if (!is_cache_name(name) || limit < 1 || limit > kMostWinners)
                  return error_answer(400, "give the name of a cache, and a limit of 1 to 10000");
                Result<Json> entries = winners->of(name, value_of(request.query, "kernel"),
                                                   static_cast<std::size_t>(limit));
                if (!entries.is_ok()) return error_answer(entries.status());
                Json json = answer_document("purlin.cache/1");
                json.set("cache", name);
                json.set("entries", std::move(*entries));
                return json_answer(json);
              },
          .is_query = true};
}

std::vector<Endpoint> cache_endpoints(CacheApi& api) {
  const auto handle = [&api](const Request& request) {
    const Result<Route> route = parse_route(request.head.method, request.head.target);
    return route.is_ok() ? api.answer(*route, request.head, request.body)
                         : error_answer(route.status());
  };
  const auto limit = [](const HttpHead& head) -> Result<std::uint64_t> {
    PURLIN_ASSIGN(const Route route, parse_route(head.method, head.target));
    return route.action == Action::kPutObject ? CacheApi::max_bytes(route.key) : std::uint64_t{0};
  };
  constexpr std::string_view kObject = "/v1/caches/{cache}/objects/{key...}";
  return {
      winners_endpoint(api.options().directory, api.clock()),
      {"GET",
       "/v1/caches",
       Scope::kRead,
       "list_caches",
       "The shared caches",
       "purlin.caches/1",
       {},
       0,
       handle,
       limit},
      {"GET",
       "/v1/caches/{cache}",
       Scope::kRead,
       "describe_cache",
       "One shared cache",
       "purlin.shared-cache/1",
       {},
       0,
       handle,
       limit},
      {"GET",
       "/v1/caches/{cache}/objects",
       Scope::kRead,
       "list_objects",
       "The objects of a cache",
       "purlin.objects/1",
       {{"folder", "string", "segments/"}, {"after", "string", "the key before the first one"}},
       0,
       handle,
       limit},
      {"GET",
       kObject,
       Scope::kRead,
       "get_object",
       "The bytes of an object",
       "",
       {},
       0,
       handle,
       limit},
      {"PUT",
       kObject,
       Scope::kWrite,
       "put_object",
       "Stores an object; with If-None-Match: * or If-Match",
       "purlin.object/1",
       {},
       kMaxObject,
       handle,
       limit},
      {"DELETE",
       kObject,
       Scope::kWrite,
       "delete_object",
       "Removes an object",
       "purlin.object/1",
       {},
       0,
       handle,
       limit},
  };
}

}  // namespace purlin::fleet
