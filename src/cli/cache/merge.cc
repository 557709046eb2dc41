// SPDX-License-Identifier: Apache-2.0
// `purlin cache merge`: takes other caches' records into this one. The result does not depend on
// the order, and merging again changes nothing.
#include "base/files.h"
#include "cache/share/exchange.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/tune/target.h"

namespace purlin::cli {
namespace {

class CacheMerge : public Command {
 public:
  std::string_view name() const override { return "cache merge"; }
  std::string_view summary() const override {
    return "Add the records of other caches to this one";
  }
  VerbText text() const override {
    return {.description =
                "OTHER is the directory of a cache, or a file of `purlin cache export`. Where both "
                "have entries of a key, the better one is served: verified before unverified, then "
                "the faster one. All entries stay in the history. The order of merging makes no "
                "difference.",
            .examples = {{"purlin cache merge node1/configs node2/configs"}},
            .exit_codes = {{0, "Merged"},
                           {2, "Error"},
                           {3, "Merged in part: damage took records of OTHER"}},
            .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("OTHER", others_, "Directories of caches, or exported files");
    cache_.declare(flags);
    signing_.declare(flags, "File with the secret: take only files signed with it");
    flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.cache-merge/1."});
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    PURLIN_ASSIGN(cache::Store store, cache_.open_examined(context.log));
    // All are read before the first is added: a wrong name leaves the cache unchanged.
    std::vector<cache::Bundle> bundles;
    for (const std::string& other : others_) {
      Result<cache::Bundle> bundle = read(context, other);
      if (!bundle.is_ok()) return bundle.status().with_context(other);
      bundles.push_back(std::move(bundle).value());
    }
    return absorb_bundles(context, store, bundles, "purlin.cache-merge/1", json_);
  }

 private:
  Result<cache::Bundle> read(Context& context, const std::string& other) const {
    if (!file_exists(other)) return error(Code::kNotFound, "there is no such directory or file");
    if (!is_directory(other)) {
      PURLIN_ASSIGN(const std::string bytes, read_file(other, cache::kMaxBundleBytes));
      return cache::read_records(bytes, signing_.key());
    }
    if (signing_.key() != nullptr)
      return error(Code::kInvalid, "a directory is not signed; export it with --sign-key there");
    if (!file_exists(join_path(other, "entries.log")) &&
        file_exists(join_path(other, "index.json")))
      return error(Code::kInvalid, "it is a shared cache; use `purlin cache pull`");
    PURLIN_ASSIGN(cache::Store store, cache::Store::open(other));
    PURLIN_TRY(store.examine());
    warn_of_damage(store, context.log);
    cache::Bundle bundle;
    PURLIN_ASSIGN(bundle.records, store.records());
    bundle.newer = store.newer();
    bundle.damaged = store.damaged();
    return bundle;
  }

  std::vector<std::string> others_;
  CacheFlag cache_;
  SigningFlag signing_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_merge_command() { return std::make_unique<CacheMerge>(); }

}  // namespace purlin::cli
