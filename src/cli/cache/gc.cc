// SPDX-License-Identifier: Apache-2.0
// `purlin cache gc`: forgets records by rule, and tidies a shared cache.
#include "base/byte_size.h"
#include "base/text.h"
#include "cache/store/retention.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/tune/target.h"

#include <algorithm>
#include <optional>

namespace purlin::cli {
namespace {

// "90d" besides what parse_duration_s takes.
Result<double> duration(std::string_view option, std::string_view text) {
  std::optional<double> seconds = parse_duration_s(text);
  if (!seconds && ends_with(text, "d"))
    if (const auto days = parse_double(text.substr(0, text.size() - 1))) seconds = *days * 86400;
  if (!seconds || !(*seconds >= 0))
    return error(Code::kInvalid, "{} '{}' is not a duration such as 90d or 12h", option, text);
  return *seconds;
}

Result<int> count(std::string_view option, std::string_view text, int least) {
  const std::optional<std::int64_t> number = parse_int(text);
  if (!number || *number < least || *number > INT32_MAX)
    return error(Code::kInvalid, "{} '{}' is not a count of at least {}", option, text, least);
  return static_cast<int>(*number);
}

class CacheGc : public Command {
 public:
  std::string_view name() const override { return "cache gc"; }
  std::string_view summary() const override { return "Forget old records, or tidy a shared cache"; }
  std::string_view details() const override {
    return "Of each key the current entry stays; --even-current lifts that for the other "
           "three\n"
           "rules. What was said against an entry (demoted, quarantined) is kept, so that it "
           "stays\n"
           "withdrawn should a merge bring it back. A pull brings back what the shared cache "
           "still\n"
           "has. SIZE is 4096, 64K, 1.5GiB (of 1024) or 500MB (of 1000). PURLIN_CACHE_QUOTA=SIZE "
           "holds\n"
           "by itself: every write beyond it forgets history first, then the oldest entries.\n\n"
           "--share TARGET instead merges a shared cache's small segments and removes objects "
           "that no\n"
           "index has named for --grace; --drop-unreadable also takes damaged or missing segments "
           "off\n"
           "its index.\n\n"
           "Examples: purlin cache gc --history 3 --older-than 90d --dry-run\n"
           "          purlin cache gc --share s3://team/purlin\n"
           "Exit codes: 0 done, 2 error.";
  }
  void declare(Flags& flags) override {
    cache_.declare(flags);
    flags.option("--history", history_, "Entries to keep of a key besides the current", "N");
    flags.option("--older-than", older_than_, "Forget entries recorded longer ago, as 90d", "TIME");
    flags.option("--max-entries", max_entries_, "Forget the oldest until so many are left", "N");
    flags.option("--max-bytes", max_bytes_, "Forget the oldest until entries.log is no larger",
                 "SIZE");
    flags.flag("--even-current", retention_.even_current,
               "Age, number and size apply to current entries, too");
    flags.option("--share", share_, "Tidy this shared cache instead", "TARGET");
    flags.option("--grace", grace_, "With --share: how long unlisted objects stay", "TIME");
    flags.flag("--drop-unreadable", compact_.drop_unreadable,
               "With --share: give up segments that cannot be read");
    signing_.declare(flags, "With --share: the secret that segments are signed with");
    flags.flag("--dry-run", dry_run_, "Only say what would be done");
    flags.flag("--json", json_, "Print one JSON document (purlin.cache-gc/1)");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    const bool local =
        !history_.empty() || !older_than_.empty() || !max_entries_.empty() || !max_bytes_.empty();
    if (share_.empty() == !local)
      return error(Code::kInvalid,
                   "say what may go: --history, --older-than, --max-entries and --max-bytes for "
                   "this cache, or --share TARGET");
    return local ? tidy_cache(context) : tidy_share(context);
  }

 private:
  Result<int> tidy_cache(Context& context) {
    if (!history_.empty()) {
      PURLIN_ASSIGN(retention_.history, count("--history", history_, 0));
    }
    if (!max_entries_.empty()) {
      PURLIN_ASSIGN(const int most, count("--max-entries", max_entries_, 1));
      retention_.max_entries = static_cast<std::size_t>(most);
    }
    if (!older_than_.empty()) {
      PURLIN_ASSIGN(retention_.older_than_s, duration("--older-than", older_than_));
    }
    if (!max_bytes_.empty()) {
      const std::optional<std::uint64_t> bytes = parse_bytes(max_bytes_);
      if (!bytes || *bytes == 0)
        return error(Code::kInvalid, "--max-bytes '{}' is not a size such as 64M or 2GiB",
                     max_bytes_);
      retention_.max_bytes = *bytes;
    }
    PURLIN_ASSIGN(cache::Store store, cache_.open());
    warn_of_damage(store, context.log);
    PURLIN_ASSIGN(const cache::RetentionPlan plan,
                  cache::plan_retention(store, retention_, system_clock().wall_ns()));
    // A file with damaged stretches is rewritten without them even if nothing else goes.
    if (!dry_run_ && (!plan.drop.empty() || store.damaged() > 0))
      PURLIN_TRY(store.rewrite(
          [&](const cache::CacheRecord& record) { return plan.drop.count(record.id) == 0; }));
    answer(context, json_,
           document_of("purlin.cache-gc/1", {{"directory", store.directory()},
                                             {"dry_run", dry_run_},
                                             {"removed_entries", plan.entries},
                                             {"removed_current", plan.current},
                                             {"removed_statuses", plan.statuses},
                                             {"left", plan.left},
                                             {"bytes", plan.bytes},
                                             {"bytes_left", plan.bytes_left}}),
           fmt::format("{} {} ({} of them current) and {} status records from {}; {} left, {}\n",
                       dry_run_ ? "would remove" : "removed",
                       plan.entries == 1 ? "1 entry" : fmt::format("{} entries", plan.entries),
                       plan.current, plan.statuses, store.directory(), plan.left,
                       format_bytes(static_cast<double>(plan.bytes_left))));
    return kExitOk;
  }

  Result<int> tidy_share(Context& context) {
    PURLIN_ASSIGN(compact_.grace_s, duration("--grace", grace_));
    compact_.dry_run = dry_run_;
    PURLIN_ASSIGN(const cache::Store store, cache_.open());
    PURLIN_ASSIGN(const auto shared, OpenShare::open(context, share_, store.directory(), signing_));
    const Result<cache::CompactReport> done = shared->share().compact(compact_);
    shared->clear_progress();
    if (!done.is_ok()) return done.status();
    warn_of_problems(done->problems, context.log);
    std::vector<std::string> problems = done->problems;
    if (!done->failure.is_ok()) problems.push_back(done->failure.message());
    answer(
        context, json_,
        document_of("purlin.cache-gc/1", {{"target", shared->name()},
                                          {"dry_run", dry_run_},
                                          {"segments_before", done->before},
                                          {"segments_after", done->after},
                                          {"merged", done->merged},
                                          {"dropped", done->dropped},
                                          {"removed_objects", done->removed},
                                          {"removed_bytes", done->removed_bytes},
                                          {"generation", done->generation},
                                          {"problems", Json::array_of(problems)}}),
        fmt::format("{}: {} {}, gave up {} and removed {} ({}); {} in the index\n", shared->name(),
                    dry_run_ ? "would have merged" : "merged", count_text(done->merged, "segment"),
                    done->dropped, count_text(done->removed, "object"),
                    format_bytes(static_cast<double>(done->removed_bytes)),
                    count_text(done->after, "segment")));
    if (done->failure.is_ok()) return kExitOk;
    context.log.error("{}", done->failure.message());
    return kExitError;
  }

  CacheFlag cache_;
  SigningFlag signing_;
  cache::Retention retention_;
  cache::CompactOptions compact_;
  std::string history_, older_than_, max_entries_, max_bytes_, share_, grace_ = "24h";
  bool dry_run_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_gc_command() { return std::make_unique<CacheGc>(); }

}  // namespace purlin::cli
