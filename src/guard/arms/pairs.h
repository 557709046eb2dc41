// SPDX-License-Identifier: Apache-2.0
// Pairs: feeds a gate from two arms. A pair is two process launches, one per arm, back to back, in
// an order that a coin decides; both measure the same items in the same random order. That
// randomisation is what makes the gate's test exact, so it is not an option.
//
// Thread-safety: belongs to one thread. Failure: a Status only when the machine or the tool cannot
// go on; an item that fails in one arm becomes a verdict, and a pair that was taken on an unfit
// machine is thrown away, counted and taken again.
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
  int done = 0, at_most = 0;  // pairs of items; at_most is what the stage under way may still take
  double seconds = 0, left_s = 0;
};

struct PairsOptions {
  double time_limit_s = 0;  // >0: what is undecided then gets its last look
  // So many rejected pairs in a row say that the machine will not get better: the items become
  // invalid.
  int most_rejected = 6;
  // What it holds is replayed into the gate first; every pair is in it before it counts.
  PairJournal* journal = nullptr;
  // Watches the device while processes run; a launch it finds unfit does not count.
  Watch* watch = nullptr;
  std::optional<unsigned> locked_mhz;  // the clock is held meanwhile: for the record; 0 = base
  std::function<void(const PairProgress&)> progress;
};

// The two arms, and the items of the gate: number i of the gate is items[i], which both arms have.
struct Contest {
  std::vector<Item> items;
  Arm& baseline;
  Arm& current;
};

// What happened besides the verdicts.
struct PairsRecord {
  int replayed = 0;                  // pairs of items that came from the journal
  int launches = 0;                  // processes that were started for a pair
  int rejected_samples = 0;          // left out of readings that count
  int rejected_pairs = 0;            // of items; taken again
  std::vector<std::string> reasons;  // of rejected pairs, each once
  Conditions conditions;             // of all launches; readings = 0 = the device was not watched
  std::optional<int> neighbours;     // processes that were on the device from the start
  std::optional<unsigned> locked_mhz;

  void reject(const std::string& why);
  void merge(const PairsRecord& other);
};
Json to_json(const PairsRecord& record);

// Runs pairs of every item that the gate wants until it wants no more. First each arm runs each
// item once, unmeasured: an item that fails then never reaches a pair. One that fails in the
// current arm is invalid; one that fails in the baseline alone is inconclusive.
Status run_pairs(SuiteGate& gate, const Contest& contest, Random& random, Clock& clock,
                 const PairsOptions& options, PairsRecord* record = nullptr);

}  // namespace purlin::guard
