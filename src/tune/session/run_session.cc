// SPDX-License-Identifier: Apache-2.0
// Drives a session with one evaluator, or with several at once.
#include "tune/session/session.h"

#include <algorithm>
#include <condition_variable>
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

// An evaluator on a separate thread. give(), done() and take() are for the session's thread.
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
  bool busy() const { return request_.has_value(); }
  void give(TuningSession::Request request) {
    {
      const std::lock_guard lock(mutex_);
      request_ = std::move(request);
    }
    changed_.notify_all();
  }
  // REQUIRES: the mutex is held.
  bool done() const { return made_.has_value(); }
  std::pair<TuningSession::Request, Result<Evaluation>> take() {
    const std::lock_guard lock(mutex_);
    std::pair<TuningSession::Request, Result<Evaluation>> both{std::move(*request_),
                                                               std::move(*made_)};
    request_.reset();
    made_.reset();
    return both;
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return quit_ || (request_ && !made_); });
      if (!request_ || made_) return;  // what was given is finished first
      const TuningSession::Request request = *request_;
      lock.unlock();
      Result<Evaluation> made = evaluator_.evaluate(request.config, request.policy);
      lock.lock();
      made_ = std::move(made);
      changed_.notify_all();
    }
  }

  Evaluator& evaluator_;
  std::mutex& mutex_;
  std::condition_variable& changed_;
  std::optional<TuningSession::Request> request_;
  std::optional<Result<Evaluation>> made_;
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
      if (!any_busy()) return Status::ok();
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return any_done(); });
      }
      PURLIN_TRY(collect());
    }
  }
  // What is still under way is finished and reported, so that no evaluation is lost.
  void drain() {
    while (any_busy()) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return any_done(); });
      }
      static_cast<void>(collect());
    }
  }

 private:
  bool any_busy() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& l) { return l->busy(); });
  }
  bool any_done() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& l) { return l->done(); });
  }

  Status hand_out() {
    for (const auto& lane : lanes_) {
      if (lane->busy()) continue;
      PURLIN_ASSIGN(std::optional<TuningSession::Request> request, session_.next());
      for (const Config& config : session_.announced())
        lanes_.front()->evaluator().announce(config);
      if (!request) return Status::ok();
      if (request->finals) lanes_.front()->evaluator().end_announced();
      // Finals compare times, so one device makes them all; none else is at work then.
      (request->finals ? lanes_.front() : lane)->give(std::move(*request));
    }
    return Status::ok();
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
};

Status run_alone(TuningSession& session, Evaluator& evaluator) {
  while (true) {
    PURLIN_ASSIGN(const std::optional<TuningSession::Request> request, session.next());
    for (const Config& config : session.announced()) evaluator.announce(config);
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
  TuningSession session(space, strategy, journal, options, traits, clock);
  if (evaluators.size() == 1) {
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
