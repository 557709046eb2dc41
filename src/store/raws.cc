// SPDX-License-Identifier: Apache-2.0
#include "store/raws.h"

#include "base/sha256.h"

#include <map>

namespace purlin::store {
namespace {

constexpr int kRawFolders = 256;
// A change is explained by raws that are near it.
constexpr std::int64_t kNearChangeNs = 2 * kDayNs;

bool is_address(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Status no_address(const std::string& sha256) {
  return error(Code::kInvalid, "'{}' is no SHA-256 in lower-case hexadecimal", sha256);
}

Status sweep_orphans(blobs::BlobStore& blobs, const RawPointers& pointers, std::int64_t now_ns,
                     RawSweep& result) {
  PURLIN_ASSIGN(const std::vector<RawInfo> raws, pointers.list({}));
  std::set<std::string> known;
  for (const RawInfo& info : raws) known.insert(raw_key(info.pointer.sha256));
  for (int folder = 0; folder < kRawFolders; ++folder) {
    PURLIN_ASSIGN(const std::vector<blobs::BlobInfo> objects,
                  blobs.list(fmt::format("raw/{:02x}/", folder)));
    for (const blobs::BlobInfo& object : objects) {
      const bool is_old = object.modified_ns > 0 && object.modified_ns < now_ns - kDayNs;
      if (!is_old || known.count(object.key) > 0) continue;
      PURLIN_TRY(blobs.remove(object.key));
      ++result.orphans;
    }
  }
  return Status::ok();
}

}  // namespace

RawPointers pointers_of(Store& store) {
  return {[&store](const Filter& filter) { return store.raws(filter); },
          [&store](const std::string& sha256, std::int64_t until_ns, const std::string& why) {
            return store.keep_raw(sha256, until_ns, why);
          },
          [&store](const std::string& sha256) { return store.forget_raw(sha256); }};
}

std::string raw_key(const std::string& sha256) {
  return is_address(sha256) ? "raw/" + sha256.substr(0, 2) + "/" + sha256 : "";
}

Result<bool> put_raw(blobs::BlobStore& blobs, const std::string& sha256, std::string_view bytes) {
  if (!is_address(sha256)) return no_address(sha256);
  if (const std::string actual = sha256_hex(bytes); actual != sha256)
    return error(Code::kInvalid, "the bytes have the address {}, not {}", actual, sha256);
  PURLIN_ASSIGN(const blobs::Put put, blobs.put_if_absent(raw_key(sha256), bytes));
  return put == blobs::Put::kStored;
}

Result<std::string> get_raw(blobs::BlobStore& blobs, const std::string& sha256,
                            std::size_t max_bytes) {
  if (!is_address(sha256)) return no_address(sha256);
  PURLIN_ASSIGN(blobs::Blob blob, blobs.get(raw_key(sha256), max_bytes));
  if (sha256_hex(blob.bytes) != sha256)
    return error(Code::kCorrupt, "{}: the object {} is damaged", blobs.name(), raw_key(sha256));
  return std::move(blob.bytes);
}

Status choose_exemplars(const RawPointers& pointers, const Filter& filter, std::int64_t now_ns,
                        const RawRetention& retention) {
  PURLIN_ASSIGN(const std::vector<RawInfo> raws, pointers.list(filter));
  std::map<std::int64_t, const RawInfo*> chosen;
  std::set<std::int64_t> done;
  for (const RawInfo& info : raws) {
    const std::int64_t hour = info.pointer.begin_ns - info.pointer.begin_ns % kHourNs;
    if (!info.kept_for.empty()) done.insert(hour);
    const RawInfo*& best = chosen[hour];
    if (best == nullptr || (best->pointer.kind != "exemplar" && info.pointer.kind == "exemplar"))
      best = &info;
  }
  for (const auto& [hour, info] : chosen)
    if (done.count(hour) == 0)
      PURLIN_TRY(pointers.keep(info->pointer.sha256, now_ns + retention.exemplar_age_ns, "hour"));
  return Status::ok();
}

Status keep_around_change(const RawPointers& pointers, const std::set<std::string>& nodes,
                          std::int64_t at_ns, std::int64_t now_ns, const RawRetention& retention) {
  Filter filter;
  filter.begin_ns = at_ns - kNearChangeNs;
  filter.end_ns = at_ns + kNearChangeNs;
  PURLIN_ASSIGN(const std::vector<RawInfo> raws, pointers.list(filter));
  const RawInfo *before = nullptr, *after = nullptr;
  for (const RawInfo& info : raws) {  // the newest first
    if (nodes.count(info.node) == 0) continue;
    if (info.pointer.begin_ns >= at_ns) after = &info;
    if (info.pointer.end_ns <= at_ns && before == nullptr) before = &info;
  }
  for (const RawInfo* info : {before, after})
    if (info != nullptr && info->kept_for != "change point")
      PURLIN_TRY(
          pointers.keep(info->pointer.sha256, now_ns + retention.exemplar_age_ns, "change point"));
  return Status::ok();
}

Result<RawSweep> sweep_raws(blobs::BlobStore& blobs, const RawPointers& pointers,
                            std::int64_t now_ns, const RawRetention& retention) {
  RawSweep result;
  PURLIN_ASSIGN(const std::vector<RawInfo> raws, pointers.list({}));
  for (const RawInfo& info : raws) {  // the newest first
    const bool kept = info.keep_until_ns > now_ns;
    const bool too_old = info.pointer.begin_ns < now_ns - retention.age_ns;
    const bool too_much = result.kept_bytes + info.pointer.bytes > retention.bytes;
    if (!kept && (too_old || too_much)) {
      PURLIN_TRY(blobs.remove(raw_key(info.pointer.sha256)));
      PURLIN_TRY(pointers.forget(info.pointer.sha256));
      ++result.removed;
      result.removed_bytes += info.pointer.bytes;
    } else {
      ++result.kept;
      result.kept_bytes += info.pointer.bytes;
    }
  }
  PURLIN_TRY(sweep_orphans(blobs, pointers, now_ns, result));
  return result;
}

}  // namespace purlin::store
