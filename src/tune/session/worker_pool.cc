// SPDX-License-Identifier: Apache-2.0
#include "tune/session/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace purlin::tune {
namespace {

constexpr double kLeastLimitS = 0.001;  // 0 would be none

// Each thread compiles in its own worker process.
BuildAhead::Start compile_in_workers(const measure::WorkerSetup& setup, double timeout_s) {
  return [setup, timeout_s](const std::atomic<bool>& stop) -> BuildAhead::Build {
    auto worker = measure::Worker::start(setup, true, &stop);
    if (!worker.is_ok()) return {};
    const std::shared_ptr<measure::Worker> own = std::move(worker).value();
    return [own, timeout_s](const Config& config) { return own->compile(config, timeout_s); };
  };
}

}  // namespace

Result<std::unique_ptr<WorkerPool>> WorkerPool::start(const measure::WorkerSetup& setup,
                                                      const PoolOptions& options) {
  PURLIN_ASSIGN(std::unique_ptr<measure::Worker> worker,
                measure::Worker::start(setup, false, options.stop));
  std::unique_ptr<WorkerPool> pool(new WorkerPool(setup, std::move(worker), options));
  if (options.compilers > 0) {
    measure::WorkerSetup same = setup;
    same.on_phase = nullptr;  // its thread is the session's
    if (setup.device == "auto") same.device = pool->device().id;
    pool->compilers_ =
        std::make_shared<BuildAhead>(compile_in_workers(same, options.timeout_s), options.compilers,
                                     pool->device().kind == "cpu");
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
      counters_(setup, worker_->device(), 2 * options.timeout_s, options.stop) {
  // Evaluations may then run on another thread than the one that hears of the start.
  if (runs_beside()) worker_->end_phases();
}
WorkerPool::~WorkerPool() = default;

const DeviceInfo& WorkerPool::device() const { return worker_->device(); }
bool WorkerPool::executes() const { return worker_->executes(); }

std::size_t WorkerPool::lookahead() const {
  return static_cast<std::size_t>(std::max(options_.compilers, 0)) * 2 + 1;
}

// On a device that is a CPU, the session's work would take cores from the timed kernel.
bool WorkerPool::runs_beside() const { return executes() && device().kind != "cpu"; }

// A CPU's compilers stand still during a measurement, so that order matters little there.
std::optional<std::size_t> WorkerPool::first_built(const std::vector<const Config*>& configs) {
  return compilers_ && runs_beside() ? compilers_->first_built(configs) : 0;
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

Result<Evaluation> WorkerPool::repeat(const Config& config, const measure::Policy& policy) {
  return worker_->repeat(config, policy, options_.timeout_s);
}

}  // namespace purlin::tune
