// SPDX-License-Identifier: Apache-2.0
// `purlin cache gc`: forgets records by rule, and tidies a shared cache.
#include "base/byte_size.h"
#include "base/text.h"
#include "cache/share/binary_share.h"
#include "cache/store/retention.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/tune/target.h"

#include <algorithm>
#include <optional>

namespace purlin::cli {
namespace {

// Accepts "90d" in addition to the forms of parse_duration_s.
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

constexpr double kOldBinaryS = 30.0 * 24 * 3600;  // of compiled kernels in a shared cache

class CacheGc : public Command {
 public:
  std::string_view name() const override { return "cache gc"; }
  std::string_view summary() const override {
    return "Delete old records, or compact a shared cache";
  }
  VerbText text() const override {
    return {.description =
                "Deletes old records of the cache. The current entry of each key stays, unless "
                "--even-current is given. SIZE is 4096, 64K, 1.5GiB (of 1024) or 500MB (of 1000).",
            .more =
                "Records that withdraw an entry (demoted, quarantined) stay, so that the entry "
                "remains withdrawn after a merge. A pull brings back records that the shared cache "
                "still has.\n\nPURLIN_CACHE_QUOTA=SIZE limits the cache without this verb. Every "
                "write beyond it deletes history first, then the oldest entries.",
            .examples = {{"purlin cache gc --history 3 --older-than 90d --dry-run"},
                         {"purlin cache gc --share s3://team/purlin"}},
            .exit_codes = {{0, "Done"}, {2, "Error"}},
            .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    cache_.declare(flags);
    flags.option("--history", history_, "Older entries to keep of each key", "N");
    flags.option("--older-than", older_than_, "Delete entries older than this, such as 90d",
                 "TIME");
    flags.option("--max-entries", max_entries_, "Delete the oldest entries above this number", "N");
    flags.option("--max-bytes", max_bytes_,
                 "Delete the oldest entries until entries.log is this small", "SIZE");
    flags.flag("--even-current", retention_.even_current,
               "Apply age, number and size to current entries, too");
    flags.option("--share", share_,
                 {"Compact this shared cache instead",
                  "Small segments are merged. Objects that no index has named for the time of "
                  "--grace are removed, and compiled kernels after 30 days."},
                 "TARGET");
    flags.option("--grace", grace_, "With --share: time that unlisted objects stay", "TIME");
    flags.flag("--drop-unreadable", compact_.drop_unreadable,
               {"With --share: remove unreadable segments from the index",
                "A segment is unreadable when it is damaged or missing."});
    signing_.declare(flags, "With --share: file with the secret that signs segments");
    flags.flag("--dry-run", dry_run_, "Only print the planned work");
    flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.cache-gc/1."});
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
    PURLIN_ASSIGN(cache::Store store, cache_.open_examined(context.log));
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
    std::size_t old = 0;
    if (!dry_run_) {
      PURLIN_ASSIGN(old, cache::remove_old_binaries(shared->blobs(), kOldBinaryS, system_clock()));
    }
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
                                          {"removed_binaries", old},
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
