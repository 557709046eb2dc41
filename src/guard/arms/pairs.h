// SPDX-License-Identifier: Apache-2.0
// Pairs: feeds a gate from two arms. A pair is two process launches, one per arm, back to back, in
// an order that a coin decides. Both measure the same items in the same random order. This
// randomisation makes the gate's test exact, so it is not an option.
//
// Thread-safety: belongs to one thread. Failure: a Status only when the machine or the tool cannot
// continue. An item that fails in one arm becomes a verdict. A pair taken on an unfit machine is
// dropped, counted and taken again.
#pragma once

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "guard/arms/arm.h"
#include "guard/arms/pair_journal.h"
#include "guard/arms/watch.h"
#include "guard/gate/gate.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace purlin::guard {

struct PairProgress {
  std::string doing;          // "verifying", "screening 12", "confirming 2 flagged"
  int done = 0, at_most = 0;  // pairs of items; at_most is the limit of the current stage
  double seconds = 0, left_s = 0;
};

struct PairsOptions {
  double time_limit_s = 0;  // >0: undecided items then get their last look
  // After so many rejected pairs in a row the machine is unfit: the items become invalid.
  int most_rejected = 6;
  // Its pairs are replayed into the gate first. Every new pair is written to it before it counts.
  PairJournal* journal = nullptr;
  // Watches the device while processes run. An unfit launch does not count.
  Watch* watch = nullptr;
  std::optional<unsigned> locked_mhz;  // the clock is locked meanwhile: for the record; 0 = base
  std::function<void(const PairProgress&)> progress;
};

// The two arms, and the items of the gate: number i of the gate is items[i], which both arms have.
struct Contest {
  std::vector<Item> items;
  Arm& baseline;
  Arm& current;
};

// The record of a comparison, without its verdicts.
struct PairsRecord {
  int replayed = 0;                  // Pairs of items from the journal.
  int launches = 0;                  // Processes started for a pair.
  int rejected_samples = 0;          // Left out of readings that count.
  int rejected_pairs = 0;            // Of items; taken again.
  std::vector<std::string> reasons;  // Of rejected pairs, each once.
  Conditions conditions;             // of all launches; readings = 0 = the device was not watched
  std::optional<int> neighbours;     // processes that were on the device from the start
  std::optional<unsigned> locked_mhz;

  void reject(const std::string& why);
  void merge(const PairsRecord& other);
};
Json to_json(const PairsRecord& record);

// Runs pairs of every item until the gate wants no more. First each arm runs each item once,
// unmeasured: an item that fails then never reaches a pair. An item that fails in the current arm
// is invalid. An item that fails in the baseline alone is inconclusive.
Status run_pairs(SuiteGate& gate, const Contest& contest, Random& random, Clock& clock,
                 const PairsOptions& options, PairsRecord* record = nullptr);

}  // namespace purlin::guard
