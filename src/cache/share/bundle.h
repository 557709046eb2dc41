// SPDX-License-Identifier: Apache-2.0
// Bundle: records in one checksummed, optionally signed piece of bytes: what `cache export` writes,
// and what a share's segments are (docs/formats/share.md).
//
// Decoding trusts nothing in a bundle: its payload must have the hash that its header states, and
// each record its id. Pure functions, except SigningKey::load. Failure: kCorrupt (damaged, or of a
// newer Purlin), kInvalid (not a bundle; not signed by the key asked for).
#pragma once

#include "base/status.h"
#include "cache/store/cache_record.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cache {

constexpr std::size_t kMaxBundleBytes = std::size_t{256} << 20;  // as stored

// A secret that a team shares: who has it wrote the bundle, or could have.
class SigningKey {
 public:
  // The bytes of a file, 16 to 4096, without trailing newlines.
  static Result<SigningKey> load(const std::string& path);
  static Result<SigningKey> from_secret(std::string secret);
  const std::string& id() const { return id_; }   // 16 hex digits; says nothing of the secret
  std::string sign(std::string_view text) const;  // 64 hex digits

 private:
  SigningKey(std::string secret, std::string id) : secret_(std::move(secret)), id_(std::move(id)) {}
  std::string secret_, id_;
};

struct Bundle {
  std::vector<CacheRecord> records;
  std::size_t newer = 0;    // records of kinds this Purlin does not know
  std::size_t refused = 0;  // records without their id
  std::size_t damaged = 0;  // records that damage kept out of it
  std::string signed_by;    // id of the key its header names; "" = not signed
  std::string written_at, tool_version;
};

bool is_bundle(std::string_view bytes);
// `key` nullptr: not signed. The same records give other bytes each time: a bundle says when and
// by what it was written, and its name is then never one that somebody is about to remove.
Result<std::string> encode_bundle(std::span<const CacheRecord> records, const SigningKey* key,
                                  std::size_t damaged = 0);
// With a key, a bundle that it did not sign is kInvalid.
Result<Bundle> decode_bundle(std::string_view bytes, const SigningKey* key);

}  // namespace purlin::cache
