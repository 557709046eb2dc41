// SPDX-License-Identifier: Apache-2.0
#include "guard/gate/gate.h"

#include "base/text.h"
#include "guard/gate/signed_rank.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace purlin::guard {
namespace {

Effect effect_on(const std::vector<double>& logs, double interval_tail) {
  Effect effect;
  effect.pairs = static_cast<int>(logs.size());
  if (logs.empty()) return effect;
  const SignedRank test = signed_rank_test(logs);
  const ExactInterval interval = walsh_interval(logs, interval_tail);
  effect.ratio = std::exp(hodges_lehmann(logs));
  effect.low = std::exp(interval.low);
  effect.high = std::exp(interval.high);
  effect.confidence = interval.confidence;
  effect.p_slower = test.p_greater;
  effect.p_faster = test.p_less;
  return effect;
}

std::vector<double> log_ratios(const std::vector<Pair>& pairs) {
  std::vector<double> logs;
  for (const Pair& pair : pairs)
    logs.push_back(std::log(pair.current.time_ns / pair.baseline.time_ns));
  return logs;
}

// Upper bound of the slowdown at the level `tail`; infinite for too few pairs.
double upper_bound(const std::vector<Pair>& pairs, double tail) {
  if (std::ldexp(1.0, -static_cast<int>(pairs.size())) > tail) return HUGE_VAL;
  return std::exp(walsh_interval(log_ratios(pairs), tail).high);
}

std::string may_be(double bound) {
  return std::isinf(bound) ? "so few cannot bound it"
                           : fmt::format("it may be {:+.1f} %", (bound - 1) * 100);
}

std::string percent(double ratio) { return fmt::format("{:+.1f} %", (ratio - 1) * 100); }

// The level at which the clocks of the arms must differ to be named as the cause.
constexpr double kClockLevel = 0.01;

// Time moved by more than the floor, and the work in cycles did not. The estimate in cycles is
// below the floor, its interval excludes the ratio of times, and the same test shows different
// clocks. A clock with few readings makes cycles noisier than time; such cycles explain nothing.
bool clocks_explain(const ItemResult& result, const std::vector<Pair>& pairs) {
  const Effect &time = result.effect, &cycles = result.cycles;
  if (cycles.pairs == 0) return false;
  std::vector<double> clocks;  // of each pair: how much slower the clock was
  for (const Pair& pair : pairs)
    clocks.push_back(std::log(pair.current.time_ns / pair.current.cycles) -
                     std::log(pair.baseline.time_ns / pair.baseline.cycles));
  const SignedRank test = signed_rank_test(clocks);
  if (time.ratio >= 1)
    return cycles.ratio < 1 + result.floor && cycles.high < time.ratio &&
           test.p_greater <= kClockLevel;
  return cycles.ratio > 1 / (1 + result.floor) && cycles.low > time.ratio &&
         test.p_less <= kClockLevel;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kRegression:
      return "regression";
    case Verdict::kImprovement:
      return "improvement";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kInvalid:
      return "invalid";
  }
  return "invalid";
}

Verdict worst_of(const std::vector<Verdict>& verdicts) {
  for (const Verdict verdict : {Verdict::kRegression, Verdict::kInvalid, Verdict::kInconclusive,
                                Verdict::kImprovement, Verdict::kPass})
    if (std::find(verdicts.begin(), verdicts.end(), verdict) != verdicts.end()) return verdict;
  return Verdict::kInconclusive;
}

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
    case Verdict::kImprovement:
      return 0;
    case Verdict::kRegression:
      return 1;
    case Verdict::kInvalid:
      return 2;
    case Verdict::kInconclusive:
      return 3;
  }
  return 2;
}

Effect effect_of(const std::vector<Pair>& pairs, double interval_tail) {
  return effect_on(log_ratios(pairs), interval_tail);
}

Effect cycle_effect_of(const std::vector<Pair>& pairs, double interval_tail) {
  std::vector<double> logs;
  for (const Pair& pair : pairs) {
    if (pair.baseline.cycles <= 0 || pair.current.cycles <= 0) return {};
    logs.push_back(std::log(pair.current.cycles / pair.baseline.cycles));
  }
  return effect_on(logs, interval_tail);
}

double floor_of(const Thresholds& thresholds, double time_ns, double resolution_ns, double cycles) {
  const double absolute = std::max(thresholds.absolute_floor_ns, kFloorSteps * resolution_ns);
  const double floor = std::max(thresholds.floor, absolute / time_ns);
  return cycles > 0 ? std::max(floor, kFloorCycles / cycles) : floor;
}

std::vector<double> confirming_levels(const Design& design, int flagged) {
  std::vector<double> levels;
  double carried = 0;
  for (std::size_t i = 0; i < design.confirm_looks.size(); ++i) {
    const double level =
        carried + design.confirm_split[i] * design.suite_alpha / std::max(flagged, 1);
    const bool useless = level < std::ldexp(1.0, -design.confirm_looks[i]);
    levels.push_back(useless ? 0 : level);
    carried = useless ? level : 0;
  }
  return levels;
}

SuiteGate::SuiteGate(const std::vector<Thresholds>& items, Design design)
    : design_(std::move(design)) {
  for (const Thresholds& thresholds : items) {
    Item item;
    item.thresholds = thresholds;
    items_.push_back(std::move(item));
  }
}

std::vector<std::size_t> SuiteGate::wanted() const {
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (items_[i].stage == Stage::kScreen || items_[i].stage == Stage::kConfirm) items.push_back(i);
  return items;
}

void SuiteGate::add(std::size_t index, const Pair& pair) {
  Item& item = items_[index];
  if (item.stage != Stage::kScreen && item.stage != Stage::kConfirm) return;
  item.pairs.push_back(pair);
  const auto& looks = item.stage == Stage::kScreen ? design_.screen_looks : design_.confirm_looks;
  if (static_cast<int>(item.pairs.size()) < looks[item.look]) return;
  const bool last = item.look + 1 == looks.size();
  item.stage == Stage::kScreen ? screen(item, last) : confirm(item, last);
  ++item.look;
  start_confirming();
}

void SuiteGate::give_up(std::size_t index, Verdict verdict, std::string reason) {
  Item& item = items_[index];
  item.result = measure(item);
  item.result.verdict = verdict;
  item.result.reason = std::move(reason);
  item.stage = Stage::kDone;
  start_confirming();
}

bool SuiteGate::last_look(std::size_t index) {
  Item& item = items_[index];
  if (item.stage != Stage::kScreen && item.stage != Stage::kConfirm) return false;
  item.stage == Stage::kScreen ? screen(item, true) : confirm(item, true);
  start_confirming();
  return true;
}

void SuiteGate::finish() {
  // Twice: confirming starts only after the screening of all items.
  for (int stage = 0; stage < 2; ++stage)
    for (std::size_t i = 0; i < items_.size(); ++i) (void)last_look(i);
}

ItemResult SuiteGate::result(std::size_t index) const {
  const Item& item = items_[index];
  ItemResult result = item.stage == Stage::kDone ? item.result : measure(item);
  result.pairs = item.spent + static_cast<int>(item.pairs.size());
  return result;
}

int SuiteGate::pairs_done() const {
  int done = 0;
  for (const Item& item : items_) done += item.spent + static_cast<int>(item.pairs.size());
  return done;
}

int SuiteGate::pairs_at_most() const {
  int most = 0;
  for (const Item& item : items_) {
    most += item.spent + static_cast<int>(item.pairs.size());
    // Up to the next look of this stage. The number of items still to be flagged is unknown.
    if (item.stage == Stage::kScreen)
      most += design_.screen_looks[item.look] - static_cast<int>(item.pairs.size());
    if (item.stage == Stage::kConfirm)
      most += design_.confirm_looks[item.look] - static_cast<int>(item.pairs.size());
    if (item.stage == Stage::kFlagged) most += design_.confirm_looks.front();
  }
  return most;
}

ItemResult SuiteGate::measure(const Item& item) const {
  ItemResult result;
  result.floor = item.thresholds.floor;
  result.detectable = item.thresholds.detectable;
  if (item.pairs.empty()) return result;
  std::vector<double> baseline, current, cycles, steps;
  for (const Pair& pair : item.pairs) {
    baseline.push_back(pair.baseline.time_ns);
    current.push_back(pair.current.time_ns);
    cycles.push_back(pair.baseline.cycles);
    for (const ArmReading& reading : {pair.baseline, pair.current})
      if (reading.resolution_ns > 0) steps.push_back(reading.resolution_ns);
  }
  result.baseline_ns = median_of(baseline);
  result.current_ns = median_of(current);
  // The smallest step of any process is the nearest to the timer's. Some processes have no repeated
  // time and so no step. If most have none, the timer is fine enough.
  const bool coarse = steps.size() > item.pairs.size();
  const double resolution = coarse ? *std::min_element(steps.begin(), steps.end()) : 0;
  result.floor = floor_of(item.thresholds, result.baseline_ns, resolution, median_of(cycles));
  // The detectable slowdown stays as far above the floor as in the thresholds. Otherwise no number
  // of pairs could find it.
  result.detectable = result.floor + (item.thresholds.detectable - item.thresholds.floor);
  result.effect = effect_of(item.pairs, design_.interval_tail);
  result.cycles = cycle_effect_of(item.pairs, design_.interval_tail);
  return result;
}

void SuiteGate::screen(Item& item, bool last) {
  ItemResult result = measure(item);
  const Effect& effect = result.effect;
  const bool slower = effect.p_slower <= design_.screen_alpha && effect.ratio >= 1 + result.floor;
  const bool faster =
      effect.p_faster <= design_.screen_alpha && effect.ratio <= 1 / (1 + result.floor);
  const int first = design_.screen_looks.front();
  if (effect.pairs < first && effect.pairs > 0) {
    result.reason =
        fmt::format("only {}; at least {} are needed", counted(effect.pairs, "pair"), first);
  } else if (effect.pairs == 0) {
    result.reason = "no pair was measured";
  } else if (slower || faster) {
    item.stage = Stage::kFlagged;
    item.result = std::move(result);
    return;
  } else {
    const double bound = upper_bound(item.pairs, design_.futility_tail);
    if (bound < 1 + result.detectable) {
      result.verdict = Verdict::kPass;
      result.reason = fmt::format("slower by less than {:.1f} % ({})", (bound - 1) * 100,
                                  counted(effect.pairs, "pair"));
      if (bound <= 1) result.reason = fmt::format("not slower ({})", counted(effect.pairs, "pair"));
    } else if (last) {
      result.reason = fmt::format("too noisy: {} after {}, and {}", percent(effect.ratio),
                                  counted(effect.pairs, "pair"), may_be(bound));
    } else {
      return;  // more pairs, then the next look
    }
  }
  item.result = std::move(result);
  item.stage = Stage::kDone;
}

void SuiteGate::start_confirming() {
  int flagged = 0;
  for (const Item& item : items_) {
    if (item.stage == Stage::kScreen) return;  // the level needs the final number of flagged items
    if (item.stage == Stage::kFlagged) ++flagged;
  }
  if (flagged == 0) return;
  flagged_ = flagged;
  const bool keep = one_stage();
  const int shared_by = keep ? static_cast<int>(items_.size()) : flagged;
  const std::vector<double> levels = confirming_levels(design_, shared_by);
  for (Item& item : items_) {
    if (item.stage != Stage::kFlagged) continue;
    item.stage = Stage::kConfirm;
    item.look = 0;
    item.alphas = levels;
    if (keep) {
      // Go to the first look ahead, and add the levels of the skipped looks to it.
      const int pairs = static_cast<int>(item.pairs.size());
      for (; item.look + 1 < levels.size() && design_.confirm_looks[item.look] <= pairs;
           ++item.look)
        item.alphas[item.look + 1] += item.alphas[item.look];
    } else {
      item.spent = static_cast<int>(item.pairs.size());
      item.pairs.clear();  // the suite's level relies on fresh pairs
    }
  }
}

bool SuiteGate::one_stage() const {
  // Uses only numbers known before any measurement: data here would be a selection.
  if (!design_.one_stage_if_small) return false;
  const double share = design_.suite_alpha / static_cast<double>(items_.size());
  const std::vector<int>& looks = design_.confirm_looks;
  if (design_.confirm_split.front() * share >= std::ldexp(1.0, -looks.front())) return true;
  const int two_stages =
      design_.screen_looks.front() + looks[std::min<std::size_t>(1, looks.size() - 1)];
  return design_.available > 0 && design_.available < two_stages &&
         share >= std::ldexp(1.0, -design_.available);
}

void SuiteGate::confirm(Item& item, bool last) {
  ItemResult result = measure(item);
  const Effect& effect = result.effect;
  // An early last look may spend the levels of all later looks.
  double level = 0;
  for (std::size_t i = item.look; i < item.alphas.size(); ++i) {
    level += item.alphas[i];
    if (!last) break;
  }
  const bool slower = level > 0 && effect.p_slower <= level;
  const bool faster = level > 0 && effect.p_faster <= level;
  const double bound = upper_bound(item.pairs, design_.futility_tail);
  const std::string pairs = counted(effect.pairs, one_stage() ? "pair" : "fresh pair");
  // The flagged size and sign persist: worth another look, but not yet certain.
  const bool persists =
      (effect.p_slower <= design_.screen_alpha && effect.ratio >= 1 + result.floor) ||
      (effect.p_faster <= design_.screen_alpha && effect.ratio <= 1 / (1 + result.floor));
  if (effect.pairs == 0) {
    result = item.result;
    result.verdict = Verdict::kInconclusive;
    result.reason = fmt::format("screening found {}; no fresh pairs were left to confirm it",
                                percent(result.effect.ratio));
  } else if (slower && effect.ratio >= 1 + result.floor) {
    result.verdict = Verdict::kRegression;
    result.reason = "slower, by " + pairs;
    if (clocks_explain(result, item.pairs)) {
      result.verdict = Verdict::kInconclusive;
      result.cause = "clocks";
      result.reason = fmt::format("time moved {} but cycles {}: the clock, not the work",
                                  percent(effect.ratio), percent(result.cycles.ratio));
    }
  } else if (faster && effect.ratio <= 1 / (1 + result.floor)) {
    result.verdict = Verdict::kImprovement;
    result.reason = "faster, by " + pairs;
    if (clocks_explain(result, item.pairs)) {
      result.verdict = Verdict::kPass;
      result.cause = "clocks";
      result.reason = fmt::format("time moved {} but cycles {}: the clock, not the work",
                                  percent(effect.ratio), percent(result.cycles.ratio));
    }
  } else if (persists && !last) {
    return;
  } else if (bound < 1 + result.detectable) {
    result.verdict = Verdict::kPass;
    result.reason = slower ? fmt::format("slower by {}, below the floor of {:.1f} %",
                                         percent(effect.ratio), result.floor * 100)
                           : "not confirmed by " + pairs;
  } else if (last) {
    result.reason = fmt::format("{} after {} is not certain, and {}", percent(effect.ratio), pairs,
                                may_be(bound));
  } else {
    return;
  }
  item.result = std::move(result);
  item.stage = Stage::kDone;
}

}  // namespace purlin::guard
