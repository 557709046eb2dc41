// SPDX-License-Identifier: Apache-2.0
// StoredBytes: what the objects of a folder of caches have, kept while they change and counted anew
// now and then, as others may change them, too.
//
// Whoever changes an object says so before and after, and its size is looked at both times; so a
// folder can be counted while it changes, without holding up anyone: what changed meanwhile is
// taken from here, all else from the count. [MT] every method, but one folder is counted at a time.
// The lock is held for a look at one size at most, never for a listing. Never below 0: what others
// stored may not have been counted.
#pragma once

#include "blobs/blob_store.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::fleet {

class StoredBytes {
 public:
  // The size of what is there under a key; 0: nothing is.
  using SizeOf = std::function<std::uint64_t(const std::string& key)>;
  explicit StoredBytes(SizeOf size_of) : size_of_(std::move(size_of)) {}

  // An object is about to change, by which `adds` more bytes may be there for a while: false, and
  // nothing begun, where that is beyond `quota` (0: no limit).
  bool begin(const std::string& key, std::uint64_t adds, std::uint64_t quota);
  // It has changed, or has not. With what begin() had.
  void end(const std::string& key, std::uint64_t adds);

  // `list`: the objects of "team/segments/", without those in folders below. It may change some.
  // Its failure leaves all as it was.
  Status count(const std::string& folder,
               const std::function<Result<std::vector<blobs::BlobInfo>>()>& list);
  // Those that have something, as far as is known.
  std::vector<std::string> folders() const;
  // With what is about to be.
  std::uint64_t get() const { return total_.load(); }

 private:
  struct Change {
    std::uint64_t size = 0;  // as it is in the folder's
    int under_way = 0;
  };
  void set(const std::string& folder, std::uint64_t bytes);

  const SizeOf size_of_;
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> folders_;
  std::map<std::string, Change> changing_;
  std::uint64_t stored_ = 0, reserved_ = 0;       // `stored_`: of the folders
  std::string counted_;                           // the folder that is; "": none is
  std::map<std::string, std::uint64_t> changed_;  // in it, since it is; the sizes after
  std::atomic<std::uint64_t> total_{0};
};

}  // namespace purlin::fleet
