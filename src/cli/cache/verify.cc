// SPDX-License-Identifier: Apache-2.0
// `purlin cache verify`: is the file whole, and do the winners still win on this device?
#include "backlog/backlog.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/guard/device.h"
#include "cli/guard/suite_run.h"
#include "cli/tune/spec_files.h"
#include "cli/tune/target.h"
#include "guard/check/winners.h"
#include "model/document.h"

#include <algorithm>
#include <optional>

namespace purlin::cli {
namespace {

struct Integrity {
  std::size_t records = 0, damaged = 0, newer = 0;
};

class CacheVerify : public Command {
 public:
  std::string_view name() const override { return "cache verify"; }
  std::string_view summary() const override {
    return "Check the cache, and its winners on this device";
  }
  VerbText text() const override {
    return {
        .description =
            "Reads and checks every record. With SPECs, it then runs every winner of this device "
            "again. It compares the outputs with the reference. It compares the time with the "
            "default and the runner-up, in pairs of fresh processes, as `guard` does.",
        .more =
            "Winners in the backlog come first, then winners measured under another driver or "
            "toolkit.\n\nA winner that holds is marked validated, and lookups under this driver "
            "and toolkit get it. Other results have these effects:\n  slower than the runner-up   "
            "replaced by it\n  slower than the default     demoted, and queued for tuning\n  wrong "
            "outputs               quarantined, and queued for tuning",
        .examples = {{"purlin cache verify"}, {"purlin cache verify kernels --changed --limit 20"}},
        .exit_codes = {{0, "All winners hold"},
                       {1, "A record is damaged, or a winner does not hold"},
                       {2, "Error"},
                       {3, "Some winners could not be decided"}},
        .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("SPEC", places_, "Specs of the kernels, or folders of specs", false);
    flags.option("--device", device_name_, "Device to use", "DEVICE");
    cache_.declare(flags);
    flags.option("--op", filter_.op, "Only winners of this op", "OP");
    flags.option("--limit", limit_, "Maximum number of winners, hottest first");
    flags.flag("--changed", filter_.changed_only,
               "Only winners of another driver or toolkit, not yet validated");
    flags.option("--time-limit", time_limit_,
                 "Decide with the available data after this time, such as 90s", "TIME");
    watched_.declare(flags);
    flags.flag("--dry-run", dry_run_, "Only print the planned measurements, in their order");
    flags.flag("--json", json_,
               {"Print one JSON document", "The schema is purlin.cache-verify/1."});
  }

  Result<int> run(Context& context) override {
    if (limit_ < 0) return error(Code::kInvalid, "--limit {} is negative", limit_);
    filter_.limit = static_cast<std::size_t>(limit_);
    time_limit_s_ = parse_duration_s(time_limit_);
    if (!time_limit_.empty() && !time_limit_s_)
      return error(Code::kInvalid, "--time-limit '{}' is not a duration such as 90s", time_limit_);
    PURLIN_ASSIGN(cache::Store store, cache_.open_examined(context.log));
    PURLIN_ASSIGN(const Integrity integrity, check_integrity(store));
    Json document = new_document("purlin.cache-verify/1", host_environment());
    document.set("directory", store.directory());
    document.set("records", integrity.records);
    report_damage(store, &document);
    document.set("damaged_records", integrity.damaged);
    document.set("newer_records", integrity.newer);
    if (!json_)
      context.print(fmt::format(
          "{}: {} checked, {} damaged{}\n", store.directory(),
          count_text(integrity.records, "record"), integrity.damaged,
          integrity.newer > 0 ? fmt::format(", {} of a newer Purlin", integrity.newer) : ""));
    int code = integrity.damaged > 0 ? kExitRegression : kExitOk;
    if (!places_.empty()) {
      PURLIN_ASSIGN(const int winners, check_winners(context, store, &document));
      // A loss weighs more than what is not decided.
      if (code == kExitOk || winners == kExitRegression) code = winners;
    } else if (store.record_set().entries() > 0) {
      context.log.info("no SPEC was given, so no winner was measured again");
    }
    if (json_) context.print(document.dump(2) + "\n");
    return code;
  }

 private:
  // Every record is read again, and has the id of its contents.
  static Result<Integrity> check_integrity(const cache::Store& store) {
    Integrity integrity;
    integrity.newer = store.newer();
    PURLIN_TRY(store.each_record({}, [&](const cache::CacheRecord&) {
      ++integrity.records;
      return true;
    }));
    const std::size_t listed = store.record_set().entries() + store.record_set().statuses();
    integrity.damaged = store.damaged() + listed - std::min(listed, integrity.records);
    return integrity;
  }

  Result<int> check_winners(Context& context, cache::Store& store, Json* document) {
    PURLIN_ASSIGN(const std::vector<KernelSpec> specs, load_specs(places_, context.log));
    if (specs.empty()) return error(Code::kNotFound, "no spec is in '{}'", join(places_, "', '"));
    PURLIN_ASSIGN(const guard::ResolvedDevice device, guard::resolve_device(device_name_));
    PURLIN_ASSIGN(const std::vector<backlog::RankedTask> ranked,
                  backlog::read(store.directory(), context.log));
    std::vector<backlog::Task> tasks;
    for (const backlog::RankedTask& one : ranked) tasks.push_back(one.task);
    const guard::WinnerSearch search =
        guard::find_winners(store, specs, device.info, tasks, filter_);
    for (const std::string& skipped : search.skipped) context.log.warn("{}", skipped);
    std::vector<guard::WinnerResult> results;
    if (!dry_run_ && !search.winners.empty()) {
      PURLIN_ASSIGN(results, measure(context, device, search.winners));
      for (std::size_t i = 0; i < results.size(); ++i)
        PURLIN_TRY(guard::record_winner(store, search.winners[i], results[i]));
    }
    document->set("environment", to_json(environment_of(device.info)));
    document->set("dry_run", dry_run_);
    document->set("elsewhere", search.elsewhere);
    document->set("skipped", Json::array_of(search.skipped));
    document->set("winners", to_json(search.winners, results));
    if (!json_) print(context, search, results);
    return exit_code(search, results);
  }

  Result<std::vector<guard::WinnerResult>> measure(Context& context,
                                                   const guard::ResolvedDevice& device,
                                                   const std::vector<guard::Winner>& winners) {
    PURLIN_TRY(watched_.open(context, device.info));
    guard::PairsOptions pairs;
    pairs.watch = watched_.watch();
    pairs.locked_mhz = watched_.locked_mhz();
    Progress progress(stderr, context.error_terminal, !context.quiet);
    pairs.progress = [&](const guard::PairProgress& at) {
      progress.update(guard_progress_line(at));
    };
    Random random = unguessable_random();
    std::vector<guard::WinnerResult> results(winners.size());
    // Winners of one policy together: a process measures by one.
    const std::int64_t begin = system_clock().monotonic_ns();
    for (const bool cold : {false, true}) {
      std::vector<guard::Winner> group;
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < winners.size(); ++i)
        if ((winners[i].key.policy == "cold") == cold) {
          group.push_back(winners[i]);
          places.push_back(i);
        }
      if (group.empty()) continue;
      guard::RunnerOptions options;
      options.device = device.name;
      options.binary_cache = join_path(user_cache_directory(), "binaries");
      options.policy.flush_l2 = cold;
      const auto runner = guard::make_worker_runner(options);
      if (time_limit_s_) {
        const double spent = static_cast<double>(system_clock().monotonic_ns() - begin) / 1e9;
        pairs.time_limit_s = std::max(*time_limit_s_ - spent, 0.001);
      }
      PURLIN_ASSIGN(auto checked,
                    guard::check_winners(group, {*runner, device.info, guard::Design{}, pairs,
                                                 random, system_clock()}));
      for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(checked[i]);
    }
    return results;
  }

  static int exit_code(const guard::WinnerSearch& search,
                       const std::vector<guard::WinnerResult>& results) {
    bool undecided = !search.skipped.empty();
    for (const guard::WinnerResult& result : results) {
      if (result.verdict == guard::WinnerVerdict::kInconclusive)
        undecided = true;
      else if (result.verdict != guard::WinnerVerdict::kValidated)
        return kExitRegression;
    }
    return undecided ? kExitInconclusive : kExitOk;
  }

  static Json to_json(const Environment& environment) { return purlin::to_json(environment); }
  static Json to_json(const std::vector<guard::Winner>& winners,
                      const std::vector<guard::WinnerResult>& results) {
    Json list = Json::array();
    for (std::size_t i = 0; i < winners.size(); ++i) {
      const guard::Winner& winner = winners[i];
      Json item = Json::object({{"kernel", winner.key.kernel},
                                {"shape", winner.stored.entry.problem.text()},
                                {"record", winner.stored.record},
                                {"config", purlin::to_json(winner.stored.entry.config)},
                                {"hot", winner.hot},
                                {"changed", winner.changed}});
      if (i < results.size()) {
        const guard::WinnerResult& result = results[i];
        item.set("verdict", guard::winner_verdict_name(result.verdict));
        item.set("reason", result.reason);
        item.set("winner_ns", result.winner_ns);
        item.set("default_ns", result.default_ns);
        item.set("runner_up_ns", result.runner_up_ns);
      }
      list.push(std::move(item));
    }
    return list;
  }

  void print(Context& context, const guard::WinnerSearch& search,
             const std::vector<guard::WinnerResult>& results) const {
    Table table;
    table.column("kernel");
    table.column("shape");
    table.column(dry_run_ ? "measured under" : "verdict");
    if (!dry_run_) {
      table.column("time", Table::Align::kRight);
      table.column("default", Table::Align::kRight);
      table.column("runner-up", Table::Align::kRight);
      table.column("why");
    }
    const auto time = [](double ns) { return ns > 0 ? format_ns(ns) : std::string("-"); };
    for (std::size_t i = 0; i < search.winners.size(); ++i) {
      const guard::Winner& winner = search.winners[i];
      std::vector<std::string> row = {winner.key.kernel, winner.stored.entry.problem.text()};
      if (dry_run_) {
        row.push_back(fmt::format("{}, driver {}{}", winner.stored.entry.key.toolkit,
                                  winner.stored.entry.key.driver,
                                  winner.hot ? "; in the backlog" : ""));
      } else {
        const guard::WinnerResult& result = results[i];
        const Style style = result.verdict == guard::WinnerVerdict::kValidated      ? Style::kGreen
                            : result.verdict == guard::WinnerVerdict::kInconclusive ? Style::kYellow
                                                                                    : Style::kRed;
        row.push_back(context.terminal.paint(style, guard::winner_verdict_name(result.verdict)));
        row.push_back(time(result.winner_ns));
        row.push_back(time(result.default_ns));
        row.push_back(time(result.runner_up_ns));
        row.push_back(result.reason);
      }
      table.row(std::move(row));
    }
    if (!table.empty()) context.print(table.render(context.terminal));
    if (search.winners.empty()) context.print("no winner of this device is to be measured\n");
    if (search.elsewhere > 0)
      context.print(fmt::format(
          "{} of other devices left alone\n",
          search.elsewhere == 1 ? "1 entry" : fmt::format("{} entries", search.elsewhere)));
  }

  std::vector<std::string> places_;
  std::string device_name_ = "auto", time_limit_;
  CacheFlag cache_;
  GuardDevice watched_;
  guard::WinnerFilter filter_;
  std::optional<double> time_limit_s_;
  int limit_ = 0;
  bool dry_run_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_verify_command() { return std::make_unique<CacheVerify>(); }

}  // namespace purlin::cli
