// SPDX-License-Identifier: Apache-2.0
// TuningSession: searches a space under a budget and decides on the winner.
//
// A session names the next measurement and receives its result. Any caller may drive it: for one
// device, for several at once, or in a program that tunes its own kernel between two of its steps.
// The default config is evaluated first. Each evaluation is in the journal before it counts. The
// contents of a journal are not evaluated again: the strategy is asked as before and receives the
// journal's results. Results reach the strategy when they arrive, so that it chooses by all that is
// known. Evaluations end early once they cannot come within reach of the best (racing).
// A budget in evaluations counts configs that were measured. What is out before that is free, until
// as many are as the budget has: each was compiled.
// At the end the fastest few, and the default, are measured again in turns (finals.h), so that
// drifting clocks affect all alike. A budget in seconds includes the finals: the search leaves them
// time, and no evaluation outlasts the budget except the default's. Thread-safety: belongs to one
// thread; `stop` may be set from any, or from a signal handler.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "tune/search/strategy.h"
#include "tune/session/budget.h"
#include "tune/session/evaluator.h"
#include "tune/session/finals.h"
#include "tune/session/journal.h"
#include "tune/session/rematch.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::tune {

// For a progress line.
struct SessionState {
  std::size_t done = 0;     // evaluations that the budget counts, those of the journal included
  std::size_t resumed = 0;  // of them from the journal
  double elapsed_s = 0;     // against Budget::seconds
  double spent = 0;         // share of the budget, in [0, 1]
  const Evaluation* last = nullptr;
  const Evaluation* best = nullptr;
  std::array<std::size_t, 8> by_status{};   // how evaluations ended, by EvaluationStatus
  const Config* current = nullptr;          // the one that is begun
  int finals_round = 0, finals_rounds = 0;  // from 1, of so many; 0 = in the search
};

struct SessionOptions {
  Budget budget;
  measure::Policy policy;
  FinalsOptions finals;
  // Other than the time: the policy measures the energy.
  Objective objective = Objective::kTime;
  // A further condition on a measured config, next to those of the spec. A config that fails it is
  // kInvalid, for the reason it returns. May be empty.
  std::function<Status(const Evaluation&)> accept;
  std::optional<Config> default_config;  // evaluated first, and measured again in the finals
  // Called when an evaluation begins and when one ends.
  std::function<void(const SessionState&)> on_progress;
  const std::atomic<bool>* stop = nullptr;
  double spent_s = 0;  // of a budget in seconds, before the session
};

struct SessionResult {
  enum class End { kBudget, kSpace, kStopped };
  std::vector<Evaluation> evaluations;  // in the order made
  std::size_t resumed = 0;              // so many of them came from the journal
  End end = End::kBudget;
  std::optional<std::size_t> default_evaluation;  // index into evaluations
  std::string default_problem;                    // why there is none though one was given
  std::optional<Verdicts> verdict;                // none when nothing worked
  double elapsed_s = 0;                           // wall time, earlier runs of the session included
  double noise = 0;  // measure::pooled_noise of the search; 0 = not known
  Rematched rematched;
};

std::string_view end_name(SessionResult::End end);  // "budget", "space", "stopped"

// Where a session's evaluations are made.
struct SessionTraits {
  bool executes = true;       // Evaluator::executes
  std::size_t lookahead = 1;  // how many configs it is worth knowing ahead
  std::size_t devices = 1;    // at work at once
  bool guesses = false;       // it is also worth knowing what may be asked for (Strategy::likely)
  bool repeats = false;       // Evaluator::repeats
};

class TuningSession {
 public:
  // All outlive it. `journal` may be nullptr: nothing is kept.
  TuningSession(const Space& space, Strategy& strategy, Journal* journal,
                const SessionOptions& options, const SessionTraits& traits,
                Clock& clock = system_clock());
  ~TuningSession();
  TuningSession(const TuningSession&) = delete;
  TuningSession& operator=(const TuningSession&) = delete;

  struct Request {
    std::size_t id = 0;
    Config config;
    measure::Policy policy;
    bool finals = false;   // on one device all, one at a time
    bool rematch = false;  // a batch (Evaluator::repeat), on the device of the finals
  };
  // Which of the configs that wait, the longest waiting first; nullopt: none of them yet.
  using Choose = std::function<std::optional<std::size_t>(const std::vector<const Config*>&)>;
  // What to measure next. Several may be out at once, lookahead at most. nullopt: nothing until one
  // that is out is reported, or until `choose` chooses; otherwise the session is over. Without
  // `choose`, it is the config that waits longest.
  Result<std::optional<Request>> next(const Choose& choose = {});
  // What to measure again while next() has nothing that is built: a batch of a leader (rematch.h).
  // One is out at a time. nullopt: nothing by now.
  std::optional<Request> next_rematch();
  Status report(const Request& request, Evaluation made);
  // A request whose evaluation was stopped: nothing is known of the config. A budget in seconds is
  // then spent.
  Status abandon(const Request& request);
  // Configs that will be asked for soon, each once: worth compiling. Before next(), they are those
  // among which it chooses.
  std::vector<Config> announced();
  // Once it is over, or earlier: what there is by now.
  Result<SessionResult> result();
  const std::vector<Evaluation>& evaluations() const;
  // The best so far, by the search's own measurement; an index into evaluations().
  std::optional<std::size_t> best() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole session. With several evaluators, of devices of one model, each has its own thread.
// Configs are announced to the first, and the finals are held on it. A config that is built is not
// kept waiting by one that is still being built.
Result<SessionResult> run_session(const Space& space, Strategy& strategy,
                                  const std::vector<Evaluator*>& evaluators, Journal* journal,
                                  const SessionOptions& options, Clock& clock = system_clock());
Result<SessionResult> run_session(const Space& space, Strategy& strategy, Evaluator& evaluator,
                                  Journal* journal, const SessionOptions& options,
                                  Clock& clock = system_clock());

}  // namespace purlin::tune
