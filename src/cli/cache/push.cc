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
  std::string_view summary() const override { return "Add this cache's records to a shared one"; }
  std::string_view details() const override {
    return "TARGET is a directory that all machines reach, s3://BUCKET/PREFIX of any service with\n"
           "conditional writes (credentials and endpoint as other S3 tools find them: AWS_*,\n"
           "~/.aws), or http://HOST:PORT/NAME of a `purlin serve` (its token in "
           "PURLIN_SERVER_TOKEN).\n"
           "Only what is missing there is written. Any number of machines may push at once;\n"
           "none loses another's records.\n\n"
           "Examples: purlin cache push /mnt/team/purlin\n"
           "          purlin cache push s3://team/purlin --op gemm --sign-key team.key\n"
           "          purlin cache push http://build7:8717/team\n"
           "Exit codes: 0 done, 2 error.";
  }
  void declare(Flags& flags) override {
    flags.positional("TARGET", target_, "A directory, s3://BUCKET/PREFIX or http://HOST:PORT/NAME");
    cache_.declare(flags);
    records_.declare(flags);
    signing_.declare(flags, "Sign what is written with the secret in this file");
    flags.flag("--json", json_, "Print one JSON document (purlin.cache-push/1)");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    PURLIN_ASSIGN(const cache::Store store, cache_.open());
    warn_of_damage(store, context.log);
    PURLIN_ASSIGN(const auto records, store.records(records_.filter));
    PURLIN_ASSIGN(const auto shared,
                  OpenShare::open(context, target_, store.directory(), signing_));
    const Result<cache::PushReport> pushed = shared->share().push(records);
    shared->clear_progress();
    if (!pushed.is_ok()) return pushed.status();
    warn_of_problems(pushed->problems, context.log);
    answer(context, json_,
           document_of("purlin.cache-push/1", {{"target", shared->name()},
                                               {"pushed", pushed->pushed},
                                               {"known", pushed->known},
                                               {"segments", pushed->segments},
                                               {"bytes", pushed->bytes},
                                               {"conflicts", pushed->conflicts},
                                               {"generation", pushed->generation},
                                               {"problems", Json::array_of(pushed->problems)}}),
           fmt::format("pushed {} to {} ({}); {} there already\n",
                       count_text(pushed->pushed, "record"), shared->name(),
                       format_bytes(static_cast<double>(pushed->bytes)), pushed->known));
    return kExitOk;
  }

 private:
  std::string target_;
  CacheFlag cache_;
  RecordFlags records_;
  SigningFlag signing_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_push_command() { return std::make_unique<CachePush>(); }

}  // namespace purlin::cli
