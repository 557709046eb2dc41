// SPDX-License-Identifier: Apache-2.0
// BuildAhead: a queue of configs and the threads that build them ahead of the measurement.
//
// What a build is, is the caller's: a compilation in a worker process, or the commands of a spec.
// Shared by the evaluators of one session. Thread-safety: all calls, from any thread. Failure: a
// builder that cannot go on ends; without builders nothing is collected, and the caller builds.
#pragma once

#include "base/status.h"
#include "model/evaluation.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace purlin::tune {

struct PoolOptions {
  int compilers = 1;      // threads that build ahead; 0: the measuring one builds as well
  double timeout_s = 60;  // for building one config, for verifying it, and for measuring it
  // Ends the start of the measuring worker, and evaluations (kCancelled). Outlives the pool.
  const std::atomic<bool>* stop = nullptr;
};

// As many as help on this machine.
int default_compilers();
constexpr int kMostCompilers = 1024;  // that a user may ask for: each is a process and a thread

class BuildAhead {
 public:
  // One config; a Status ends the thread that builds.
  using Build = std::function<Result<Evaluation>(const Config& config)>;
  // Called once on each thread; `stop` ends builds. An empty function: this thread cannot build.
  using Start = std::function<Build(const std::atomic<bool>& stop)>;

  // `pause_to_measure`: builds would disturb the measurement, so they wait for it, and for what is
  // built and not collected.
  BuildAhead(Start start, int threads, bool pause_to_measure);
  ~BuildAhead();
  BuildAhead(const BuildAhead&) = delete;
  BuildAhead& operator=(const BuildAhead&) = delete;

  void announce(const Config& config);
  // Builds nothing more.
  void end();

  // The outcome of a build; waits while a thread works on it. nullopt when none has begun.
  // kCancelled: `is_over` says so before there is an outcome.
  Result<std::optional<Evaluation>> collect(const Config& config,
                                            const std::function<bool()>& is_over);

  // The first of these configs that collect() has at once; nullopt: none yet. What was never
  // announced, and what no thread can build any more, is built by the caller: it need not wait.
  std::optional<std::size_t> first_built(const std::vector<const Config*>& configs);

  // Between these two, nothing is built where it would disturb, unless `is_over`.
  void begin_measuring(const std::function<bool()>& is_over);
  void end_measuring();

 private:
  struct Job {
    enum State { kWaiting, kDone } state = kWaiting;
    std::optional<Evaluation> outcome;
  };

  void serve();
  bool may_build() const;
  std::optional<Config> next();
  void finish(const Config& config, const Result<Evaluation>& outcome);

  const Start start_;
  const bool pause_to_measure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Config> queue_;
  std::unordered_map<std::string, Job> jobs_;  // announced and not collected
  bool ending_ = false;
  std::atomic<bool> stop_{false};  // of the builds
  int measuring_ = 0, building_ = 0;
  int collecting_ = 0;  // calls that wait for a build
  int working_;         // threads that have not given up
  std::vector<std::thread> threads_;
};

}  // namespace purlin::tune
