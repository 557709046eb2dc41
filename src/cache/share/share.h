// SPDX-License-Identifier: Apache-2.0
// Share: a config cache that many machines read and write, in objects of a BlobStore.
//
// Records are written once, in segments named by their hash; the index lists the segments and is
// advanced by compare-and-swap, so no pusher loses another's records. A segment that cannot be read
// is named in the report, and the others are used. Thread-safety: belongs to one thread; any number
// of Shares, anywhere, may work on one target. Failure: the BlobStore's own; kUnavailable when
// others kept changing the index; kCorrupt when the index is damaged or of a newer Purlin.
#pragma once

#include "base/random.h"
#include "base/time.h"
#include "blobs/blob_store.h"
#include "cache/share/bundle.h"
#include "cache/share/share_index.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace purlin::cache {

// The format's; smaller ones are for tests.
struct ShareLimits {
  std::size_t segment_records = 4096;
  std::size_t segments = kMaxIndexSegments, retired = kMaxRetired;  // of an index
};

struct ShareOptions {
  // Where the ids of segments are remembered, so that a push need not fetch them; "" = nowhere.
  std::string memo_directory;
  const SigningKey* key = nullptr;  // signs what is written; what is read must be signed with it
  std::function<void(std::string_view doing, std::size_t done, std::size_t total)> progress;
  ShareLimits limits{};
};

struct PushReport {
  std::size_t pushed = 0, known = 0;  // records
  std::size_t segments = 0, bytes = 0;
  int conflicts = 0;                  // how often another was faster
  std::uint64_t generation = 0;       // of the index, afterwards
  std::vector<std::string> problems;  // segments that could not be used, and why
};

struct PullReport {
  std::size_t segments = 0, fetched = 0, bytes = 0;  // listed; read, and their size
  std::size_t records = 0;                           // handed over
  std::size_t newer = 0, refused = 0;
  std::uint64_t generation = 0;
  std::vector<std::string> problems;
};

struct CompactOptions {
  std::uint64_t small_records = 1000;  // segments with fewer are merged
  double grace_s = 24 * 3600;          // how long what is not listed any more is kept
  bool drop_unreadable = false;        // segments that cannot be read leave the index
  bool dry_run = false;
};
struct CompactReport {
  std::size_t before = 0, after = 0;    // segments listed
  std::size_t merged = 0, removed = 0;  // segments merged into others; objects removed
  std::size_t dropped = 0;              // unreadable ones that left the index
  std::uint64_t removed_bytes = 0;
  std::uint64_t generation = 0;
  std::vector<std::string> problems;
  Status failure;  // what kept it from going on after it had removed something
};

class Share {
 public:
  using Known = std::function<bool(const std::string& id)>;
  using Sink = std::function<Status(std::vector<CacheRecord>)>;

  // `store` and `clock` outlive it; `seed` spreads the pauses of several pushers.
  Share(blobs::BlobStore& store, Clock& clock, std::uint64_t seed, ShareOptions options = {});

  // Adds those records that the share lacks. Creates the share if it does not exist. Creates a
  // removed index again from the segments.
  Result<PushReport> push(const std::vector<CacheRecord>& records);
  // Hands every segment with a record that is not known to `sink`. kNotFound where no share is.
  Result<PullReport> pull(const Known& known, const Sink& sink);
  // Removes objects that are no longer needed and merges small segments into larger ones. When it
  // fails after it has removed some, the report says what was done, and the failure.
  Result<CompactReport> compact(const CompactOptions& options);

 private:
  struct Version {
    ShareIndex index;
    std::string tag;  // "" = there is no index yet
  };
  using Ids = std::set<std::string>;
  using Change = std::function<Result<bool>(ShareIndex&)>;  // false: nothing to change

  Result<Version> read_index();
  Result<std::string> fetch_bytes(const Segment& segment);
  Result<std::vector<Segment>> find_segments(std::vector<std::string>* problems);
  Result<std::map<std::string, std::uint64_t>> sizes();
  Result<Bundle> fetch(const Segment& segment);
  std::optional<Ids> remembered(const Segment& segment) const;
  void remember(const Segment& segment, const Bundle& bundle) const;
  Result<std::vector<Segment>> write_segments(const std::vector<CacheRecord>& records,
                                              bool indexed);
  void take_back(const std::vector<Segment>& segments);
  Status put_segments(const std::vector<std::vector<CacheRecord>>& parts, std::size_t records,
                      std::vector<Segment>* segments);
  // Applies `change` to the newest index until it is stored.
  Result<Version> advance(const Change& change, int* conflicts);
  Status probe_conditions();
  Status merge(const CompactOptions& options, Version* version, CompactReport* result);
  Status find_compactable(const ShareIndex& index, const CompactOptions& options,
                          std::vector<std::string>* merged, std::vector<std::string>* unreadable,
                          std::vector<CacheRecord>* records, CompactReport* result);
  Result<bool> replace(ShareIndex& index, const std::vector<std::string>& merged,
                       const std::vector<std::string>& unreadable,
                       const std::vector<Segment>& written, const CompactOptions& options,
                       bool* first) const;
  bool is_over(const RetiredSegment& segment, const CompactOptions& options) const;
  Status remove_unneeded(const ShareIndex& index, const CompactOptions& options,
                         std::vector<blobs::BlobInfo>* objects, CompactReport* result);
  void pause(int attempt);
  void report(std::string_view doing, std::size_t done, std::size_t total) const;

  blobs::BlobStore& store_;
  Clock& clock_;
  Random random_;
  const ShareOptions options_;
};

}  // namespace purlin::cache
