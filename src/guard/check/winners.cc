// SPDX-License-Identifier: Apache-2.0
#include "guard/check/winners.h"

#include "backlog/file.h"
#include "base/text.h"
#include "base/version.h"
#include "gpu/library_kernel.h"
#include "guard/arms/kernel_arm.h"
#include "guard/check/compare.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace purlin::guard {
namespace {

constexpr std::string_view kAgainstDefault = "default", kAgainstRunnerUp = "runner-up";

// Fields that differ, other than toolkit and driver.
std::vector<std::string> other_fields(const cache::Comparison& comparison) {
  std::vector<std::string> names;
  for (const cache::FieldComparison& field : comparison.fields)
    if (field.match != cache::Match::kSame && field.field != "toolkit" && field.field != "driver")
      names.push_back(field.field);
  return names;
}

Config runner_up_of(const cache::Store& store, const cache::StoredEntry& stored) {
  if (!stored.entry.runner_up.empty()) return stored.entry.runner_up;
  for (const cache::StoredEntry& other :
       store.served(cache::group_of(stored.entry.key), cache::Id128::parse(stored.entry.key.id())))
    if (!(other.entry.config == stored.entry.config) && other.entry.problem == stored.entry.problem)
      return other.entry.config;
  return {};
}

// nullopt for an entry that is not to be checked; the reason goes to `search`.
std::optional<Winner> winner_of(const cache::Store& store, const cache::StoredEntry& stored,
                                const std::vector<KernelSpec>& specs, const DeviceInfo& device,
                                WinnerSearch* search) {
  const cache::CacheKey& key = stored.entry.key;
  if (key.arch != device.arch || key.device != device.name || key.backend != device.backend) {
    ++search->elsewhere;
    return std::nullopt;
  }
  const auto skip = [&](std::string_view why) {
    search->skipped.push_back(
        fmt::format("{} {}: {}", key.kernel, stored.entry.problem.text(), why));
    return std::nullopt;
  };
  const auto spec = std::find_if(specs.begin(), specs.end(), [&](const KernelSpec& candidate) {
    return candidate.name == key.kernel;
  });
  if (spec == specs.end()) return skip("no spec of this kernel was given");
  Winner winner;
  winner.stored = stored;
  winner.spec_path = spec->file;
  winner.runner_up = runner_up_of(store, stored);
  const Result<DeviceInfo> facts = gpu::device_for(spec->library, device);
  if (!facts.is_ok()) return skip(facts.status().message());
  // The tuning of a library recorded its first choice.
  winner.default_config = spec->library ? stored.entry.default_config
                                        : default_config(*spec, stored.entry.problem, *facts);
  Result<cache::CacheKey> wanted =
      cache::make_key(*spec, stored.entry.problem, *facts, key.policy == "cold");
  if (!wanted.is_ok()) return skip(wanted.status().message());
  winner.key = *wanted;
  const cache::Comparison comparison = cache::compare(winner.key, key);
  const std::vector<std::string> others = other_fields(comparison);
  if (others == std::vector<std::string>{"source_hash"})
    return skip("the kernel's source or options changed since; tune it again");
  if (!others.empty()) return skip("it differs from its spec in " + join(others, ", "));
  winner.changed = comparison.match != cache::Match::kSame;
  return winner;
}

Target target_of(const Winner& winner, const Config& config) {
  return {winner.key.kernel, winner.spec_path, winner.stored.entry.problem, config};
}

Item item_of(const Winner& winner, std::string_view against) {
  // The record's id keeps two entries of one kernel and shape apart.
  return {winner.key.kernel, winner.stored.entry.problem.text(),
          fmt::format("{} against the {}", winner.stored.record.substr(0, 8), against)};
}

// One verdict from the comparisons.
void judge(const Winner& winner, WinnerResult* result) {
  const auto slower = [](const ReportItem& item) {
    return fmt::format(
        "{:.1f} % slower than the {}", (item.result.effect.ratio - 1) * 100,
        ends_with(item.variant, kAgainstDefault) ? kAgainstDefault : kAgainstRunnerUp);
  };
  const ReportItem* loses_to_runner_up = nullptr;
  bool undecided = false;
  for (const ReportItem& item : result->comparisons) {
    const bool is_default = ends_with(item.variant, kAgainstDefault);
    switch (item.result.verdict) {
      case Verdict::kInvalid:
        result->verdict = WinnerVerdict::kQuarantined;
        result->reason = item.result.reason;
        return;
      case Verdict::kRegression:
        if (is_default) {
          result->verdict = WinnerVerdict::kDemoted;
          result->reason = slower(item);
          return;
        }
        loses_to_runner_up = &item;
        break;
      case Verdict::kInconclusive:
        // A runner-up that no longer runs is no evidence against the winner.
        undecided = undecided || is_default || item.result.pairs > 0;
        if (result->reason.empty()) result->reason = item.result.reason;
        break;
      default:
        break;
    }
  }
  if (loses_to_runner_up != nullptr) {
    result->verdict = WinnerVerdict::kReplaced;
    result->reason = slower(*loses_to_runner_up);
  } else if (!undecided) {
    result->verdict = WinnerVerdict::kValidated;
    result->reason = winner.stored.entry.config == winner.default_config
                         ? "outputs are right; it is the default config"
                         : "outputs are right and nothing measured with it is faster";
  }
}

// A winner that is the default and has no runner-up: only its outputs can be checked.
WinnerResult check_alone(const Winner& winner, Runner& runner) {
  WinnerResult result;
  const auto readings = runner.run({target_of(winner, winner.stored.entry.config)}, true);
  if (readings.front().is_ok()) {
    result.winner_ns = readings.front()->reading.time_ns;
    judge(winner, &result);
  } else {
    const Status& status = readings.front().status();
    if (status.code() == Code::kFailed) result.verdict = WinnerVerdict::kQuarantined;
    result.reason = status.message();
  }
  return result;
}

std::string today() { return format_rfc3339(system_clock().wall_ns()); }

// The runner-up as an entry of the present environment.
cache::Entry replacement_of(const Winner& winner, const WinnerResult& result) {
  cache::Entry entry = winner.stored.entry;
  entry.key = winner.key;
  entry.config = winner.runner_up;
  entry.runner_up = winner.stored.entry.config;
  entry.default_config = winner.default_config;
  entry.time_ms = result.runner_up_ns / 1e6;
  entry.runner_up_ms = result.winner_ns / 1e6;
  entry.default_time_ms = result.default_ns / 1e6;
  entry.samples.clear();
  entry.ties.clear();
  entry.bucket_regret.clear();
  entry.verified = true;
  entry.evaluations = 0;
  entry.strategy = "verify";
  entry.tool_version = version();
  entry.host = cache::host_name();
  entry.user = cache::user_name();
  entry.recorded_at = today();
  return entry;
}

Status queue_retune(const cache::Store& store, const Winner& winner, const WinnerResult& result) {
  backlog::Task task;
  task.key.kind = "retune";
  task.key.kernel = winner.key.kernel;
  task.key.shape = winner.stored.entry.problem.text();
  task.spec = winner.spec_path;
  task.key.device = winner.key.device;
  task.key.toolkit = winner.key.toolkit;
  task.key.driver = winner.key.driver;
  task.reason = "the winner was checked again: " + result.reason;
  task.queued_at = today();
  task.launch_ns = result.winner_ns;
  if (result.default_ns > 0) task.ratio = result.winner_ns / result.default_ns;
  return backlog::queue(store.directory(), {task});
}

}  // namespace

std::string_view winner_verdict_name(WinnerVerdict verdict) {
  switch (verdict) {
    case WinnerVerdict::kValidated:
      return "validated";
    case WinnerVerdict::kReplaced:
      return "replaced";
    case WinnerVerdict::kDemoted:
      return "demoted";
    case WinnerVerdict::kQuarantined:
      return "quarantined";
    case WinnerVerdict::kInconclusive:
      return "inconclusive";
  }
  return "";
}

WinnerSearch find_winners(const cache::Store& store, const std::vector<KernelSpec>& specs,
                          const DeviceInfo& device, const std::vector<backlog::Task>& tasks,
                          const WinnerFilter& filter) {
  WinnerSearch search;
  std::map<std::string, std::size_t> heat;  // by text(): place in the backlog
  for (const backlog::Task& task : tasks)
    heat.emplace(task.key.kernel + " " + task.key.shape, heat.size());
  for (const cache::StoredEntry& stored : store.current()) {
    if (!filter.op.empty() && stored.entry.key.op != filter.op) continue;
    std::optional<Winner> winner = winner_of(store, stored, specs, device, &search);
    if (!winner) continue;
    if (filter.changed_only && (!winner->changed || stored.validated(winner->key))) continue;
    winner->hot = heat.count(winner->text()) > 0;
    search.winners.push_back(std::move(*winner));
  }
  const auto rank = [&](const Winner& winner) {
    const auto found = heat.find(winner.text());
    return std::tuple(found == heat.end() ? heat.size() : found->second, !winner.changed);
  };
  std::stable_sort(search.winners.begin(), search.winners.end(),
                   [&](const Winner& a, const Winner& b) { return rank(a) < rank(b); });
  if (filter.limit > 0 && search.winners.size() > filter.limit) search.winners.resize(filter.limit);
  return search;
}

Result<std::vector<WinnerResult>> check_winners(const std::vector<Winner>& winners,
                                                const WinnerCheck& check) {
  std::vector<WinnerResult> results(winners.size());
  std::vector<KernelItem> opponents, current;
  std::map<Item, std::size_t> owner;
  for (std::size_t i = 0; i < winners.size(); ++i) {
    const Winner& winner = winners[i];
    const Config& config = winner.stored.entry.config;
    const auto add = [&](const Config& opponent, std::string_view against) {
      if (opponent.empty() || opponent == config) return false;
      const Item item = item_of(winner, against);
      owner[item] = i;
      const std::string& code = winner.key.source_hash;
      opponents.push_back({item, target_of(winner, opponent), code, Status::ok()});
      current.push_back({item, target_of(winner, config), code, Status::ok()});
      return true;
    };
    const bool default_added = add(winner.default_config, kAgainstDefault);
    const bool runner_up_added =
        !(winner.runner_up == winner.default_config) && add(winner.runner_up, kAgainstRunnerUp);
    if (!default_added && !runner_up_added) results[i] = check_alone(winner, check.runner);
  }
  if (owner.empty()) return results;

  const auto baseline =
      make_kernel_arm({.label = "defaults and runners-up"}, opponents, check.runner);
  const auto winning = make_kernel_arm({.label = "winners"}, current, check.runner);
  Environment environment = host_environment();
  environment.devices.push_back(check.device);
  PURLIN_ASSIGN(Report report, compare({"cached winners",
                                        *baseline,
                                        *winning,
                                        check.design,
                                        {},
                                        "",
                                        "config",
                                        environment,
                                        "",
                                        check.options,
                                        check.random,
                                        check.clock}));
  for (ReportItem& item : report.items) {
    WinnerResult& result = results[owner.at({item.kernel, item.shape, item.variant})];
    (ends_with(item.variant, kAgainstDefault) ? result.default_ns : result.runner_up_ns) =
        item.result.baseline_ns;
    if (item.result.current_ns > 0) result.winner_ns = item.result.current_ns;
    result.comparisons.push_back(std::move(item));
  }
  for (std::size_t i = 0; i < winners.size(); ++i)
    if (!results[i].comparisons.empty()) judge(winners[i], &results[i]);
  return results;
}

Status record_winner(cache::Store& store, const Winner& winner, const WinnerResult& result) {
  using cache::EntryState;
  const auto set = [&](EntryState state) {
    cache::EntryStatus status = cache::new_status(winner.stored.record, state, result.reason);
    status.toolkit = winner.key.toolkit;
    status.driver = winner.key.driver;
    return store.set_status(std::move(status));
  };
  switch (result.verdict) {
    case WinnerVerdict::kInconclusive:
      return Status::ok();
    case WinnerVerdict::kValidated:
      PURLIN_TRY(set(EntryState::kValidated));
      break;
    case WinnerVerdict::kReplaced:
      PURLIN_TRY(
          store.put(replacement_of(winner, result), {.replace = true, .reason = result.reason})
              .status());
      break;
    case WinnerVerdict::kDemoted:
    case WinnerVerdict::kQuarantined:
      if (!winner.changed)
        PURLIN_TRY(set(result.verdict == WinnerVerdict::kDemoted ? EntryState::kDemoted
                                                                 : EntryState::kQuarantined));
      return queue_retune(store, winner, result);
  }
  // The queued validation is done.
  PURLIN_ASSIGN(const std::vector<backlog::Task> tasks, backlog::open_tasks(store.directory()));
  for (const backlog::Task& task : tasks)
    if (task.key.kind == "validate" && task.key.kernel + " " + task.key.shape == winner.text())
      PURLIN_TRY(backlog::finish(store.directory(), task.id()));
  return Status::ok();
}

}  // namespace purlin::guard
