// SPDX-License-Identifier: Apache-2.0
#include "tune/session/command/evaluator.h"

#include "base/files.h"
#include "base/time.h"
#include "measure/output/benchmark_output.h"
#include "measure/race.h"
#include "tune/session/command/runs.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

namespace purlin::tune {
namespace {

constexpr int kLeastCommandRuns = 3;  // of a config that stays in the race
constexpr int kMostCommandRuns = 40;  // however many samples each run prints
constexpr double kFolderKept = 1.5;   // of the best time: such configs may come to the finals
constexpr double kRunsBudgetS = 2;    // as Policy::budget_s, for processes instead of launches

Evaluation failure_of(const Config& config, const Step& step) {
  Evaluation evaluation;
  evaluation.config = config;
  evaluation.status = step.status;
  evaluation.message = step.message;
  return evaluation;
}

}  // namespace

class CommandEvaluator::Impl {
 public:
  Impl(const KernelSpec& spec, const ProblemShape& problem, const DeviceInfo& device,
       std::string root, const PoolOptions& options)
      : spec_(spec),
        device_(device),
        root_(std::move(root)),
        options_(options),
        usual_(default_config(spec, problem, device)),
        runs_(spec_, problem, usual_, root_, options.timeout_s) {
    // Builds share the cores with commands of the host.
    if (options.compilers > 0 && !spec_.command->build.empty())
      ahead_.emplace([this](const std::atomic<bool>& stop) { return builder(stop); },
                     options.compilers, device.kind == "cpu");
  }
  ~Impl() {
    ahead_.reset();
    static_cast<void>(remove_tree(root_));
  }

  const DeviceInfo& device() const { return device_; }
  std::size_t lookahead() const {
    return ahead_ ? static_cast<std::size_t>(options_.compilers) * 2 + 1 : 1;
  }
  std::optional<std::size_t> first_built(const std::vector<const Config*>& configs) {
    return ahead_ ? ahead_->first_built(configs) : 0;
  }
  void announce(const Config& config) {
    if (ahead_) ahead_->announce(config);
  }
  void end_announced() {
    if (ahead_) ahead_->end();
  }

  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) {
    const std::int64_t start_ns = system_clock().monotonic_ns();
    const auto spent_s = [&] {
      return static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
    };
    const CommandRuns::IsOver is_over = [&] {
      return (options_.stop != nullptr && options_.stop->load()) ||
             (policy.limit_s > 0 && spent_s() >= policy.limit_s);
    };
    PURLIN_ASSIGN(Evaluation made, built(config, is_over));
    if (made.ok()) {
      if (ahead_) ahead_->begin_measuring(is_over);
      const Status measured = measure(config, policy, is_over, made);
      if (ahead_) ahead_->end_measuring();
      PURLIN_TRY(measured);
    }
    made.cost_s = made.compile_s + made.verify_s + made.measure_s;
    tidy(made);
    return made;
  }

 private:
  BuildAhead::Build builder(const std::atomic<bool>& stop) {
    return [this, &stop](const Config& config) -> Result<Evaluation> {
      return build(config, [&stop] { return stop.load(); });
    };
  }

  Result<Evaluation> build(const Config& config, const CommandRuns::IsOver& is_over) {
    PURLIN_ASSIGN(const Step step, runs_.build(config, is_over));
    Evaluation made = failure_of(config, step);
    made.compile_s = step.seconds;
    const std::lock_guard lock(mutex_);
    if (step.ok()) built_.insert(config.text());
    return made;
  }

  Result<Evaluation> built(const Config& config, const CommandRuns::IsOver& is_over) {
    std::optional<Evaluation> made;
    if (ahead_) {
      PURLIN_ASSIGN(made, ahead_->collect(config, is_over));
    }
    if (made) return *std::move(made);
    {
      const std::lock_guard lock(mutex_);
      if (built_.contains(config.text())) return failure_of(config, Step{});
    }
    return build(config, is_over);
  }

  // A first run, its verification, and further runs until the times decide.
  Status measure(const Config& config, const measure::Policy& policy,
                 const CommandRuns::IsOver& is_over, Evaluation& made) {
    measure::Policy rules = policy;
    rules.min_samples = std::min(policy.min_samples, kLeastCommandRuns);
    const int most = std::min(policy.max_samples, kMostCommandRuns);
    made.how = "command";
    for (int count = 0; count < most; ++count) {
      std::vector<double> times_ms;
      PURLIN_ASSIGN(const Step ran, runs_.run(config, is_over, times_ms));
      made.measure_s += ran.seconds;
      if (!ran.ok()) return fail(ran, made);
      for (const double ms : times_ms) made.samples.push_back({ms, 0});
      if (count == 0 && !verified_.contains(config.text())) {
        PURLIN_ASSIGN(const Step verified, runs_.verify(config, ran, is_over));
        made.verify_s += verified.seconds;
        if (!verified.ok()) return fail(verified, made);
        verified_.insert(config.text());
      }
      const measure::Standing standing = measure::standing(made.samples, rules);
      made.raced_out = standing == measure::Standing::kHopeless;
      if (standing != measure::Standing::kOpen) break;
      if (count + 1 >= kLeastCommandRuns && made.measure_s > kRunsBudgetS) break;
    }
    made.time_ms = median_ms(made.samples);
    return Status::ok();
  }

  static Status fail(const Step& step, Evaluation& made) {
    made.status = step.status;
    made.message = step.message;
    made.samples.clear();
    return Status::ok();
  }

  // The folders of configs that will not be measured again.
  void tidy(const Evaluation& made) {
    const bool good = made.ok() && !made.raced_out;
    if (good && (best_ms_ <= 0 || made.time_ms < best_ms_)) best_ms_ = made.time_ms;
    if (made.config == usual_ || (good && made.time_ms <= kFolderKept * best_ms_)) return;
    {
      const std::lock_guard lock(mutex_);
      built_.erase(made.config.text());
    }
    runs_.remove(made.config);
  }

  const KernelSpec spec_;
  const DeviceInfo device_;
  const std::string root_;
  const PoolOptions options_;
  Config usual_;  // the default at the problem
  CommandRuns runs_;
  std::mutex mutex_;
  std::set<std::string> built_;     // guarded by mutex_: configs whose folder is ready
  std::set<std::string> verified_;  // of the measuring thread
  double best_ms_ = 0;
  std::optional<BuildAhead> ahead_;
};

CommandEvaluator::CommandEvaluator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CommandEvaluator::~CommandEvaluator() = default;

Result<std::unique_ptr<CommandEvaluator>> CommandEvaluator::start(const KernelSpec& spec,
                                                                  const ProblemShape& problem,
                                                                  const DeviceInfo& device,
                                                                  const PoolOptions& options) {
  if (!spec.command->wall_time)
    PURLIN_TRY(measure::check_output_rules(spec.command->rules).with_context(spec.file));
  PURLIN_ASSIGN(std::string root, make_temporary_directory("purlin-command"));
  return std::unique_ptr<CommandEvaluator>(new CommandEvaluator(
      std::make_unique<Impl>(spec, problem, device, std::move(root), options)));
}

const DeviceInfo& CommandEvaluator::device() const { return impl_->device(); }
std::size_t CommandEvaluator::lookahead() const { return impl_->lookahead(); }
std::optional<std::size_t> CommandEvaluator::first_built(
    const std::vector<const Config*>& configs) {
  return impl_->first_built(configs);
}
void CommandEvaluator::announce(const Config& config) { impl_->announce(config); }
void CommandEvaluator::end_announced() { impl_->end_announced(); }
Result<Evaluation> CommandEvaluator::evaluate(const Config& config, const measure::Policy& policy) {
  return impl_->evaluate(config, policy);
}

DeviceInfo host_device() {
  const Environment host = host_environment();
  DeviceInfo device;
  device.id = "host";
  device.backend = "host";
  device.kind = "cpu";
  device.name = host.host_cpu;
  device.compute_units = host.host_cpus;
  device.driver = host.host_kernel;
  device.toolkit = "commands";
  return device;
}

}  // namespace purlin::tune
