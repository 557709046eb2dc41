// SPDX-License-Identifier: Apache-2.0
#include "guard/check/compare.h"

#include "base/text.h"
#include "guard/check/evidence.h"
#include "guard/suite/baseline.h"
#include "model/document.h"

#include <algorithm>
#include <fnmatch.h>
#include <map>
#include <optional>
#include <set>

namespace purlin::guard {
namespace {

struct Missing {
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;
};

// Items of both arms, the baseline's order first, and why one of them cannot be compared.
struct Union {
  std::vector<Item> items;
  std::vector<std::optional<Missing>> missing;
  std::vector<std::string> notes;  // on what skips itself in both arms

  bool nothing_to_compare() const {
    return std::all_of(missing.begin(), missing.end(),
                       [](const auto& one) { return one.has_value(); });
  }
};

using Reasons = std::map<Item, std::string>;

Reasons reasons_of(const Arm& arm) {
  Reasons reasons;
  for (const SkippedItem& skipped : arm.skipped()) reasons.emplace(skipped.item, skipped.reason);
  return reasons;
}

Missing missing_now(const Item& item, const Arm& current, const Reasons& skipped) {
  const auto found = skipped.find(item);
  if (found != skipped.end())
    return {Verdict::kInvalid, "it was measured before, and now " + found->second};
  return {Verdict::kInconclusive,
          fmt::format("{} does not have it, so there is nothing to compare", current.label())};
}

Missing missing_before(const Item& item, const Arm& baseline, const Reasons& skipped) {
  const auto found = skipped.find(item);
  const std::string why = found == skipped.end() ? "does not have it" : "has no time of it";
  return {Verdict::kInconclusive,
          fmt::format("{} {}{}, so there is nothing to compare", baseline.label(), why,
                      found == skipped.end() ? "" : " (" + found->second + ")")};
}

// One note for each reason, with the names.
std::vector<std::string> skip_notes(const Reasons& then, const Reasons& now,
                                    const std::function<bool(const Item&)>& wanted) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [item, reason] : now)
    if (then.count(item) != 0 && wanted(item)) by_reason[reason].push_back(item.text());
  std::vector<std::string> notes;
  for (const auto& [reason, names] : by_reason)
    notes.push_back(fmt::format("not compared in either arm, {} ({}): {}",
                                counted(names.size(), "item"), reason, join(names, ", ")));
  return notes;
}

Union unite(const Arm& baseline, const Arm& current, const std::string& filter) {
  const auto wanted = [&](const Item& item) {
    return filter.empty() || ::fnmatch(filter.c_str(), item.text().c_str(), 0) == 0;
  };
  const std::set<Item> then(baseline.items().begin(), baseline.items().end());
  const std::set<Item> now(current.items().begin(), current.items().end());
  const Reasons skipped_then = reasons_of(baseline), skipped_now = reasons_of(current);
  Union both;
  for (const Item& item : baseline.items()) {
    if (!wanted(item)) continue;
    both.items.push_back(item);
    both.missing.emplace_back();
    if (now.count(item) == 0) both.missing.back() = missing_now(item, current, skipped_now);
  }
  for (const Item& item : current.items()) {
    if (then.count(item) != 0 || !wanted(item)) continue;
    both.items.push_back(item);
    both.missing.emplace_back(missing_before(item, baseline, skipped_then));
  }
  both.notes = skip_notes(skipped_then, skipped_now, wanted);
  return both;
}

Json identity_of(const CompareSetup& setup, const Union& both,
                 const std::vector<Thresholds>& thresholds) {
  Json identity = new_document("purlin.guard-pairs/1", setup.environment);
  identity.set("baseline", setup.baseline.fingerprint());
  identity.set("current", setup.current.fingerprint());
  Json items = Json::array();
  for (std::size_t i = 0; i < both.items.size(); ++i)
    items.push(Json::object({{"item", both.items[i].text()},
                             {"detectable", thresholds[i].detectable},
                             {"floor", thresholds[i].floor},
                             {"absolute_floor_ns", thresholds[i].absolute_floor_ns}}));
  identity.set("items", std::move(items));
  identity.set("design",
               Json::object({{"screen_looks", Json::array_of(setup.design.screen_looks)},
                             {"screen_alpha", setup.design.screen_alpha},
                             {"confirm_looks", Json::array_of(setup.design.confirm_looks)},
                             {"confirm_split", Json::array_of(setup.design.confirm_split)},
                             {"suite_alpha", setup.design.suite_alpha}}));
  if (!setup.environment.devices.empty()) {
    const DeviceInfo& device = setup.environment.devices.front();
    identity.set("device", Json::array({device.uuid, device.name, device.driver, device.toolkit}));
  }
  return identity;
}

}  // namespace

Result<Report> compare(const CompareSetup& setup) {
  const std::int64_t begin = setup.clock.monotonic_ns();
  PURLIN_TRY(setup.baseline.prepare());
  PURLIN_TRY(setup.current.prepare());
  const Union both = unite(setup.baseline, setup.current, setup.filter);
  if (both.nothing_to_compare())
    return error(Code::kInvalid, "'{}' and '{}' have no item in common{}; the first has {}{}",
                 setup.baseline.label(), setup.current.label(),
                 setup.filter.empty() ? "" : " that matches '" + setup.filter + "'",
                 setup.baseline.items().empty() ? "none" : setup.baseline.items()[0].text(),
                 both.notes.empty() ? "" : "; " + both.notes.front());
  std::vector<Thresholds> thresholds;
  for (const Item& item : both.items)
    thresholds.push_back(setup.thresholds ? setup.thresholds(item) : Thresholds{});

  PairsOptions options = setup.options;
  std::optional<PairJournal> journal;
  if (!setup.journal.empty()) {
    PURLIN_ASSIGN(
        PairJournal opened,
        PairJournal::open(setup.journal, identity_of(setup, both, thresholds), both.items.size()));
    journal.emplace(std::move(opened));
    options.journal = &*journal;
  }
  SuiteGate gate(thresholds, setup.design);
  for (std::size_t i = 0; i < both.items.size(); ++i)
    if (both.missing[i]) gate.give_up(i, both.missing[i]->verdict, both.missing[i]->reason);
  Report report;
  report.notes = both.notes;
  if (setup.needs_record) {
    const std::vector<std::string> missing = missing_facts(
        setup.environment.devices.empty() ? DeviceInfo{} : setup.environment.devices.front());
    for (std::size_t i = 0; i < both.items.size() && !missing.empty(); ++i)
      gate.give_up(i, Verdict::kInvalid,
                   "the record of this run would lack " + join(missing, ", "));
  }
  PURLIN_TRY(run_pairs(gate, {both.items, setup.baseline, setup.current}, setup.random, setup.clock,
                       options, &report.measurement));
  report.suite = setup.name;
  report.environment = setup.environment;
  report.baseline_arm = setup.baseline.record();
  report.current_arm = setup.current.record();
  for (std::size_t i = 0; i < both.items.size(); ++i) {
    ReportItem item;
    item.kernel = both.items[i].kernel;
    item.shape = both.items[i].shape;
    item.variant = both.items[i].variant;
    item.result = gate.result(i);
    const bool moved =
        item.result.verdict == Verdict::kRegression || item.result.verdict == Verdict::kImprovement;
    if (moved && item.result.cause.empty()) item.result.cause = setup.cause;
    report.items.push_back(std::move(item));
  }
  if (!setup.profiles.empty())
    take_profiles(&report, setup.baseline, setup.current, setup.profiles);
  if (setup.baseline.fingerprint() == setup.current.fingerprint())
    report.notes.emplace_back("both arms are the same, so any difference is a false alarm");
  report.seconds = static_cast<double>(setup.clock.monotonic_ns() - begin) / 1e9;
  return report;
}

}  // namespace purlin::guard
