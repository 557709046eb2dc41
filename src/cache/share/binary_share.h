// SPDX-License-Identifier: Apache-2.0
// BinaryShare: compiled kernels that machines share, as objects of a BlobStore next to a Share's.
//
// A binary is code that a machine runs, so it is signed. Only holders of the secret can write one
// that others take; a server, or a token for it, is not enough. The signature covers the key too. A
// key has all inputs of the compiler, so a binary serves the same source, options, device, driver
// and compiler alone (docs/formats/binary-cache.md). Thread-safety: belongs to one thread. Failure:
// the BlobStore's own. An object that is not whole, or not signed by this key, is counted and left.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "blobs/blob_store.h"
#include "cache/share/bundle.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace purlin::cache {

inline constexpr std::size_t kMaxSharedBinary = std::size_t{16} << 20;

// "binaries/KEYID-KEY.bin": whether it is the name of a shared binary, of any signer.
bool is_binary_object(std::string_view key);
// What anybody can check of its bytes: it is a signed file of the binary cache, and whole.
Status check_binary_object(std::string_view bytes);

struct BinaryReport {
  std::size_t moved = 0, known = 0;    // files or objects
  std::size_t refused = 0, large = 0;  // not signed by this key, or damaged; over the limit
  std::uint64_t bytes = 0;             // of those that were moved
};

// Removes those that were written so many seconds ago, of any signer; the number of them.
Result<std::size_t> remove_old_binaries(blobs::BlobStore& store, double seconds, Clock& clock);

class BinaryShare {
 public:
  // All outlive it.
  BinaryShare(blobs::BlobStore& store, const SigningKey& key) : store_(store), key_(key) {}

  // Between a folder of the binary cache and the store, what the other lacks. A pull makes the
  // folder, readable by this user alone. At most `limit` bytes are moved.
  Result<BinaryReport> push(const std::string& directory, std::uint64_t limit);
  Result<BinaryReport> pull(const std::string& directory, std::uint64_t limit);

 private:
  std::string object_of(const std::string& key) const;
  std::string signature(const std::string& key, std::string_view file) const;

  blobs::BlobStore& store_;
  const SigningKey& key_;
};

}  // namespace purlin::cache
