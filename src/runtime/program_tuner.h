// SPDX-License-Identifier: Apache-2.0
// ProgramTuner: a program tunes its own kernel, one run at a time.
//
// The program asks for the config of its next run, runs its kernel with it, and says how long that
// took or that the result was wrong. So it can tune between two of its steps, on its own data, and
// goes on with the best config once the budget is spent. Behind it stands the session of `purlin
// tune` (tune/session/session.h): same strategies, racing, finals and journal. Thread-safety:
// belongs to one thread at a time. Failure: kInvalid for a wrong call; a session's own errors.
#pragma once

#include "base/time.h"
#include "cache/entry/entry.h"
#include "model/device/device.h"
#include "model/spec/spec.h"
#include "tune/session/session.h"
#include "tune/session/store_winner.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::runtime {

struct ProgramTunerOptions {
  std::string kernel, op;         // op "": as the kernel
  std::string strategy = "auto";  // as `purlin tune --strategy`
  std::string budget = "200";     // as `purlin tune --budget`
  std::uint64_t seed = 1;
  std::string session;  // folder of the journal; "": nothing is kept
  std::string device;   // what tells one device's journal from another's
  int warmups = 1;      // runs of a config that are not counted when it takes over
  int finals_rounds = 3;
  std::size_t lookahead = 1;  // configs that announced() names before their runs, at most
};

// The cache whose results of this kernel a search starts from, and in which it leaves its own.
struct ProgramTransfer {
  std::string directory;
  DeviceInfo device;
  std::string dtype, source_hash;
};

class ProgramTuner {
 public:
  explicit ProgramTuner(ProgramTunerOptions options, Clock& clock = system_clock());
  ~ProgramTuner();
  ProgramTuner(const ProgramTuner&) = delete;
  ProgramTuner& operator=(const ProgramTuner&) = delete;

  // The space, before start(). The preset is the default config's value.
  Status add_parameter(std::string_view name, std::vector<Value> values, const Value& preset);
  Status add_constraint(std::string_view text);
  // A dimension of the problem: constraints may name it, and the winner is stored for it.
  Status add_dimension(std::string_view name, std::int64_t extent, std::string_view bucket_rule);

  // Before start().
  Status transfer(ProgramTransfer from);

  // Builds the space and opens the journal.
  Status start();
  bool started() const { return session_ != nullptr; }
  std::size_t space_size() const { return space_ ? space_->size() : 0; }

  // The config of the next run; the best one once over(). kInvalid before start(). Lives until the
  // next report() or reject().
  Result<const Config*> next();
  // A config of one of the next runs, each once; nullptr without one. Lives until the next call.
  const Config* announced();
  // How long the program waited for that config to be compiled. Where waits are long, more configs
  // are asked for before their results.
  Status waited(double seconds);
  // How long that run took. Ignored once over.
  Status report(double time_ms);
  // That run failed, or its result was wrong: the config is out. `why` is for people.
  Status reject(EvaluationStatus how, std::string_view why);
  bool over() const { return over_; }

  // By the finals once over, by the search before; the default where nothing is known.
  const Config& best() const { return best_; }
  double best_time_ms() const { return best_time_ms_; }        // 0 = not measured
  double default_time_ms() const { return default_time_ms_; }  // 0 = not measured
  std::size_t evaluations() const;

  // The winner as the cache keeps it. kInvalid before over(), kNotFound when nothing worked.
  // `verified`: the program compared each candidate's output with a reference.
  Result<cache::Entry> entry(const DeviceInfo& device, std::string_view dtype,
                             std::string_view source_hash, bool verified) const;
  // Puts it into a cache, by the rule of `purlin tune` (tune/session/store_winner.h).
  // REQUIRES: entry() of this tuner gave it; its key may have been changed since.
  Result<tune::StoredWinner> store(cache::Store& store, const cache::Entry& entry) const;
  // Leaves the evaluations for later searches, where transfer() named a cache. REQUIRES: over().
  Status keep_evaluations() const;

 private:
  Result<std::vector<tune::PriorRun>> find_priors() const;
  Status finish_evaluation(Evaluation made);
  Status finish_session();
  void note_best();

  ProgramTunerOptions options_;
  Clock& clock_;
  KernelSpec spec_;
  ProblemShape problem_;
  std::optional<ProgramTransfer> transfer_;
  std::unique_ptr<tune::Space> space_;
  std::unique_ptr<tune::Strategy> strategy_;
  std::optional<tune::Journal> journal_;
  tune::SessionOptions session_options_;
  std::unique_ptr<tune::TuningSession> session_;
  std::optional<tune::TuningSession::Request> request_;  // the config being run
  std::vector<Config> announced_;                        // the next one last
  Config announced_now_;
  std::vector<Sample> samples_;
  std::vector<double> waits_s_;  // the last ones
  int warmups_left_ = 0;
  std::int64_t request_ns_ = 0;
  bool over_ = false;
  std::optional<tune::SessionResult> result_;
  Config best_;
  double best_time_ms_ = 0, default_time_ms_ = 0;
};

}  // namespace purlin::runtime
