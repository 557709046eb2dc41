// SPDX-License-Identifier: Apache-2.0
#include "tune/session/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
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
namespace {

constexpr std::chrono::milliseconds kLook{50};  // at whether a wait is over
constexpr double kLeastLimitS = 0.001;          // 0 would be none

}  // namespace

int default_compilers() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores - 1, 1, 32);
}

// A queue of configs and the threads that compile them, each with its own worker process.
class WorkerPool::Compilers {
 public:
  Compilers(const measure::WorkerSetup& setup, const PoolOptions& options, bool pause_to_measure)
      : setup_(setup),
        timeout_s_(options.timeout_s),
        pause_to_measure_(pause_to_measure),
        working_(options.compilers) {
    for (int i = 0; i < options.compilers; ++i) threads_.emplace_back([this] { serve(); });
  }

  ~Compilers() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    stop_ = true;  // a compiler that hangs does not hold up the end
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void announce(const Config& config) {
    {
      const std::lock_guard lock(mutex_);
      if (!jobs_.emplace(config.text(), Job{}).second) return;
      queue_.push_back(config);
    }
    changed_.notify_all();
  }

  // Compiles nothing more.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      queue_.clear();
      jobs_.clear();
    }
    stop_ = true;
    changed_.notify_all();
  }

  // The compilation's outcome; waits while a compiler works on it. nullopt when none has begun.
  // kCancelled: `is_over` says so before there is an outcome.
  Result<std::optional<Evaluation>> collect(const Config& config,
                                            const std::function<bool()>& is_over) {
    std::unique_lock lock(mutex_);
    const std::string key = config.text();
    const auto found = jobs_.find(key);
    if (found == jobs_.end()) return std::optional<Evaluation>();
    Job& job = found->second;
    while (job.state != Job::kDone && working_ > 0) {
      if (is_over())
        return error(Code::kCancelled, "the compilation of {} was stopped", config.text());
      changed_.wait_for(lock, kLook);
    }
    std::optional<Evaluation> outcome = std::move(job.outcome);
    if (job.state == Job::kWaiting)  // all compilers are gone
      std::erase_if(queue_, [&](const Config& queued) { return queued == config; });
    jobs_.erase(found);
    return outcome;
  }

  // Between these two, no compiler runs where it would disturb, unless `is_over`.
  void begin_measuring(const std::function<bool()>& is_over) {
    if (!pause_to_measure_) return;
    std::unique_lock lock(mutex_);
    ++measuring_;
    while (compiling_ > 0 && !is_over()) changed_.wait_for(lock, kLook);
  }
  void end_measuring() {
    if (!pause_to_measure_) return;
    {
      const std::lock_guard lock(mutex_);
      --measuring_;
    }
    changed_.notify_all();
  }

 private:
  struct Job {
    enum State { kWaiting, kDone } state = kWaiting;
    std::optional<Evaluation> outcome;
  };

  void serve() {
    Result<std::unique_ptr<measure::Worker>> worker = measure::Worker::start(setup_, true, &stop_);
    while (worker.is_ok()) {
      std::optional<Config> config = next();
      if (!config) break;
      Result<Evaluation> outcome = (*worker)->compile(*config, timeout_s_);
      finish(*config, outcome);
      if (!outcome.is_ok()) break;
    }
    {
      const std::lock_guard lock(mutex_);
      --working_;
    }
    changed_.notify_all();
  }

  std::optional<Config> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ending_ || (!queue_.empty() && measuring_ == 0); });
    if (ending_) return std::nullopt;
    Config config = std::move(queue_.front());
    queue_.pop_front();
    ++compiling_;
    return config;
  }

  void finish(const Config& config, const Result<Evaluation>& outcome) {
    {
      const std::lock_guard lock(mutex_);
      --compiling_;
      if (const auto found = jobs_.find(config.text()); found != jobs_.end()) {
        found->second.state = Job::kDone;
        if (outcome.is_ok()) found->second.outcome = *outcome;
      }
    }
    changed_.notify_all();
  }

  const measure::WorkerSetup setup_;
  const double timeout_s_;
  const bool pause_to_measure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Config> queue_;
  std::unordered_map<std::string, Job> jobs_;  // announced and not collected
  bool ending_ = false;
  std::atomic<bool> stop_{false};  // of the compilers' workers
  int measuring_ = 0, compiling_ = 0;
  int working_;  // compilers that have not given up
  std::vector<std::thread> threads_;
};

Result<std::unique_ptr<WorkerPool>> WorkerPool::start(const measure::WorkerSetup& setup,
                                                      const PoolOptions& options) {
  PURLIN_ASSIGN(std::unique_ptr<measure::Worker> worker,
                measure::Worker::start(setup, false, options.stop));
  std::unique_ptr<WorkerPool> pool(new WorkerPool(setup, std::move(worker), options));
  if (options.compilers > 0) {
    measure::WorkerSetup same = setup;
    same.on_phase = nullptr;  // its thread is the session's
    if (setup.device == "auto") same.device = pool->device().id;
    pool->compilers_ = std::make_shared<Compilers>(same, options, pool->device().kind == "cpu");
  }
  return pool;
}

Result<std::unique_ptr<WorkerPool>> WorkerPool::start_beside(const WorkerPool& first,
                                                             const measure::WorkerSetup& setup) {
  PURLIN_ASSIGN(std::unique_ptr<measure::Worker> worker,
                measure::Worker::start(setup, false, first.options_.stop));
  const DeviceInfo &one = first.device(), &other = worker->device();
  if (one.name != other.name || one.arch != other.arch || one.driver != other.driver)
    return error(Code::kInvalid,
                 "{} is a {} and {} a {}: their times do not compare; tune them one by one", one.id,
                 one.name, other.id, other.name);
  if (!one.uuid.empty() && one.uuid == other.uuid)
    return error(Code::kInvalid, "{} and {} are the same device; name each once", one.id, other.id);
  std::unique_ptr<WorkerPool> pool(new WorkerPool(setup, std::move(worker), first.options_));
  pool->compilers_ = first.compilers_;
  return pool;
}

WorkerPool::WorkerPool(const measure::WorkerSetup& setup, std::unique_ptr<measure::Worker> worker,
                       const PoolOptions& options)
    : worker_(std::move(worker)),
      options_(options),
      counters_(setup, worker_->device(), 2 * options.timeout_s, options.stop) {}
WorkerPool::~WorkerPool() = default;

const DeviceInfo& WorkerPool::device() const { return worker_->device(); }
bool WorkerPool::executes() const { return worker_->executes(); }

std::size_t WorkerPool::lookahead() const {
  return static_cast<std::size_t>(std::max(options_.compilers, 0)) * 2 + 1;
}

void WorkerPool::end_announced() {
  if (compilers_) compilers_->end();
}

void WorkerPool::announce(const Config& config) {
  if (compilers_) compilers_->announce(config);
}

Result<gpu::LibrarySpace> WorkerPool::library_space() {
  return worker_->library_space(2 * options_.timeout_s);
}

Result<Evaluation> WorkerPool::evaluate(const Config& config, const measure::Policy& policy) {
  const std::int64_t start_ns = system_clock().monotonic_ns();
  const auto left_s = [&] {
    return policy.limit_s - static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
  };
  const auto is_over = [&] {
    return (options_.stop != nullptr && options_.stop->load()) ||
           (policy.limit_s > 0 && left_s() <= 0);
  };
  std::optional<Evaluation> compiled;
  if (compilers_) {
    PURLIN_ASSIGN(compiled, compilers_->collect(config, is_over));
  }
  if (compiled && !compiled->ok()) return *std::move(compiled);
  measure::Policy rest = policy;
  if (policy.limit_s > 0) rest.limit_s = std::max(left_s(), kLeastLimitS);
  if (compilers_) compilers_->begin_measuring(is_over);
  Result<Evaluation> made =
      is_over() ? error(Code::kCancelled, "{} was stopped before it was measured", config.text())
                : worker_->evaluate(config, rest, options_.timeout_s);
  if (compilers_) compilers_->end_measuring();
  if (made.is_ok() && compiled) {
    // The measuring worker found the binary ready; what it took to make it belongs here.
    made->compile_s += compiled->compile_s;
    made->cost_s += compiled->cost_s;
    made->cached_binary = compiled->cached_binary;
  }
  if (made.is_ok() && made->ok() && policy.count_below_ms > 0 &&
      made->time_ms <= policy.count_below_ms && !is_over())
    counters_.read(*made, policy);
  return made;
}

}  // namespace purlin::tune
