// SPDX-License-Identifier: Apache-2.0
// Raws: raw profiles and timelines, written once under their content addresses in an object store
// (blobs: a directory, S3, a Purlin server). The store keeps the pointers.
//
// The object is there before its pointer when both are made, and goes before it when both are
// removed. An object whose pointer never came is an orphan, and goes after a day. Functions; the
// caller's thread. Failure: see BlobStore and Store; kInvalid where bytes do not have their
// address.
#pragma once

#include "blobs/blob_store.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

struct RawRetention {
  std::int64_t age_ns = 14 * kDayNs;
  std::uint64_t bytes = std::uint64_t{100} << 30;  // of all together; the oldest go first
  std::int64_t exemplar_age_ns = 180 * kDayNs;     // of one for each hour and change point
};
struct RawSweep {
  std::uint64_t removed = 0, removed_bytes = 0, kept = 0, kept_bytes = 0, orphans = 0;
};

// How the pointers are reached: those of a Store, or of one that another thread has.
struct RawPointers {
  std::function<Result<std::vector<RawInfo>>(const Filter& filter)> list;  // newest first
  std::function<Status(const std::string& sha256, std::int64_t until_ns, const std::string& why)>
      keep;
  std::function<Status(const std::string& sha256)> forget;
};
RawPointers pointers_of(Store& store);  // which outlives it

// "raw/3f/3f…": the key of an object; "" where the address is none.
std::string raw_key(const std::string& sha256);
// False: it is there already.
Result<bool> put_raw(blobs::BlobStore& blobs, const std::string& sha256, std::string_view bytes);
Result<std::string> get_raw(blobs::BlobStore& blobs, const std::string& sha256,
                            std::size_t max_bytes);
// Marks one raw of each hour that has none yet; those of kind "exemplar" first.
Status choose_exemplars(const RawPointers& pointers, const Filter& filter, std::int64_t now_ns,
                        const RawRetention& retention);
// Marks the last raw of these nodes that ended before a change, and the first that began after it.
Status keep_around_change(const RawPointers& pointers, const std::set<std::string>& nodes,
                          std::int64_t at_ns, std::int64_t now_ns, const RawRetention& retention);
// Removes what is too old or too much, except raws that are kept, until their time; and orphans.
Result<RawSweep> sweep_raws(blobs::BlobStore& blobs, const RawPointers& pointers,
                            std::int64_t now_ns, const RawRetention& retention);

}  // namespace purlin::store
