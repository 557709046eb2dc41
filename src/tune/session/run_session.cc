// SPDX-License-Identifier: Apache-2.0
// Drives a session with one evaluator, or with several at once.
#include "tune/session/session.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace purlin::tune {
namespace {

Status take_result(TuningSession& session, const TuningSession::Request& request,
                   Result<Evaluation> made) {
  if (made.is_ok()) return session.report(request, std::move(made).value());
  // The session goes on to its end, or stops.
  if (made.status().code() == Code::kCancelled) return session.abandon(request);
  return made.status();
}

// An evaluator on a separate thread, with the evaluations that were given to it. give(), done() and
// take() are for the session's thread.
class Lane {
 public:
  Lane(Evaluator& evaluator, std::mutex& mutex, std::condition_variable& changed)
      : evaluator_(evaluator), mutex_(mutex), changed_(changed), thread_([this] { serve(); }) {}
  ~Lane() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Evaluator& evaluator() { return evaluator_; }
  // Given and not taken.
  std::size_t pending() const { return pending_; }
  // One that waits while another is evaluated, where choosing it may go on meanwhile.
  std::size_t most_pending() const { return evaluator_.runs_beside() ? 2 : 1; }
  void give(TuningSession::Request request) {
    ++pending_;
    {
      const std::lock_guard lock(mutex_);
      given_.push_back({std::move(request), system_clock().monotonic_ns()});
    }
    changed_.notify_all();
  }
  // REQUIRES: the mutex is held.
  bool done() const { return !made_.empty(); }
  std::pair<TuningSession::Request, Result<Evaluation>> take() {
    --pending_;
    const std::lock_guard lock(mutex_);
    std::pair<TuningSession::Request, Result<Evaluation>> both = std::move(made_.front());
    made_.pop_front();
    return both;
  }

 private:
  struct Given {
    TuningSession::Request request;
    std::int64_t since_ns = 0;
  };

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return quit_ || !given_.empty(); });
      if (given_.empty()) return;  // what was given is finished first
      const Given given = std::move(given_.front());
      given_.pop_front();
      lock.unlock();
      const TuningSession::Request& request = given.request;
      Result<Evaluation> made = request.rematch
                                    ? evaluator_.repeat(request.config, policy_of(given))
                                    : evaluator_.evaluate(request.config, policy_of(given));
      lock.lock();
      made_.emplace_back(given.request, std::move(made));
      changed_.notify_all();
    }
  }

  // The limit counts from when the evaluation was given.
  static measure::Policy policy_of(const Given& given) {
    measure::Policy policy = given.request.policy;
    const std::int64_t waited_ns = system_clock().monotonic_ns() - given.since_ns;
    if (policy.limit_s > 0)
      policy.limit_s = std::max(policy.limit_s - static_cast<double>(waited_ns) * 1e-9, kLeastS);
    return policy;
  }

  static constexpr double kLeastS = 1e-3;  // 0 would be no limit
  Evaluator& evaluator_;
  std::mutex& mutex_;
  std::condition_variable& changed_;
  std::size_t pending_ = 0;  // of the session's thread
  std::deque<Given> given_;
  std::deque<std::pair<TuningSession::Request, Result<Evaluation>>> made_;
  bool quit_ = false;
  std::thread thread_;  // last: it uses the rest
};

class Parallel {
 public:
  Parallel(TuningSession& session, const std::vector<Evaluator*>& evaluators) : session_(session) {
    for (Evaluator* evaluator : evaluators)
      lanes_.push_back(std::make_unique<Lane>(*evaluator, mutex_, changed_));
  }

  Status run() {
    while (true) {
      PURLIN_TRY(hand_out());
      measure_again();
      if (!any_pending() && !waits_for_builds_) return Status::ok();
      {
        std::unique_lock lock(mutex_);
        const auto any = [this] { return any_done(); };
        if (waits_for_builds_)
          changed_.wait_for(lock, kLookAtBuilds, any);
        else
          changed_.wait(lock, any);
      }
      PURLIN_TRY(collect());
    }
  }
  // What is still under way is finished and reported, so that no evaluation is lost.
  void drain() {
    while (any_pending()) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return any_done(); });
      }
      static_cast<void>(collect());
    }
  }

 private:
  static constexpr std::chrono::milliseconds kLookAtBuilds{1};

  bool any_pending() const {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& l) { return l->pending() > 0; });
  }
  bool any_done() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& l) { return l->done(); });
  }

  void announce() {
    for (const Config& config : session_.announced()) lanes_.front()->evaluator().announce(config);
  }

  // Idle evaluators first; then one more for each that can be chosen for meanwhile.
  Status hand_out() {
    waits_for_builds_ = false;
    for (std::size_t most = 1; most <= 2; ++most)
      for (const auto& lane : lanes_) {
        if (lane->pending() >= std::min(most, lane->most_pending())) continue;
        announce();
        const auto choose = [&](const std::vector<const Config*>& configs) {
          const std::optional<std::size_t> built = lane->evaluator().first_built(configs);
          waits_for_builds_ = !built;
          return built;
        };
        PURLIN_ASSIGN(std::optional<TuningSession::Request> request, session_.next(choose));
        announce();
        if (!request) return Status::ok();
        if (request->finals) lanes_.front()->evaluator().end_announced();
        // Finals compare times, so one device makes them all; none else is at work then.
        (request->finals ? lanes_.front() : lane)->give(std::move(*request));
      }
    return Status::ok();
  }

  // While the device of the finals waits for a build. What is built meanwhile is handed over at
  // once and waits for one batch.
  void measure_again() {
    if (!waits_for_builds_ || lanes_.front()->pending() > 0) return;
    if (std::optional<TuningSession::Request> request = session_.next_rematch())
      lanes_.front()->give(std::move(*request));
  }

  Status collect() {
    Status first = Status::ok();
    for (const auto& lane : lanes_) {
      {
        const std::lock_guard lock(mutex_);
        if (!lane->done()) continue;
      }
      auto [request, made] = lane->take();
      const Status status = take_result(session_, request, std::move(made));
      if (first.is_ok()) first = status;
    }
    return first;
  }

  TuningSession& session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  bool waits_for_builds_ = false;
};

Status run_alone(TuningSession& session, Evaluator& evaluator) {
  const auto announce = [&] {
    for (const Config& config : session.announced()) evaluator.announce(config);
  };
  while (true) {
    announce();
    PURLIN_ASSIGN(const std::optional<TuningSession::Request> request,
                  session.next([&](const std::vector<const Config*>& configs) {
                    return std::optional(evaluator.first_built(configs).value_or(0));
                  }));
    announce();
    if (!request) return Status::ok();
    if (request->finals) evaluator.end_announced();
    PURLIN_TRY(
        take_result(session, *request, evaluator.evaluate(request->config, request->policy)));
  }
}

}  // namespace

Result<SessionResult> run_session(const Space& space, Strategy& strategy,
                                  const std::vector<Evaluator*>& evaluators, Journal* journal,
                                  const SessionOptions& options, Clock& clock) {
  if (evaluators.empty()) return error(Code::kInvalid, "a session needs a device");
  SessionTraits traits{evaluators.front()->executes(), 0, evaluators.size()};
  for (const Evaluator* evaluator : evaluators) traits.lookahead += evaluator->lookahead();
  traits.repeats = evaluators.front()->repeats();
  TuningSession session(space, strategy, journal, options, traits, clock);
  if (evaluators.size() == 1 && !evaluators.front()->runs_beside()) {
    PURLIN_TRY(run_alone(session, *evaluators.front()));
    return session.result();
  }
  Parallel parallel(session, evaluators);
  const Status done = parallel.run();
  if (!done.is_ok()) parallel.drain();
  PURLIN_TRY(done);
  return session.result();
}

Result<SessionResult> run_session(const Space& space, Strategy& strategy, Evaluator& evaluator,
                                  Journal* journal, const SessionOptions& options, Clock& clock) {
  return run_session(space, strategy, std::vector<Evaluator*>{&evaluator}, journal, options, clock);
}

}  // namespace purlin::tune
