// SPDX-License-Identifier: Apache-2.0
// `purlin cache push`: adds this cache's records to a shared one.
#include "base/text.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/tune/target.h"

namespace purlin::cli {
namespace {

class CachePush : public Command {
 public:
  std::string_view name() const override { return "cache push"; }
  std::string_view summary() const override {
    return "Add the records of this cache to a shared one";
  }
  VerbText text() const override {
    return {.description =
                "Writes only the records that TARGET lacks. Any number of machines may push at the "
                "same time without a loss.",
            .more =
                "TARGET is one of these:\n  DIR                    a directory that all machines "
                "reach\n  s3://BUCKET/PREFIX     a service with conditional writes\n  "
                "http://HOST:PORT/NAME  a `purlin serve`\n\nCredentials and endpoint of S3 come "
                "from AWS_* variables and ~/.aws, as for other S3 tools. The token of a server is "
                "in PURLIN_SERVER_TOKEN.",
            .examples = {{"purlin cache push /mnt/team/purlin"},
                         {"purlin cache push s3://team/purlin --op gemm --sign-key team.key"},
                         {"purlin cache push http://build7:8717/team"}},
            .exit_codes = {{0, "Done"},
                           {2, "Error"},
                           {3, "Done in part: damaged records of this cache are missing"}},
            .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    flags.positional("TARGET", target_, "Directory, s3://BUCKET/PREFIX or http://HOST:PORT/NAME");
    cache_.declare(flags);
    records_.declare(flags);
    signing_.declare(flags, "File with the secret that signs new segments");
    binaries_.declare(flags);
    flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.cache-push/1."});
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    PURLIN_TRY(binaries_.check(signing_));
    PURLIN_ASSIGN(const cache::Store store, cache_.open_examined(context.log));
    PURLIN_ASSIGN(const auto records, store.records(records_.filter));
    PURLIN_ASSIGN(const auto shared,
                  OpenShare::open(context, target_, store.directory(), signing_));
    const Result<cache::PushReport> pushed = shared->share().push(records);
    shared->clear_progress();
    if (!pushed.is_ok()) return pushed.status();
    warn_of_problems(pushed->problems, context.log);
    Json document =
        document_of("purlin.cache-push/1", {{"target", shared->name()},
                                            {"pushed", pushed->pushed},
                                            {"known", pushed->known},
                                            {"segments", pushed->segments},
                                            {"bytes", pushed->bytes},
                                            {"conflicts", pushed->conflicts},
                                            {"generation", pushed->generation},
                                            {"problems", Json::array_of(pushed->problems)}});
    report_damage(store, &document);
    PURLIN_TRY(binaries_.push(*shared, signing_, &document, context.log));
    answer(context, json_, document,
           fmt::format("pushed {} to {} ({}); {} there already\n",
                       count_text(pushed->pushed, "record"), shared->name(),
                       format_bytes(static_cast<double>(pushed->bytes)), pushed->known));
    return partial_exit(store);
  }

 private:
  std::string target_;
  CacheFlag cache_;
  RecordFlags records_;
  SigningFlag signing_;
  BinariesFlag binaries_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_push_command() { return std::make_unique<CachePush>(); }

}  // namespace purlin::cli
