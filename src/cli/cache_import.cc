// SPDX-License-Identifier: Apache-2.0
// `purlin cache import`: takes the records of files into the cache.
#include "base/files.h"
#include "cache/share/exchange.h"
#include "cli/cache_share.h"
#include "cli/cache_target.h"
#include "cli/commands.h"

namespace purlin::cli {
namespace {

class CacheImport : public Command {
 public:
  std::string_view name() const override { return "cache import"; }
  std::string_view summary() const override { return "Take the records of files into the cache"; }
  std::string_view details() const override {
    return "Reads bundles, and the JSON of `cache export`, `cache ls --json` and `cache get "
           "--json`.\n"
           "A bundle that is damaged is refused as a whole, and with --sign-key one that the key "
           "did\n"
           "not sign. Importing twice changes nothing.\n\n"
           "Example: purlin cache import h100.bundle --sign-key team.key\n"
           "Exit codes: 0 imported, 2 error.";
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Bundles or JSON documents");
    cache_.declare(flags);
    signing_.declare(flags, "Take only bundles signed with the secret in this file");
    flags.flag("--json", json_, "Print one JSON document (purlin.cache-import/1)");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    PURLIN_ASSIGN(cache::Store store, cache_.open());
    std::vector<cache::Bundle> bundles;
    for (const std::string& file : files_) {
      PURLIN_ASSIGN(const std::string bytes, read_file(file, cache::kMaxBundleBytes));
      Result<cache::Bundle> bundle = cache::read_records(bytes, signing_.key());
      if (!bundle.is_ok()) return bundle.status().with_context(file);
      bundles.push_back(std::move(bundle).value());
    }
    return absorb_bundles(context, store, bundles, "purlin.cache-import/1", json_);
  }

 private:
  std::vector<std::string> files_;
  CacheFlag cache_;
  SigningFlag signing_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_import_command() { return std::make_unique<CacheImport>(); }

}  // namespace purlin::cli
