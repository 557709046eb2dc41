// SPDX-License-Identifier: Apache-2.0
// What the verbs that move records between caches have in common: the signing key, which records,
// the shared cache at a target. Owned by the verb's Command; one thread.
#pragma once

#include "base/status.h"
#include "cache/share/share.h"
#include "cache/store/store.h"
#include "cli/frame/command.h"
#include "cli/frame/flags.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::cli {

// "--sign-key FILE"
struct SigningFlag {
  void declare(Flags& flags, const std::string& help);
  Status load();
  const cache::SigningKey* key() const { return key_ ? &*key_ : nullptr; }

 private:
  std::string file_;
  std::optional<cache::SigningKey> key_;
};

class OpenShare;

// "--binaries": also compiled kernels, which have to be signed.
struct BinariesFlag {
  void declare(Flags& flags);
  Status check(const SigningFlag& signing) const;
  // Nothing without the flag; else the counts, as members of the document.
  Status push(OpenShare& share, const SigningFlag& signing, Json* document, Log& log) const;
  Status pull(OpenShare& share, const SigningFlag& signing, Json* document, Log& log) const;

 private:
  bool on_ = false;
};

// "--op gemm --arch sm_90": which records.
struct RecordFlags {
  void declare(Flags& flags);
  cache::RecordFilter filter;
};

// A target that is open, with what a Share of it refers to.
class OpenShare {
 public:
  // Ids of segments are remembered next to the cache in `cache_directory`.
  static Result<std::unique_ptr<OpenShare>> open(Context& context, const std::string& target,
                                                 const std::string& cache_directory,
                                                 const SigningFlag& signing);
  cache::Share& share() { return *share_; }
  blobs::BlobStore& blobs() { return *blobs_; }
  std::string name() const { return blobs_->name(); }
  void clear_progress() { progress_.clear(); }

 private:
  OpenShare(Context& context, std::unique_ptr<blobs::BlobStore> blobs);
  std::unique_ptr<blobs::BlobStore> blobs_;
  Progress progress_;
  std::optional<cache::Share> share_;
};

// "12 records", "1 record"
std::string count_text(std::size_t count, std::string_view noun);
// The problems of a share, each as a warning.
void warn_of_problems(const std::vector<std::string>& problems, Log& log);
// Takes bundles into the store and says what came of it, as the document where `json`.
Result<int> absorb_bundles(Context& context, cache::Store& store,
                           const std::vector<cache::Bundle>& bundles, std::string_view schema,
                           bool json);
// Taken-in records as members of a document; and as a warning what was refused.
void report_absorbed(const cache::Absorbed& absorbed, Json* document, Log& log);
void add(cache::Absorbed* total, const cache::Absorbed& part);

}  // namespace purlin::cli
