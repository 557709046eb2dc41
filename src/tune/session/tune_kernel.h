// SPDX-License-Identifier: Apache-2.0
// tune_kernel: one whole tuning of a kernel at one problem shape. It finds earlier results, runs
// the session, confirms the winner, and stores the winner in the cache.
//
// Free function; the caller owns every argument. One thread; `stop` may be set from any thread or
// from a signal handler. Failure: a Status when the session or the confirmation could not run. A
// winner that could not be stored is part of the outcome, with the reason.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "cache/entry/entry.h"
#include "tune/records/prior_search.h"
#include "tune/session/confirm.h"
#include "tune/session/report.h"
#include "tune/session/session.h"
#include "tune/session/subject.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace purlin::tune {

// The journal of the session. Sessions of recordings have none.
struct JournalRequest {
  std::string root;                // directory of all sessions
  std::vector<std::string> files;  // texts of the spec and its sources: other texts, other session
  bool restart = false;            // forget an interrupted session
};

// Where the winner goes. Winners of recordings are never stored.
struct StoreRequest {
  std::string directory;  // the cache; earlier results are read from it in any case
  bool store = true;
  int regret_shapes = 0;  // measure the regret at so many other shapes of the bucket
  Budget regret_budget;   // of the search at each of them
};

struct TuneRequest {
  std::string strategy = "auto";
  std::uint64_t seed = 1;  // of the strategy
  Budget budget;
  // A winner measured with other inputs than the spec asks for is not stored.
  measure::Policy policy;
  int finals = FinalsOptions{}.rounds;
  PriorOptions priors;    // for the strategies "auto" and "transfer"
  SubjectOptions opened;  // how the subject was opened: limits, objective, workers, `stop`
  JournalRequest journal;
  StoreRequest cache;
  std::function<void(const SessionState&)> on_progress;
  double spent_s = 0;  // of a budget in seconds, by what came before: the subject's start
  // The config of a valid entry of this key. If there is no interrupted session to continue, the
  // finals compare it with the default. Only if it does not hold, there is a search.
  std::optional<Config> known;
  // Called once, right after the search and the finals, before the confirmation.
  std::function<void()> on_session_end;
};

// One candidate of the confirmation, in the order tried.
struct ConfirmedCandidate {
  Config config;
  Confirmation confirmation;
};

struct TuneOutcome {
  SessionResult session;                          // the verdict is the one after the confirmation
  std::vector<ConfirmedCandidate> confirmations;  // empty: none was needed
  measure::Policy policy;                         // as measured
  std::string strategy_used;                      // the choice of "auto"
  std::vector<PriorSource> transfer_sources;
  std::optional<TransferOutcome> transfer;  // nullopt: it started from nothing
  std::string counters_problem;
  std::string session_directory;  // "" = no journal
  // The entry that was stored, with the directory. nullopt: see `not_stored` and `store_status`.
  std::optional<cache::Entry> entry;
  std::string stored_directory;
  std::vector<std::pair<ProblemShape, double>> bucket_regret;  // as measured, stored or not
  bool confirmed = false;  // `known` was not slower than the default; nothing was searched
  std::string not_stored;  // why the winner is not for the cache; "" = it is, or there is none
  Status store_status;     // not ok when the winner could not be stored

  bool stopped() const { return session.end == SessionResult::End::kStopped; }
  bool worked() const { return session.verdict.has_value(); }
  // Not ok when no config worked or the winner could not be stored.
  Status status() const;
};

Result<TuneOutcome> tune_kernel(const Subject& subject, const TuneRequest& request, Log& log);

// The input of report_document and report_text (report.h). Both arguments outlive it.
ReportInput report_input(const Subject& subject, const TuneRequest& request,
                         const TuneOutcome& outcome);
// The members that `purlin tune --json` adds: "confirmations".
Json to_json(const std::vector<ConfirmedCandidate>& confirmations);

}  // namespace purlin::tune
