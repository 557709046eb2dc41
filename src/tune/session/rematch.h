// SPDX-License-Identifier: Apache-2.0
// Rematches: the leaders of a search, measured again while the device waits for compilers.
//
// Of many measured configs some lead by luck. Those that the finals would measure by now are
// measured by turns before: the fastest one and some rivals, each once a round, each round
// beginning with another. Only whole rounds count. A config is out once it is clearly slower than a
// rival of the same rounds, or once it fails. docs/design/rematches.md has the reasons. Belongs to
// one thread; `evaluations` outlive it, and only grow. Failure: of a config, is part of the round.
#pragma once

#include "model/evaluation.h"
#include "tune/session/finals.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::tune {

// One config in one round.
struct Rematch {
  Config config;
  double time_ms = 0;
  std::string problem;  // it failed; "" = it has a time
};
using RematchRound = std::vector<Rematch>;

// What came of them.
struct Rematched {
  int rounds = 0;           // those of the journal included
  std::size_t configs = 0;  // that were measured again
  std::size_t out = 0;      // of them
  double seconds = 0;       // of the device, in this run of the session
};

class Rematches {
 public:
  // No config takes part in more rounds than it has samples at most, except as the fastest.
  Rematches(const std::vector<Evaluation>& evaluations, const FinalsOptions& options,
            int most_rounds);

  // The evaluation to measure again, one batch of it; nullopt when no round would tell more. Each
  // is reported before the next is asked for.
  std::optional<std::size_t> next();
  // A batch without a sample has loaded the kernel, and its turn is still to come. The round that
  // is over by it.
  std::optional<RematchRound> report(const Evaluation& measured);
  // A round of an earlier run. Indices into the evaluations, in the order of the round.
  void recall(const RematchRound& round, const std::vector<std::size_t>& evaluations);

  bool is_out(std::size_t evaluation) const;
  const Rematched& outcome() const { return outcome_; }

 private:
  struct Record {
    std::map<int, double> times_ms;  // by round
    bool failed = false, slow = false;
  };
  struct Turn {
    std::size_t evaluation = 0;
    bool loaded = false;
    std::optional<Rematch> made{};
  };

  void begin_round();
  void take(const RematchRound& round, const std::vector<std::size_t>& evaluations);
  void judge(const std::vector<std::size_t>& evaluations);
  std::vector<Sample> ratios(std::size_t one, std::size_t other) const;

  const std::vector<Evaluation>& evaluations_;
  const FinalsOptions options_;
  const std::size_t most_rounds_;
  std::unordered_map<std::size_t, Record> records_;
  std::vector<Turn> turns_;  // of the round under way
  std::size_t turn_ = 0;
  std::size_t nothing_at_ = 0;  // as many evaluations showed that there is nothing to measure
  int failures_ = 0;
  Rematched outcome_;
};

}  // namespace purlin::tune
