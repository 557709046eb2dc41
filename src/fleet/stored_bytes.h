// SPDX-License-Identifier: Apache-2.0
// StoredBytes: the total size of the objects in a folder of caches, updated while they change. The
// objects are counted again at intervals, because other programs may change them, too.
//
// The code that changes an object calls begin() before and end() after, and both read its size. So
// a folder can be counted while it changes, without a delay for other requests. The sizes of
// objects that changed meanwhile come from here, all others from the count. [MT] every method, but
// one folder is counted at a time. The lock is held while one size is read, never for a listing.
// The total is never below 0: objects that other programs stored may not have been counted.
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
  // Its failure leaves all sizes unchanged.
  Status count(const std::string& folder,
               const std::function<Result<std::vector<blobs::BlobInfo>>()>& list);
  // Those that have something, as far as is known.
  std::vector<std::string> folders() const;
  // With what is about to be.
  std::uint64_t get() const { return total_.load(); }

 private:
  struct Change {
    std::uint64_t size = 0;  // included in the folder's size
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
