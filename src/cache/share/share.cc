// SPDX-License-Identifier: Apache-2.0
#include "cache/share/share.h"

#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::cache {
namespace {

constexpr char kIndexKey[] = "index.json";
constexpr char kSegmentFolder[] = "segments/";
constexpr std::string_view kSegmentSuffix = ".bundle";
// Small enough to be fetched in one request and to be read in memory.
constexpr std::size_t kSegmentBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxSegmentBytes = std::size_t{64} << 20;
constexpr int kAttempts = 100;
constexpr double kFirstPauseS = 0.01, kLongestPauseS = 1;
constexpr int kStaleIndexReads = 3;

std::vector<std::vector<CacheRecord>> in_segments(const std::vector<CacheRecord>& records,
                                                  std::size_t most) {
  std::vector<std::vector<CacheRecord>> parts;
  std::size_t bytes = 0;
  for (const CacheRecord& record : records) {
    if (parts.empty() || parts.back().size() == most ||
        bytes + record.payload.size() > kSegmentBytes) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().push_back(record);
    bytes += record.payload.size();
  }
  return parts;
}

// Whether the segment may be there and well, and only the way to it is not.
bool is_passing(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kTimeout;
}

}  // namespace

Share::Share(blobs::BlobStore& store, Clock& clock, std::uint64_t seed, ShareOptions options)
    : store_(store), clock_(clock), random_(seed), options_(std::move(options)) {}

void Share::report(std::string_view doing, std::size_t done, std::size_t total) const {
  if (options_.progress) options_.progress(doing, done, total);
}

Result<Share::Version> Share::read_index() {
  Result<blobs::Blob> blob = store_.get(kIndexKey, kMaxIndexBytes);
  if (!blob.is_ok() && blob.status().code() == Code::kNotFound) return Version{};
  if (!blob.is_ok()) return blob.status();
  Result<ShareIndex> index = decode_index(blob->bytes);
  if (!index.is_ok()) {
    const bool newer = index.status().code() == Code::kCorrupt;
    return Status(Code::kCorrupt,
                  fmt::format("'{}/{}' cannot be used: {}{}", store_.name(), kIndexKey,
                              index.status().message(),
                              newer ? ""
                                    : "; remove it and push: a push without an index lists the "
                                      "segments that are there"));
  }
  return Version{std::move(index).value(), std::move(blob->tag)};
}

Result<std::string> Share::fetch_bytes(const Segment& segment) {
  PURLIN_ASSIGN(blobs::Blob blob, store_.get(segment.key(), kMaxSegmentBytes));
  if (sha256_hex(blob.bytes) != segment.name)
    return error(Code::kCorrupt, "its bytes do not have the hash that is its name");
  return std::move(blob.bytes);
}

Result<Bundle> Share::fetch(const Segment& segment) {
  PURLIN_ASSIGN(const std::string bytes, fetch_bytes(segment));
  PURLIN_ASSIGN(Bundle bundle, decode_bundle(bytes, options_.key));
  remember(segment, bundle);
  return bundle;
}

std::optional<Share::Ids> Share::remembered(const Segment& segment) const {
  if (options_.memo_directory.empty()) return std::nullopt;
  const Result<std::string> text =
      read_file(join_path(options_.memo_directory, segment.name + ".ids"), kMaxSegmentBytes);
  if (!text.is_ok()) return std::nullopt;
  Ids ids;
  for (std::string& line : split(*text, '\n'))
    if (line.size() == 32) ids.insert(std::move(line));
  if (ids.size() != segment.records) return std::nullopt;
  return ids;
}

// Saves a fetch later; after a failure, that fetch is made.
void Share::remember(const Segment& segment, const Bundle& bundle) const {
  if (options_.memo_directory.empty() || bundle.records.size() != segment.records) return;
  std::string text;
  for (const CacheRecord& record : bundle.records) text += record.id + "\n";
  if (!make_directories(options_.memo_directory).is_ok()) return;
  static_cast<void>(
      write_atomic(join_path(options_.memo_directory, segment.name + ".ids"), text).is_ok());
}

// All or, as far as it can be helped, none. `indexed`: the index that the caller began with exists.
Result<std::vector<Segment>> Share::write_segments(const std::vector<CacheRecord>& records,
                                                   bool indexed) {
  const std::vector<std::vector<CacheRecord>> parts =
      in_segments(records, options_.limits.segment_records);
  std::vector<Segment> segments;
  if (const Status status = put_segments(parts, records.size(), &segments); !status.is_ok()) {
    if (indexed) take_back(segments);
    return status;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Bundle bundle;
    bundle.records = parts[i];
    remember(segments[i], bundle);
  }
  return segments;
}

// A failed push leaves segments that only take space until the grace time is over. This matters
// most if the push failed for lack of space. But other pushers may list these segments: a pusher
// that finds no index lists every segment. So the segments stay if the share had no index before
// the push, if it has none now, or if the index lists one of them. The put of the last segment
// failed, but the object may exist.
void Share::take_back(const std::vector<Segment>& segments) {
  const Result<Version> now = read_index();
  if (!now.is_ok() || now->tag.empty()) return;
  for (const Segment& segment : segments)
    if (now->index.find(segment.name) != nullptr) return;
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment)
    if (!store_.remove(segment->key()).is_ok()) return;
}

// `segments` has each that may have been written, also after a failure.
Status Share::put_segments(const std::vector<std::vector<CacheRecord>>& parts, std::size_t records,
                           std::vector<Segment>* segments) {
  std::size_t done = 0;
  for (const std::vector<CacheRecord>& part : parts) {
    report("writing records", done, records);
    PURLIN_ASSIGN(const std::string bytes, encode_bundle(part, options_.key));
    segments->push_back({sha256_hex(bytes), bytes.size(), part.size()});
    // A conflict can only be this very object: its name is the hash of its bytes.
    PURLIN_TRY(store_.put_if_absent(segments->back().key(), bytes).status());
    done += part.size();
  }
  return Status::ok();
}

// A service that ignores conditions would lose updates in silence; that is found out once, before
// there is anything to lose.
Status Share::probe_conditions() {
  const std::string key =
      fmt::format("probe-{:016x}", random_.next() ^ static_cast<std::uint64_t>(clock_.wall_ns()));
  PURLIN_TRY(store_.put_if_absent(key, "a").status());
  PURLIN_ASSIGN(const blobs::Put again, store_.put_if_absent(key, "b"));
  PURLIN_ASSIGN(const blobs::Put stale,
                store_.put_if_match(key, "c", "\"00000000000000000000000000000000\""));
  PURLIN_TRY(store_.remove(key));
  if (again == blobs::Put::kConflict && stale == blobs::Put::kConflict) return Status::ok();
  return error(Code::kUnavailable,
               "'{}' ignores conditional writes (If-None-Match, If-Match), so that writers would "
               "lose each other's records; use a service that has them, or a directory",
               store_.name());
}

void Share::pause(int attempt) {
  const double longest =
      std::min(kLongestPauseS, kFirstPauseS * static_cast<double>(1 << std::min(attempt, 10)));
  clock_.sleep_ns(static_cast<std::int64_t>(random_.uniform(0, longest) * 1e9));
}

Result<Share::Version> Share::advance(const Change& change, int* conflicts) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    PURLIN_ASSIGN(Version version, read_index());
    PURLIN_ASSIGN(const bool changed, change(version.index));
    if (!changed) return version;
    if (version.tag.empty()) PURLIN_TRY(probe_conditions());
    ++version.index.generation;
    const std::string text = encode_index(version.index);
    // No reader would accept such an index.
    if (text.size() > kMaxIndexBytes || version.index.segments.size() > options_.limits.segments)
      return error(Code::kInvalid,
                   "the index of '{}' grows too large; merge its segments with: "
                   "purlin cache gc --share {}",
                   store_.name(), store_.name());
    PURLIN_ASSIGN(const blobs::Put put, version.tag.empty()
                                            ? store_.put_if_absent(kIndexKey, text)
                                            : store_.put_if_match(kIndexKey, text, version.tag));
    if (put == blobs::Put::kStored) return version;
    ++*conflicts;
    pause(attempt);
  }
  return error(Code::kUnavailable, "others changed the index of '{}' {} times in a row; try again",
               store_.name(), kAttempts);
}

// The segments that are there and whole, where no index says so: it was damaged and removed.
Result<std::vector<Segment>> Share::find_segments(std::vector<std::string>* problems) {
  PURLIN_ASSIGN(const std::vector<blobs::BlobInfo> objects, store_.list(kSegmentFolder));
  std::vector<Segment> found;
  for (const blobs::BlobInfo& object : objects) {
    const std::string_view folder = kSegmentFolder, key = object.key;
    if (key.size() < folder.size() + kSegmentSuffix.size()) continue;
    Segment segment{
        std::string(key.substr(folder.size(), key.size() - folder.size() - kSegmentSuffix.size())),
        object.size, 0};
    if (!is_segment_name(segment.name) || segment.key() != key) continue;
    report("listing segments", found.size(), objects.size());
    const Result<std::string> bytes = fetch_bytes(segment);
    if (bytes.is_ok()) {
      // Of a newer Purlin, its records cannot be counted, and it is whole all the same.
      if (const auto bundle = decode_bundle(*bytes, nullptr); bundle.is_ok())
        segment.records = bundle->records.size();
      found.push_back(std::move(segment));
    } else if (is_passing(bytes.status())) {
      return bytes.status();
    } else {
      problems->push_back(segment.key() + ": " + bytes.status().message());
    }
  }
  return found;
}

// Sizes of the segments that are there. What is remembered of a segment does not show its loss.
Result<std::map<std::string, std::uint64_t>> Share::sizes() {
  PURLIN_ASSIGN(const std::vector<blobs::BlobInfo> objects, store_.list(kSegmentFolder));
  std::map<std::string, std::uint64_t> sizes;
  for (const blobs::BlobInfo& object : objects) sizes[object.key] = object.size;
  return sizes;
}

Result<PushReport> Share::push(const std::vector<CacheRecord>& records) {
  PushReport result;
  PURLIN_ASSIGN(Version version, read_index());
  std::vector<Segment> found;
  if (version.tag.empty()) {
    PURLIN_ASSIGN(found, find_segments(&result.problems));
    version.index.segments = found;
  }
  PURLIN_ASSIGN(const auto there_now, sizes());
  Ids there;
  for (std::size_t i = 0; i < version.index.segments.size(); ++i) {
    const Segment& segment = version.index.segments[i];
    const auto object = there_now.find(segment.key());
    const bool whole = object != there_now.end() && object->second == segment.bytes;
    std::optional<Ids> ids = whole ? remembered(segment) : std::nullopt;
    if (!ids) {
      report("reading what is shared", i, version.index.segments.size());
      Result<Bundle> bundle = fetch(segment);
      if (bundle.is_ok()) {
        ids.emplace();
        for (const CacheRecord& record : bundle->records) ids->insert(record.id);
      } else if (is_passing(bundle.status())) {
        return bundle.status();
      } else {
        // A machine that has its records pushes them again.
        result.problems.push_back(segment.key() + ": " + bundle.status().message());
        continue;
      }
    }
    there.merge(*ids);
  }
  std::vector<CacheRecord> missing;
  for (const CacheRecord& record : records)
    if (there.insert(record.id).second)
      missing.push_back(record);
    else
      ++result.known;
  result.generation = version.index.generation;
  if (missing.empty() && found.empty()) return result;

  PURLIN_ASSIGN(const std::vector<Segment> written, write_segments(missing, !version.tag.empty()));
  const auto list = [&](ShareIndex& index) -> Result<bool> {
    bool changed = false;
    for (const auto* segments : {&std::as_const(found), &written})
      for (const Segment& segment : *segments)
        if (index.find(segment.name) == nullptr) {
          index.segments.push_back(segment);
          changed = true;
        }
    return changed;  // false: an attempt whose answer was lost had arrived
  };
  PURLIN_ASSIGN(const Version stored, advance(list, &result.conflicts));
  result.generation = stored.index.generation;
  result.pushed = missing.size();
  result.segments = written.size();
  for (const Segment& segment : written) result.bytes += segment.bytes;
  return result;
}

Result<PullReport> Share::pull(const Known& known, const Sink& sink) {
  PullReport result;
  Ids done;  // segments
  for (int read = 1;; ++read) {
    PURLIN_ASSIGN(const Version version, read_index());
    if (version.tag.empty())
      return error(Code::kNotFound,
                   "there is no shared cache at '{}'; `purlin cache push` makes one",
                   store_.name());
    result.generation = version.index.generation;
    result.segments = version.index.segments.size();
    bool stale = false;
    for (std::size_t i = 0; i < version.index.segments.size(); ++i) {
      const Segment& segment = version.index.segments[i];
      if (done.count(segment.name) > 0) continue;
      const std::optional<Ids> ids = remembered(segment);
      if (ids && std::all_of(ids->begin(), ids->end(), known)) continue;
      report("fetching segments", i, version.index.segments.size());
      Result<Bundle> bundle = fetch(segment);
      if (!bundle.is_ok()) {
        if (is_passing(bundle.status())) return bundle.status();
        // Merged into another one after the index was read: a newer index says into which.
        stale = bundle.status().code() == Code::kNotFound && read < kStaleIndexReads;
        if (stale) break;
        result.problems.push_back(segment.key() + ": " + bundle.status().message());
        done.insert(segment.name);
        continue;
      }
      done.insert(segment.name);
      ++result.fetched;
      result.bytes += segment.bytes;
      result.records += bundle->records.size();
      result.newer += bundle->newer;
      result.refused += bundle->refused;
      PURLIN_TRY(sink(std::move(bundle->records)));
    }
    if (!stale) return result;
  }
}

Result<CompactReport> Share::compact(const CompactOptions& options) {
  CompactReport result;
  // Before the index is read: what is written from now on cannot be taken for left over.
  PURLIN_ASSIGN(std::vector<blobs::BlobInfo> objects, store_.list(kSegmentFolder));
  PURLIN_ASSIGN(Version version, read_index());
  if (version.tag.empty())
    return error(Code::kNotFound, "there is no shared cache at '{}'", store_.name());
  result.before = result.after = version.index.segments.size();
  result.generation = version.index.generation;
  // Unneeded objects first: under a full quota, their removal frees the space for merging.
  Status status = remove_unneeded(version.index, options, &objects, &result);
  if (status.is_ok()) status = merge(options, &version, &result).with_context("merging");
  if (status.is_ok()) status = remove_unneeded(version.index, options, &objects, &result);
  if (!status.is_ok() && result.removed == 0) return status;
  result.failure = std::move(status);
  return result;
}

Status Share::merge(const CompactOptions& options, Version* version, CompactReport* result) {
  std::vector<std::string> merged, unreadable;
  std::vector<CacheRecord> records;
  PURLIN_TRY(find_compactable(version->index, options, &merged, &unreadable, &records, result));
  if (!options.dry_run) {
    PURLIN_ASSIGN(const std::vector<Segment> written, write_segments(records, true));
    bool first = true;  // no other gc was faster
    int conflicts = 0;
    PURLIN_ASSIGN(*version, advance(
                                [&](ShareIndex& index) -> Result<bool> {
                                  return replace(index, merged, unreadable, written, options,
                                                 &first);
                                },
                                &conflicts));
    if (!first) merged.clear();
    result->after = version->index.segments.size();
    result->generation = version->index.generation;
  }
  result->merged = merged.size();
  result->dropped = unreadable.size();
  return Status::ok();
}

// The segments to merge with all that they hold, and those that cannot be read.
Status Share::find_compactable(const ShareIndex& index, const CompactOptions& options,
                               std::vector<std::string>* merged,
                               std::vector<std::string>* unreadable,
                               std::vector<CacheRecord>* records, CompactReport* result) {
  Ids ids;
  const auto waiting = static_cast<std::size_t>(
      std::count_if(index.retired.begin(), index.retired.end(),
                    [&](const RetiredSegment& segment) { return !is_over(segment, options); }));
  for (std::size_t i = 0; i < index.segments.size(); ++i) {
    const Segment& segment = index.segments[i];
    // The index has room for so many that wait to be removed; a later gc merges the rest.
    const bool small = segment.records < options.small_records &&
                       waiting + merged->size() < options_.limits.retired;
    if (!small && !options.drop_unreadable) continue;
    report("reading segments", i, index.segments.size());
    const Result<std::string> bytes = fetch_bytes(segment);
    if (!bytes.is_ok()) {
      if (is_passing(bytes.status())) return bytes.status();
      result->problems.push_back(segment.key() + ": " + bytes.status().message());
      if (options.drop_unreadable) unreadable->push_back(segment.name);
      continue;
    }
    Result<Bundle> bundle = decode_bundle(*bytes, options_.key);
    if (!bundle.is_ok()) {  // of a newer Purlin, or another key's: not ours to drop
      result->problems.push_back(segment.key() + ": " + bundle.status().message());
      continue;
    }
    // Merging keeps only the records that this Purlin understands, so a segment with others stays
    // unchanged. Without the key, a signed segment stays too: its signature would be lost.
    const bool whole = bundle->newer == 0 && bundle->refused == 0;
    if (!small || !whole || (options_.key == nullptr && !bundle->signed_by.empty())) continue;
    merged->push_back(segment.name);
    for (CacheRecord& record : bundle->records)
      if (ids.insert(record.id).second) records->push_back(std::move(record));
  }
  if (merged->size() < 2) {
    merged->clear();
    records->clear();
  }
  return Status::ok();
}

Result<bool> Share::replace(ShareIndex& index, const std::vector<std::string>& merged,
                            const std::vector<std::string>& unreadable,
                            const std::vector<Segment>& written, const CompactOptions& options,
                            bool* first) const {
  const auto listed = [&](const std::string& name) { return index.find(name) != nullptr; };
  const std::int64_t now = clock_.wall_ns();
  bool changed = false;
  // When another compaction was faster, what was written here is left over.
  const bool all_there = std::all_of(merged.begin(), merged.end(), listed);
  // An attempt whose answer was lost may have been stored.
  *first = all_there || (!written.empty() && listed(written[0].name));
  for (const auto* names : {&merged, &unreadable}) {
    if (names == &merged && !all_there) continue;
    for (const std::string& name : *names)
      if (std::erase_if(index.segments, [&](const Segment& s) { return s.name == name; }) > 0) {
        index.retired.push_back({name, format_rfc3339(now)});
        changed = true;
      }
  }
  if (all_there)
    for (const Segment& segment : written)
      if (!listed(segment.name)) {
        index.segments.push_back(segment);
        changed = true;
      }
  const std::size_t over = std::erase_if(
      index.retired, [&](const RetiredSegment& segment) { return is_over(segment, options); });
  return changed || over > 0;
}

bool Share::is_over(const RetiredSegment& segment, const CompactOptions& options) const {
  const std::int64_t at = parse_rfc3339(segment.at).value_or(0);
  return static_cast<double>(clock_.wall_ns() - at) / 1e9 >= options.grace_s;
}

// Objects that the index does not list and has not retired a short time ago: merged long ago, or
// left by a push that was killed. They leave `objects`. A name that left the list does not return
// to it, unless a user removed the index manually. So an object that a slightly older index does
// not need is not needed now. A name that is still retired when its object is gone harms no reader.
Status Share::remove_unneeded(const ShareIndex& index, const CompactOptions& options,
                              std::vector<blobs::BlobInfo>* objects, CompactReport* result) {
  Ids needed;
  for (const Segment& segment : index.segments) needed.insert(segment.key());
  for (const RetiredSegment& segment : index.retired)
    if (!is_over(segment, options)) needed.insert(Segment{segment.name}.key());
  const std::int64_t now = clock_.wall_ns();
  std::vector<blobs::BlobInfo> kept;
  for (blobs::BlobInfo& object : *objects) {
    if (needed.count(object.key) > 0 || object.key.find(kSegmentSuffix) == std::string::npos ||
        object.modified_ns == 0 ||
        static_cast<double>(now - object.modified_ns) / 1e9 < options.grace_s) {
      kept.push_back(std::move(object));
      continue;
    }
    report("removing unneeded objects", result->removed, objects->size());
    if (!options.dry_run) PURLIN_TRY(store_.remove(object.key));
    ++result->removed;
    result->removed_bytes += object.size;
  }
  *objects = std::move(kept);
  return Status::ok();
}

}  // namespace purlin::cache
