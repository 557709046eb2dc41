// SPDX-License-Identifier: Apache-2.0
// Gate: from pairs of process launches to verdicts, for one kernel and for a suite.
//
// The gate owns no clock and starts no process. It names the item that needs another pair, takes
// that pair, and decides at fixed looks. Live checks, recorded samples and the error-rate benchmark
// all run through it, so a proof for one holds for all.
//
// Two stages. Screening: every item at few pairs and a loose level; clear passes leave. Confirming:
// flagged items are measured again with fresh pairs, at the suite's level divided by the number of
// flagged items, split over the looks. The confirming pairs are fresh, so P(any false regression in
// the suite) <= suite_alpha for any screening result. A suite is small if the level divided by all
// its items suffices. It keeps the screening's pairs, because nothing was selected.
// docs/concepts/gate-statistics.md. Thread-safety: belongs to one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::guard {

enum class Verdict { kPass, kRegression, kImprovement, kInconclusive, kInvalid };
std::string_view verdict_name(Verdict verdict);  // "pass", …
// The verdict of a suite: the first that occurs of regression, invalid, inconclusive, improvement,
// pass. An empty suite is inconclusive.
Verdict worst_of(const std::vector<Verdict>& verdicts);
// 0 pass or improvement, 1 regression, 2 invalid, 3 inconclusive.
int exit_code(Verdict verdict);

// The measurement of one arm's process: medians over its iterations.
struct ArmReading {
  double time_ns = 0;
  double cycles = 0;         // of the SM clock; 0 = not recorded
  double resolution_ns = 0;  // smallest observed step of its timer; 0 = not known
};
struct Pair {
  ArmReading baseline, current;
};

struct Thresholds {
  double detectable = 0.05;      // slowdown to detect, relative; sets the number of pairs
  double floor = 0.02;           // smaller slowdowns never block, however significant
  double absolute_floor_ns = 0;  // the same in time: see floor_of()
};

// The smallest slowdown of a kernel that may block, relative: the largest of the floor, the
// absolute floor, two steps of the timer, and 30 cycles. Below two steps a median only shows its
// side of a step. Code placement alone was seen to move 30 cycles.
inline constexpr double kFloorSteps = 2, kFloorCycles = 30;
double floor_of(const Thresholds& thresholds, double time_ns, double resolution_ns, double cycles);

struct Design {
  std::vector<int> screen_looks = {8, 16, 32};  // pairs, ascending
  double screen_alpha = 0.05;
  std::vector<int> confirm_looks = {10, 20, 40};        // fresh pairs, ascending
  std::vector<double> confirm_split = {0.2, 0.3, 0.5};  // of the item's share of suite_alpha
  double suite_alpha = 0.01;
  bool one_stage_if_small = true;  // see above; the looks are then those of confirming
  // The maximum number of existing pairs of an item; 0 = no limit. Too few pairs for two stages are
  // used in one stage, if that can reach the level of all items.
  int available = 0;
  double futility_tail = 0.01;   // leaves early once the slowdown is below detectable at this level
  double interval_tail = 0.025;  // of the reported interval, each side
};

// The two arms compared: ratio is current / baseline, above 1 = slower.
struct Effect {
  int pairs = 0;
  double ratio = 1, low = 1, high = 1;  // Hodges-Lehmann, and its interval
  double confidence = 0;                // of the interval, achieved
  double p_slower = 1, p_faster = 1;    // one-sided, exact
};
// REQUIRES: not empty, times positive.
Effect effect_of(const std::vector<Pair>& pairs, double interval_tail);
// The same in cycles; pairs = 0 unless every pair has them.
Effect cycle_effect_of(const std::vector<Pair>& pairs, double interval_tail);

struct ItemResult {
  Verdict verdict = Verdict::kInconclusive;
  Effect effect;  // of the pairs that decided (the fresh ones once confirming)
  Effect cycles;  // pairs = 0 when clocks were not recorded
  int pairs = 0;  // all pairs spent on the item
  double baseline_ns = 0, current_ns = 0;  // medians over the deciding pairs
  double floor = 0, detectable = 0;        // as applied, with the absolute floor
  std::string cause;                       // "clocks" when time moved and cycles did not; else ""
  std::string reason;                      // a sentence on the verdict, for a person
};

class SuiteGate {
 public:
  SuiteGate(const std::vector<Thresholds>& items, Design design);

  // Items that need one more pair now; empty once everything is decided.
  std::vector<std::size_t> wanted() const;
  void add(std::size_t item, const Pair& pair);
  // The item cannot be measured: kInvalid or kInconclusive, with the reason.
  void give_up(std::size_t item, Verdict verdict, std::string reason);
  // No more pairs follow for the item: one last look at its pairs. True if it wanted more.
  bool last_look(std::size_t item);
  // The same for all: a time limit passed.
  void finish();

  bool done() const { return wanted().empty(); }
  ItemResult result(std::size_t item) const;
  std::size_t size() const { return items_.size(); }
  // Pairs spent, and the maximum including those still needed, for progress.
  int pairs_done() const;
  int pairs_at_most() const;
  int flagged() const { return flagged_; }

 private:
  enum class Stage { kScreen, kFlagged, kConfirm, kDone };
  struct Item {
    Thresholds thresholds;
    Stage stage = Stage::kScreen;
    std::vector<Pair> pairs;  // of this stage
    int spent = 0;            // in earlier stages
    std::size_t look = 0;
    std::vector<double> alphas;  // of the confirming looks
    ItemResult result;
  };
  void screen(Item& item, bool last);
  void confirm(Item& item, bool last);
  void start_confirming();
  bool one_stage() const;
  ItemResult measure(const Item& item) const;

  std::vector<Item> items_;
  Design design_;
  int flagged_ = 0;
};

// Levels of the confirming looks for one of `flagged` items. A look too small to reject at its
// level (2^-pairs) adds its level to the next. Sums to at most design.suite_alpha / flagged.
std::vector<double> confirming_levels(const Design& design, int flagged);

}  // namespace purlin::guard
