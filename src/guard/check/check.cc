// SPDX-License-Identifier: Apache-2.0
#include "guard/check/check.h"

#include "base/files.h"
#include "base/text.h"
#include "guard/arms/kernel_arm.h"
#include "guard/check/evidence.h"

#include <cmath>

namespace purlin::guard {
namespace {

// The difference of the arms, which is the cause of a proven difference in time.
std::string difference(const ResolvedItem& now, const BaselineItem& then) {
  const bool code = now.snapshot.id() != then.snapshot;
  const bool config = !(now.target.config == then.config);
  if (code && config) return "code and config";
  if (code) return "code";
  return config ? "config" : "";
}

// The baseline's arm ran today as well: the drift since the recorded day. The two are unpaired, so
// this is a note and never a verdict.
std::string drift_note(double recorded_ns, double today_ns) {
  if (recorded_ns <= 0 || today_ns <= 0) return "";
  const double ratio = today_ns / recorded_ns;
  if (std::abs(ratio - 1) < 0.05) return "";
  return fmt::format(
      "the baseline's own kernel takes {} today, {} when recorded ({:+.0f} %): the machine moved, "
      "in both arms alike; record a new baseline if this is the new normal",
      format_ns(today_ns), format_ns(recorded_ns), (ratio - 1) * 100);
}

struct Prepared {
  ReportItem report;
  std::optional<ResolvedItem> now;
  const BaselineItem* then = nullptr;
  Verdict problem = Verdict::kPass;  // kInvalid or kInconclusive when it cannot be measured
};

Prepared prepare(const SuiteItem& item, const GuardRun& session, const Baseline& baseline) {
  Prepared prepared;
  prepared.report.file = item.spec_path;
  prepared.report.variant = item.config;
  Result<ResolvedItem> resolved =
      resolve_item(item, session.suite, session.device.info, session.cache, &baseline);
  if (!resolved.is_ok()) {
    prepared.problem = Verdict::kInvalid;
    prepared.report.kernel = base_name(item.spec_path);
    prepared.report.shape = item.shape;
    prepared.report.result.reason = resolved.status().message();
    return prepared;
  }
  prepared.now = std::move(resolved).value();
  prepared.report.kernel = prepared.now->target.kernel;
  prepared.report.shape = prepared.now->target.problem.text();
  prepared.report.current_config = prepared.now->target.config;
  if (!prepared.now->note.empty()) prepared.report.notes.push_back(prepared.now->note);
  prepared.then = baseline.find(prepared.now->key());
  if (prepared.then == nullptr) {
    prepared.problem = Verdict::kInconclusive;
    prepared.report.result.reason = fmt::format(
        "the baseline of {} has no such item; record a new one to guard it", baseline.recorded_at);
    return prepared;
  }
  prepared.report.baseline_config = prepared.then->config;
  prepared.report.recorded_p50_ns = prepared.then->p50_ns();
  return prepared;
}

Result<std::string> unpacked(const Baseline& baseline, const std::string& id,
                             const std::string& scratch) {
  const std::string folder = join_path(scratch, id);
  const Snapshot& snapshot = baseline.snapshots.at(id);
  const std::string spec = join_path(folder, snapshot.spec);
  if (file_exists(spec)) return spec;
  return unpack(snapshot, folder);
}

}  // namespace

Result<Report> check(const GuardRun& session, const Baseline& baseline, const std::string& scratch,
                     const CheckOptions& options) {
  const std::int64_t begin = session.clock.monotonic_ns();
  Report report;
  report.suite = session.suite.name;
  report.environment = environment_of(session);
  std::vector<Prepared> items;
  for (const SuiteItem& item : session.suite.items)
    items.push_back(prepare(item, session, baseline));

  const std::vector<std::string> missing = missing_facts(baseline);
  const std::vector<std::string> changes =
      environment_differences(baseline.device, session.device.info);
  const std::vector<std::string> unknown = missing_facts(session.device.info);
  std::string blocked;
  Verdict blocked_as = Verdict::kInconclusive;
  if (!unknown.empty()) {
    blocked_as = Verdict::kInvalid;
    blocked = "the record of this run would lack " + join(unknown, ", ") +
              ", so a later reader could not judge its verdict; `purlin doctor` says how to "
              "get it";
  } else if (!missing.empty()) {
    blocked = "the baseline's record lacks " + join(missing, ", ") + "; record a new one";
  } else if (!changes.empty() && !options.allow_environment_change) {
    blocked =
        "the environment is not the baseline's (" + join(changes, "; ") +
        "), so its times say nothing here. Record a new baseline, or run both sides here and now, "
        "in pairs: --allow-environment-change compares the baseline's code with the code of "
        "now, `purlin guard compare` two revisions";
  } else if (!changes.empty()) {
    report.notes.push_back(
        "the environment is not the baseline's (" + join(changes, "; ") +
        "): this proves what the code and configs do here, and nothing of the change itself");
  }
  if (baseline.suite_seed != session.suite.seed)
    report.notes.push_back(
        fmt::format("the suite's seed is {} now and was {} in the baseline: "
                    "both arms ran on the inputs of now",
                    session.suite.seed, baseline.suite_seed));

  std::vector<Thresholds> thresholds;
  std::vector<KernelItem> then, now;
  std::vector<Item> names;
  for (std::size_t i = 0; i < items.size(); ++i) {
    thresholds.push_back(session.suite.items[i].thresholds);
    names.push_back({items[i].report.kernel, items[i].report.shape, session.suite.items[i].config});
    if (!items[i].now || items[i].then == nullptr || !blocked.empty()) continue;
    now.push_back({names.back(), items[i].now->target, items[i].now->snapshot.id()});
    then.push_back({names.back(),
                    {items[i].then->kernel, "", items[i].then->problem, items[i].then->config},
                    items[i].then->snapshot});
    PURLIN_ASSIGN(then.back().target.spec_path,
                  unpacked(baseline, items[i].then->snapshot, scratch));
  }
  SuiteGate gate(thresholds, session.suite.design);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].problem != Verdict::kPass)
      gate.give_up(i, items[i].problem, items[i].report.result.reason);
    else if (!blocked.empty())
      gate.give_up(i, blocked_as, blocked);
  }
  const auto baseline_arm =
      make_kernel_arm({"the baseline of " + baseline.recorded_at, session.suite.per_process, {}},
                      std::move(then), session.runner);
  const auto current_arm =
      make_kernel_arm({"now", session.suite.per_process, {}}, std::move(now), session.runner);
  report.baseline_arm = baseline_arm->record();
  report.current_arm = current_arm->record();
  PURLIN_TRY(run_pairs(gate, {std::move(names), *baseline_arm, *current_arm}, session.random,
                       session.clock, session.options, &report.measurement));

  for (std::size_t i = 0; i < items.size(); ++i) {
    ReportItem item = std::move(items[i].report);
    item.result = gate.result(i);
    const bool moved =
        item.result.verdict == Verdict::kRegression || item.result.verdict == Verdict::kImprovement;
    if (moved && item.result.cause.empty()) {
      item.result.cause = difference(*items[i].now, *items[i].then);
      if (item.result.cause.empty()) {
        item.result.cause = "unknown";
        item.notes.push_back(
            "code and config are the baseline's: look for what else differs "
            "between the two folders, such as files the compiler reads");
      }
    }
    if (const std::string note = drift_note(item.recorded_p50_ns, item.result.baseline_ns);
        !note.empty())
      item.notes.push_back(note);
    report.items.push_back(std::move(item));
  }
  if (!options.profiles.empty())
    take_profiles(&report, *baseline_arm, *current_arm, options.profiles);
  report.seconds = static_cast<double>(session.clock.monotonic_ns() - begin) / 1e9;
  return report;
}

}  // namespace purlin::guard
