// SPDX-License-Identifier: Apache-2.0
// Raws: raw profiles and timelines, written once under their content addresses in an object store
// (blobs: a directory, S3, a Purlin server). The store keeps the pointers.
//
// The object goes before its pointer when both are removed, and is there before the pointer when
// both are made: a pointer without an object is one whose node has not sent it yet. One thread.
// Failure: see BlobStore and Store; kInvalid where bytes do not have their address.
#pragma once

#include "blobs/blob_store.h"
#include "store/store.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace purlin::store {

struct RawRetention {
  std::int64_t age_ns = 14 * kDayNs;
  std::uint64_t bytes = std::uint64_t{100} << 30;  // of all together; the oldest go first
  std::int64_t exemplar_age_ns = 180 * kDayNs;     // of one for each hour
};
struct RawSweep {
  std::uint64_t removed = 0, removed_bytes = 0, kept = 0, kept_bytes = 0, orphans = 0;
};

class Raws {
 public:
  Raws(blobs::BlobStore& blobs, Store& store) : blobs_(blobs), store_(store) {}
  // False: it is there already.
  Result<bool> put(const std::string& sha256, std::string_view bytes);
  Result<std::string> get(const std::string& sha256, std::size_t max_bytes);
  // Marks one raw of each hour that has none yet; those of kind "exemplar" first.
  Status choose_exemplars(const Filter& filter, std::int64_t now_ns, const RawRetention& retention);
  // Removes what is too old or too much, except raws that Store::keep_raw named, until their time. Objects
  // without a pointer go after a day: their batch never came.
  Result<RawSweep> sweep(std::int64_t now_ns, const RawRetention& retention);

 private:
  Status remove(const RawInfo& info);
  Status sweep_orphans(std::int64_t now_ns, RawSweep& result);
  blobs::BlobStore& blobs_;
  Store& store_;
};

// "raw/3f/3f…": the key of an object; "" where the address is none.
std::string raw_key(const std::string& sha256);

}  // namespace purlin::store
