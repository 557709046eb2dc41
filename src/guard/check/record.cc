// SPDX-License-Identifier: Apache-2.0
// Measuring without judging: `guard run`, and the recording of a baseline.
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "guard/check/check.h"
#include "guard/suite/command_arm.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

namespace purlin::guard {
namespace {

// Runs targets in rounds: each once verified and unmeasured, then `rounds` times in random order.
class Rounds {
 public:
  // Takes the reading or the failure of a process. False leaves the target out of further rounds; a
  // failure ends all rounds.
  using Sink = std::function<Result<bool>(std::size_t, Result<ProcessReading>)>;

  Rounds(const GuardRun& session, const std::vector<Target>& targets, int rounds)
      : session_(session), targets_(targets), rounds_(rounds) {}

  Status run(const Sink& sink) {
    begin_ns_ = session_.clock.monotonic_ns();
    std::vector<std::size_t> order(targets_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    report("verifying");
    PURLIN_TRY(run_round(order, true, sink));
    for (int round = 0; round < rounds_; ++round) {
      session_.random.shuffle(order);
      report("measuring");
      PURLIN_TRY(run_round(order, false, sink));
      ++done_;
    }
    return Status::ok();
  }

 private:
  // One process for every few targets, as in the gate's arms. `order` loses the targets without
  // further rounds.
  Status run_round(std::vector<std::size_t>& order, bool verify, const Sink& sink) {
    const std::size_t most = session_.suite.per_process;
    std::vector<std::size_t> next;
    for (std::size_t first = 0; first < order.size(); first += most) {
      std::vector<Target> batch;
      for (std::size_t i = first; i < std::min(order.size(), first + most); ++i)
        batch.push_back(targets_[order[i]]);
      std::vector<Result<ProcessReading>> readings = session_.runner.run(batch, verify);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        bool goes_on = true;
        if (!verify || !readings[i].is_ok()) {
          PURLIN_ASSIGN(goes_on, sink(order[first + i], std::move(readings[i])));
        }
        if (goes_on) next.push_back(order[first + i]);
      }
    }
    order = std::move(next);
    return Status::ok();
  }

  void report(std::string doing) const {
    if (!session_.options.progress) return;
    PairProgress progress;
    progress.doing = std::move(doing);
    progress.done = done_;
    progress.at_most = rounds_;
    progress.seconds = static_cast<double>(session_.clock.monotonic_ns() - begin_ns_) / 1e9;
    if (done_ > 0) progress.left_s = progress.seconds / done_ * (progress.at_most - done_);
    session_.options.progress(progress);
  }

  const GuardRun& session_;
  const std::vector<Target>& targets_;
  int rounds_;
  int done_ = 0;
  std::int64_t begin_ns_ = 0;
};

// Each command once to find its items, then `rounds` processes of every command, in random order.
// Appends the items; a command that cannot run is one failed item of its name.
Status measure_commands(const GuardRun& session, int rounds, std::vector<Measured>* measured) {
  std::vector<std::unique_ptr<Arm>> arms;
  std::map<std::pair<const Arm*, Item>, std::size_t> place;  // among `measured`
  for (const CommandSpec& command : session.suite.commands) {
    CommandArmOptions options;
    options.label = command.name.empty() ? join(command.argv, " ") : command.name;
    options.directory = parent_path(absolute_path(session.suite.file));
    options.seed = session.suite.seed;
    options.nominal_mhz = session.device.info.clock_mhz;
    std::unique_ptr<Arm> arm = make_command_arm(std::move(options), {command});
    if (const Status ready = arm->prepare(); !ready.is_ok()) {
      if (ready.code() != Code::kFailed) return ready;
      measured->push_back({arm->label(), {}, {}, ready, {}, false, ""});
      continue;
    }
    for (const Item& item : arm->items()) {
      place[{arm.get(), item}] = measured->size();
      measured->push_back({item.kernel, {}, {}, Status::ok(), {}, false, ""});
    }
    for (const SkippedItem& item : arm->skipped())
      measured->push_back(
          {item.item.kernel, {}, {}, error(Code::kFailed, "{}", item.reason), {}, true, ""});
    arms.push_back(std::move(arm));
  }
  for (int round = 0; round < rounds; ++round) {
    session.random.shuffle(arms);
    for (const std::unique_ptr<Arm>& arm : arms) {
      PURLIN_ASSIGN(Readings readings, arm->launch(arm->items()));
      std::map<Item, ItemReading*> said;
      for (ItemReading& reading : readings) said[reading.item] = &reading;
      for (const Item& item : arm->items()) {
        Measured& one = (*measured)[place.at({arm.get(), item})];
        const auto found = said.find(item);
        if (found == said.end())
          one.status = error(Code::kFailed, "a later process of it did not report {}", item.text());
        else if (!found->second->status.is_ok())
          one.status = found->second->status;
        else
          one.processes.push_back(std::move(found->second->process));
      }
    }
    // A command whose items all failed gets no further rounds.
    std::erase_if(arms, [&](const std::unique_ptr<Arm>& arm) {
      return std::all_of(arm->items().begin(), arm->items().end(), [&](const Item& item) {
        return !(*measured)[place.at({arm.get(), item})].status.is_ok();
      });
    });
  }
  return Status::ok();
}

// Histories and files of samples name an item by kernel and problem, where these suffice.
void drop_needless_variants(std::vector<Measured>* measured) {
  std::map<std::pair<std::string, std::string>, int> named;
  for (const Measured& one : *measured) ++named[{one.kernel, one.problem.text()}];
  for (Measured& one : *measured)
    if (named.at({one.kernel, one.problem.text()}) == 1) one.variant.clear();
}

}  // namespace

Environment environment_of(const GuardRun& session) {
  Environment environment = host_environment();
  environment.devices = {session.device.info};
  environment.recorded_at = format_rfc3339(session.clock.wall_ns());
  return environment;
}

Result<std::vector<Measured>> measure_suite(const GuardRun& session, int rounds) {
  std::vector<Measured> measured;
  std::vector<Target> targets;
  std::vector<std::size_t> owner;  // of each target, among `measured`
  for (const SuiteItem& item : session.suite.items) {
    Result<ResolvedItem> resolved =
        resolve_item(item, session.suite, session.device.info, session.cache);
    Measured one;
    if (resolved.is_ok()) {
      one.kernel = resolved->target.kernel;
      one.problem = resolved->target.problem;
      one.config = resolved->target.config;
      one.variant = item.config;
      targets.push_back(resolved->target);
      owner.push_back(measured.size());
    } else {
      one.kernel = item.spec_path;
      one.status = resolved.status();
    }
    measured.push_back(std::move(one));
  }
  drop_needless_variants(&measured);
  const auto keep = [&](std::size_t i, Result<ProcessReading> reading) -> Result<bool> {
    Measured& one = measured[owner[i]];
    const bool ok = reading.is_ok();
    if (ok) {
      one.processes.push_back(std::move(reading).value());
    } else if (reading.status().code() == Code::kFailed) {
      one.status = reading.status();
    } else {
      return reading.status();
    }
    return ok;
  };
  PURLIN_TRY(Rounds(session, targets, rounds).run(keep));
  PURLIN_TRY(measure_commands(session, rounds, &measured));
  return measured;
}

Result<Baseline> record_baseline(const GuardRun& session, int rounds, std::string note) {
  Baseline baseline;
  baseline.suite = session.suite.name;
  baseline.device = session.device.info;
  baseline.environment = environment_of(session);
  baseline.policy = session.suite.policy;
  baseline.suite_seed = session.suite.seed;
  baseline.recorded_at = baseline.environment.recorded_at;
  baseline.tool_version = version();
  baseline.note = std::move(note);

  std::vector<Target> targets;
  for (const SuiteItem& item : session.suite.items) {
    PURLIN_ASSIGN(ResolvedItem resolved,
                  resolve_item(item, session.suite, session.device.info, session.cache));
    BaselineItem recorded;
    recorded.kernel = resolved.target.kernel;
    recorded.op = resolved.op;
    recorded.request = resolved.request;
    recorded.problem = resolved.target.problem;
    recorded.config = resolved.target.config;
    recorded.snapshot = resolved.snapshot.id();
    recorded.seed = resolved.seed;
    if (baseline.find(recorded.key()) != nullptr)
      return error(Code::kInvalid, "{}: '{}' is in the suite twice", item.where, recorded.key());
    baseline.snapshots.emplace(recorded.snapshot, std::move(resolved.snapshot));
    baseline.items.push_back(std::move(recorded));
    targets.push_back(std::move(resolved.target));
  }

  const auto keep = [&](std::size_t i, Result<ProcessReading> reading) -> Result<bool> {
    if (!reading.is_ok())
      return reading.status().with_context(baseline.items[i].key() + " cannot be a baseline");
    baseline.items[i].processes.push_back(std::move(reading).value());
    return true;
  };
  PURLIN_TRY(Rounds(session, targets, rounds).run(keep));
  if (const std::vector<std::string> missing = missing_facts(baseline); !missing.empty())
    return error(Code::kFailed,
                 "this cannot be a baseline: the record lacks {}; without it a later "
                 "reader cannot judge the times",
                 join(missing, ", "));
  return baseline;
}

}  // namespace purlin::guard
