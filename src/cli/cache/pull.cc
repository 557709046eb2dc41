// SPDX-License-Identifier: Apache-2.0
// `purlin cache pull`: takes a shared cache's records into this one.
#include "base/text.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/tune/target.h"

namespace purlin::cli {
namespace {

class CachePull : public Command {
 public:
  std::string_view name() const override { return "cache pull"; }
  std::string_view summary() const override {
    return "Add the records of a shared cache to this one";
  }
  VerbText text() const override {
    return {.description =
                "Fetches only segments with new records. A segment that is damaged, missing or "
                "written by a newer Purlin is named and skipped; the others are used. With "
                "--sign-key, only segments signed with that key are taken.",
            .examples = {{"purlin cache pull s3://team/purlin"},
                         {"purlin cache pull http://build7:8717/team"}},
            .exit_codes = {{0, "Done, perhaps with warnings"}, {2, "Error"}},
            .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    flags.positional("TARGET", target_, "Directory, s3://BUCKET/PREFIX or http://HOST:PORT/NAME");
    cache_.declare(flags);
    signing_.declare(flags, "File with the secret: take only segments signed with it");
    binaries_.declare(flags);
    flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.cache-pull/1."});
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    PURLIN_TRY(binaries_.check(signing_));
    PURLIN_ASSIGN(cache::Store store, cache_.open_examined(context.log));
    PURLIN_ASSIGN(const auto shared,
                  OpenShare::open(context, target_, store.directory(), signing_));
    cache::Absorbed absorbed;
    const Result<cache::PullReport> pulled =
        shared->share().pull([&](const std::string& id) { return store.has(id); },
                             [&](const std::vector<cache::CacheRecord>& records) {
                               PURLIN_ASSIGN(const cache::Absorbed part, store.absorb(records));
                               add(&absorbed, part);
                               return Status::ok();
                             });
    shared->clear_progress();
    if (!pulled.is_ok()) return pulled.status();
    absorbed.refused += pulled->refused;
    Json document = document_of("purlin.cache-pull/1", {{"target", shared->name()}});
    report_absorbed(absorbed, &document, context.log);
    document.set("newer", pulled->newer);
    document.set("segments", pulled->segments);
    document.set("fetched", pulled->fetched);
    document.set("bytes", pulled->bytes);
    document.set("generation", pulled->generation);
    document.set("problems", Json::array_of(pulled->problems));
    warn_of_problems(pulled->problems, context.log);
    if (pulled->newer > 0)
      context.log.warn("{} of a newer Purlin left out", count_text(pulled->newer, "record"));
    PURLIN_TRY(binaries_.pull(*shared, signing_, &document, context.log));
    answer(context, json_, document,
           fmt::format("{} from {} ({} of {} segments read, {})\n",
                       count_text(absorbed.added, "new record"), shared->name(), pulled->fetched,
                       pulled->segments, format_bytes(static_cast<double>(pulled->bytes))));
    return kExitOk;
  }

 private:
  std::string target_;
  CacheFlag cache_;
  SigningFlag signing_;
  BinariesFlag binaries_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_pull_command() { return std::make_unique<CachePull>(); }

}  // namespace purlin::cli
