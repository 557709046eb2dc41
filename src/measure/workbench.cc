// SPDX-License-Identifier: Apache-2.0
#include "measure/workbench.h"

#include "base/files.h"
#include "base/text.h"
#include "measure/arguments.h"
#include "measure/binary_cache.h"
#include "measure/compiled_limits.h"
#include "measure/energy.h"
#include "measure/kernel_facts.h"
#include "model/spec/default_reference.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>
#include <vector>

namespace purlin::measure {
namespace {

class Stopclock {
 public:
  double seconds() const {
    return static_cast<double>(system_clock().monotonic_ns() - start_ns_) * 1e-9;
  }

 private:
  std::int64_t start_ns_ = system_clock().monotonic_ns();
};

// The allowed difference of a library's sums grows with their length. The default config may be
// another at the problem, and with it the reference that it is.
KernelSpec at_problem(KernelSpec spec, const ProblemShape& problem, const Config& usual) {
  if (spec.reference.is_default_config && !(usual == default_config(spec)))
    spec.reference = default_config_reference(spec, usual);
  const std::int64_t* depth = problem.find("K");
  if (spec.library && spec.library_tolerance && depth != nullptr)
    spec.atol = library_tolerance(*spec.library, *depth);
  return spec;
}

class DeviceWorkbench : public Workbench {
 public:
  DeviceWorkbench(gpu::Device& device, const KernelSpec& spec, const ProblemShape& problem,
                  Options options)
      : device_(device),
        usual_(default_config(spec, problem, device.info())),
        spec_(at_problem(spec, problem, usual_)),
        problem_(problem),
        options_(std::move(options)) {}

  Status prepare() {
    if (device_.language().empty()) return Status::ok();
    PURLIN_TRY(source_of(spec_.sources, "kernel").status());
    if (options_.compile_only || !device_.executes()) return Status::ok();
    const Scope scope = scope_of(usual_);
    PURLIN_ASSIGN(Arguments arguments,
                  Arguments::create(device_, spec_, scope, options_.seed, options_.verify));
    arguments_.emplace(std::move(arguments));
    return options_.verify ? run_reference(scope) : Status::ok();
  }

  Evaluation compile(const Config& config) override {
    const Stopclock clock;
    Evaluation evaluation;
    evaluation.config = config;
    const Scope scope = scope_of(config);
    if (const Status status = check_config(config, scope); !status.is_ok()) {
      fail(evaluation, EvaluationStatus::kInvalid, status);
    } else if (const std::optional<gpu::Binary> binary = build(config, evaluation)) {
      // A config that is out by its registers never reaches the process that measures.
      if (const std::optional<gpu::Resources> resources = device_.resources(*binary))
        judge_compiled(*resources, config, scope, evaluation);
    }
    finish(evaluation, clock);
    return evaluation;
  }

  Evaluation evaluate(const Config& config, const Policy& policy) override {
    const Stopclock clock;
    Evaluation evaluation;
    evaluation.config = config;
    try_config(config, policy, evaluation);
    if (!evaluation.ok()) {
      evaluation.samples.clear();
      evaluation.raced_out = false;
    }
    finish(evaluation, clock);
    return evaluation;
  }

  Evaluation repeat(const Config& config, const Policy& policy) override {
    const Stopclock clock;
    Evaluation evaluation;
    evaluation.config = config;
    const Scope scope = scope_of(config);
    if (options_.compile_only || !device_.executes() || !arguments_) {
      fail(evaluation, EvaluationStatus::kInvalid,
           error(Code::kInvalid, "this workbench times nothing"));
    } else if (Kept* const kept = keep(config, scope, evaluation)) {
      time_again(*kept, scope, policy, evaluation);
    }
    finish(evaluation, clock);
    return evaluation;
  }

  Result<std::map<std::string, double>> count(const Config& config, const Policy& policy) override {
    Evaluation evaluation;
    evaluation.config = config;
    const Scope scope = scope_of(config);
    std::optional<Candidate> candidate;
    if (!options_.compile_only && device_.executes()) candidate = load(config, scope, evaluation);
    if (!candidate)
      return error(Code::kInvalid, "{} cannot be counted: {}", config.text(), evaluation.message);
    gpu::Launch& launch = candidate->launch;
    PURLIN_ASSIGN(launch.arguments, arguments_->bind(scope));
    PURLIN_TRY(arguments_->prepare(0));
    step("count");
    PURLIN_TRY(device_.run(launch));
    if (arguments_->has_inout()) PURLIN_TRY(arguments_->restore(true));
    return device_.count(launch, policy.flush_l2 || rotates(policy));
  }

  bool device_lost() const override { return lost_; }
  const ProblemShape& problem() const override { return problem_; }
  const KernelSpec& spec() const override { return spec_; }

 private:
  Scope scope_of(const Config& config) const {
    return config_scope(spec_, problem_, config, device_.info());
  }

  Status check_config(const Config& config, const Scope& scope) const {
    for (const Parameter& parameter : spec_.parameters)
      if (config.find(parameter.name) == nullptr)
        return error(Code::kInvalid, "the config '{}' has no value for parameter '{}'",
                     config.text(), parameter.name);
    return check_constraints(spec_, scope);
  }

  void step(std::string_view name) const {
    if (options_.on_step) options_.on_step(name);
  }

  // The source in the device's language. A replay has no language and needs no source.
  Result<const SourceText*> source_of(const std::map<std::string, SourceText>& sources,
                                      std::string_view table) const {
    static const SourceText kNone;
    if (device_.language().empty()) return &kNone;
    const auto found = sources.find(std::string(device_.language()));
    if (found != sources.end()) return &found->second;
    if (spec_.command)
      return error(Code::kInvalid,
                   "{}: commands build and run this kernel, so "
                   "`purlin tune` alone can measure it; in a suite, name it under [[commands]]",
                   spec_.file);
    if (sources.contains("triton"))
      return error(Code::kInvalid,
                   "{}: the kernel is one of Triton, which compiles and tunes it in the program: "
                   "@purlin.autotune (docs/guide/python.md)",
                   spec_.file);
    return error(Code::kInvalid, "{}: there is no [{}.{}], and {} compiles nothing else",
                 spec_.file, table, device_.language(), device_.info().id);
  }

  Status run_reference(const Scope& scope) {
    PURLIN_ASSIGN(const SourceText* source, source_of(spec_.reference.sources, "reference"));
    const auto context = [&](const Status& status) {
      return status.with_context(fmt::format("{}: the reference", spec_.file));
    };
    step("compile reference");
    const Result<gpu::Binary> binary =
        build_binary(compile_request(spec_, *source, spec_.reference.entry, {}), nullptr);
    if (!binary.is_ok())
      return context({binary.status().code(), bounded_log(binary.status().message())});
    Result<std::unique_ptr<gpu::Kernel>> kernel = device_.load(*binary);
    if (!kernel.is_ok()) return context(kernel.status());
    gpu::Launch launch;
    step("reference");
    launch.kernel = kernel->get();
    PURLIN_ASSIGN(launch.shape, resolve_launch(spec_.reference.launch, scope, device_.info()));
    PURLIN_ASSIGN(launch.arguments, arguments_->bind(scope, spec_.reference.arguments));
    return context(arguments_->take_reference([&] { return device_.run(launch); }));
  }

  Result<gpu::Binary> build_binary(gpu::CompileRequest request, bool* cached) {
    request.compiler_version = device_.compiler_version(request);
    BinaryCache* cache = device_.executes() ? options_.binaries : nullptr;
    const std::string key = cache != nullptr ? BinaryCache::key(device_.info(), request) : "";
    if (key.empty()) cache = nullptr;
    if (cache != nullptr) {
      if (std::optional<gpu::Binary> binary = cache->get(key)) {
        if (cached != nullptr) *cached = true;
        return *std::move(binary);
      }
    }
    PURLIN_ASSIGN(gpu::Binary binary, device_.compile(request));
    // A cache that cannot be written costs time, not the result.
    if (cache != nullptr) static_cast<void>(cache->put(key, binary));
    return binary;
  }

  std::optional<gpu::Binary> build(const Config& config, Evaluation& evaluation) {
    step("compile");
    const Stopclock clock;
    const Result<const SourceText*> source = source_of(spec_.sources, "kernel");
    if (!source.is_ok()) {
      fail(evaluation, EvaluationStatus::kCompile, source.status());
      return std::nullopt;
    }
    Result<gpu::Binary> binary = build_binary(compile_request(spec_, **source, spec_.entry, config),
                                              &evaluation.cached_binary);
    evaluation.compile_s = clock.seconds();
    if (!binary.is_ok()) {
      fail(evaluation, EvaluationStatus::kCompile, binary.status());
      evaluation.message = bounded_log(evaluation.message);
      return std::nullopt;
    }
    return std::move(binary).value();
  }

  // False when the config is out by what the kernel takes.
  bool judge_compiled(const gpu::Resources& resources, const Config& config, const Scope& scope,
                      Evaluation& evaluation) {
    const auto failed = [&](EvaluationStatus status, const Status& why) {
      fail(evaluation, status, why);
      return false;
    };
    LaunchShape shape;
    if (device_.executes()) {
      const Result<LaunchShape> resolved = resolve_launch(spec_.launch, scope, device_.info());
      if (!resolved.is_ok()) return failed(EvaluationStatus::kInvalid, resolved.status());
      shape = *resolved;
    }
    evaluation.registers = resources.registers;
    evaluation.shared_bytes = resources.static_shared_bytes + shape.dynamic_shared_bytes;
    evaluation.local_bytes = resources.local_bytes;
    if (const Status launchable = check_launchable(resources, shape, device_.info());
        !launchable.is_ok())
      return failed(EvaluationStatus::kLaunch, launchable);
    if (const Status kept = check_compiled(spec_, problem_, evaluation, device_.info());
        !kept.is_ok())
      return failed(EvaluationStatus::kInvalid, kept);
    if (config == usual_) usual_local_bytes_ = resources.local_bytes;
    if (resources.local_bytes <= kHeavySpillBytes || limits_spills()) return true;
    const Status spills = check_spills(resources, usual_local_bytes());
    return spills.is_ok() || failed(EvaluationStatus::kInvalid, spills);
  }

  bool limits_spills() const {
    for (const SpecExpression& limit : spec_.limits)
      for (const std::string& name : limit.expression.names())
        if (name == "spills" || name == "local_bytes") return true;
    return false;
  }

  // Of the default config, which a session measures first: from its kept binary where this process
  // has not seen it.
  std::optional<std::int64_t> usual_local_bytes() {
    if (usual_local_bytes_ || options_.binaries == nullptr) return usual_local_bytes_;
    const Result<const SourceText*> source = source_of(spec_.sources, "kernel");
    if (!source.is_ok()) return std::nullopt;
    gpu::CompileRequest request = compile_request(spec_, **source, spec_.entry, usual_);
    request.compiler_version = device_.compiler_version(request);
    const std::string key = BinaryCache::key(device_.info(), request);
    if (const auto binary = key.empty() ? std::nullopt : options_.binaries->get(key))
      if (const auto resources = device_.resources(*binary))
        usual_local_bytes_ = resources->local_bytes;
    return usual_local_bytes_;
  }

  // A config's kernel, and its launch without arguments.
  struct Candidate {
    std::unique_ptr<gpu::Kernel> kernel;
    gpu::Launch launch;
  };

  // Constraints, limits, compile, load. nullopt when the config failed.
  std::optional<Candidate> load(const Config& config, const Scope& scope, Evaluation& evaluation) {
    const auto failed = [&](EvaluationStatus status, const Status& why) {
      fail(evaluation, status, why);
      return std::nullopt;
    };
    Candidate candidate;
    gpu::Launch& launch = candidate.launch;
    if (const Status status = check_config(config, scope); !status.is_ok())
      return failed(EvaluationStatus::kInvalid, status);
    if (device_.executes()) {
      const Result<LaunchShape> shape = resolve_launch(spec_.launch, scope, device_.info());
      if (!shape.is_ok()) return failed(EvaluationStatus::kInvalid, shape.status());
      launch.shape = *shape;
    }
    const std::optional<gpu::Binary> binary = build(config, evaluation);
    if (!binary) return std::nullopt;
    Result<std::unique_ptr<gpu::Kernel>> kernel = device_.load(*binary);
    if (!kernel.is_ok()) return failed(EvaluationStatus::kLaunch, kernel.status());
    launch.kernel = kernel->get();
    // A library's binary is a token, and what its kernel takes is not known.
    if (device_.executes() && !spec_.library)
      evaluation.counters = kernel_facts(**kernel, *binary, launch.shape, device_.info());
    if (!judge_compiled(**kernel, config, scope, evaluation)) return std::nullopt;
    candidate.kernel = std::move(*kernel);
    return candidate;
  }

  // A kernel that is timed a batch at a time.
  struct Kept {
    Config config;
    Candidate candidate;
    Pace pace;
  };
  static constexpr std::size_t kMostKept = 8;

  // Loads the config unless it is loaded; nullptr when it failed. The longest unused one goes.
  Kept* keep(const Config& config, const Scope& scope, Evaluation& evaluation) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Kept& kept) { return kept.config == config; });
    if (found != kept_.end()) {
      std::rotate(found, found + 1, kept_.end());
      return &kept_.back();
    }
    std::optional<Candidate> candidate = load(config, scope, evaluation);
    if (!candidate) return nullptr;
    if (kept_.size() >= kMostKept) kept_.erase(kept_.begin());
    kept_.push_back({config, *std::move(candidate), {}});
    return &kept_.back();
  }

  void time_again(Kept& kept, const Scope& scope, const Policy& policy, Evaluation& evaluation) {
    step("measure");
    const Stopclock clock;
    gpu::Launch& launch = kept.candidate.launch;
    // Another config may have moved the ends of the buffers.
    Result<std::vector<gpu::KernelArgument>> bound = arguments_->bind(scope);
    if (!bound.is_ok()) return fail(evaluation, EvaluationStatus::kInvalid, bound.status());
    launch.arguments = std::move(bound).value();
    if (!add_sets(launch, policy, evaluation)) return;
    const Result<Timing> timing = time_batch(device_, launch, policy, kept.pace, restore());
    evaluation.measure_s = clock.seconds();
    if (!timing.is_ok()) return fail(evaluation, EvaluationStatus::kLaunch, timing.status());
    evaluation.samples = timing->samples;
    if (!evaluation.samples.empty()) evaluation.time_ms = median_ms(evaluation.samples);
    evaluation.how = timing->how;
    if (!check_zones(evaluation)) evaluation.time_ms = 0;
  }

  // Whether host work disturbs what the device does.
  bool is_cpu() const { return device_.info().kind == "cpu"; }

  void try_config(const Config& config, const Policy& policy, Evaluation& evaluation) {
    if (options_.compile_only)
      return fail(evaluation, EvaluationStatus::kInvalid,
                  error(Code::kInvalid, "this workbench only compiles"));
    const Scope scope = scope_of(config);
    std::optional<Candidate> candidate = load(config, scope, evaluation);
    if (!candidate) return;
    if (!device_.executes()) return time(candidate->launch, policy, evaluation);
    if (!verify(scope, candidate->launch, evaluation)) return;
    if (!options_.verify) return time(candidate->launch, policy, evaluation);
    // The outputs of the last run are on the host by now, where they are compared.
    const int last = arguments_->verification_runs() - 1;
    if (is_cpu()) {
      if (is_right(last, evaluation)) time(candidate->launch, policy, evaluation);
      return;
    }
    std::future<std::optional<std::string>> wrong = std::async(
        std::launch::async, [this, last] { return arguments_->find_wrong_output(last); });
    time(candidate->launch, policy, evaluation);
    const Stopclock clock;
    const std::optional<std::string> found = wrong.get();
    evaluation.verify_s += clock.seconds();
    if (found) fail_wrong(*found, evaluation);
  }

  bool is_right(int run, Evaluation& evaluation) {
    const Stopclock clock;
    const std::optional<std::string> wrong = arguments_->find_wrong_output(run);
    evaluation.verify_s += clock.seconds();
    if (wrong) fail_wrong(*wrong, evaluation);
    return !wrong;
  }

  void fail_wrong(const std::string& wrong, Evaluation& evaluation) {
    evaluation.time_ms = 0;
    fail(evaluation, EvaluationStatus::kWrong, {Code::kFailed, wrong});
  }

  // False when the config failed. The outputs of the last run are read, and not yet compared.
  // Always launches once: a driver may compile at the first launch, and that is no part of the
  // kernel's time.
  bool verify(const Scope& scope, gpu::Launch& launch, Evaluation& evaluation) {
    step("verify");
    const Stopclock clock;
    const auto failed = [&](EvaluationStatus status, const Status& why) {
      evaluation.verify_s = clock.seconds();
      fail(evaluation, status, why);
      return false;
    };
    Result<std::vector<gpu::KernelArgument>> bound = arguments_->bind(scope);
    if (!bound.is_ok()) return failed(EvaluationStatus::kInvalid, bound.status());
    launch.arguments = std::move(bound).value();
    const int runs = options_.verify ? arguments_->verification_runs() : 1;
    for (int run = 0; run < runs; ++run) {
      if (const Status status = arguments_->prepare(run); !status.is_ok())
        return failed(EvaluationStatus::kLaunch, status);
      if (const Status status = device_.run(launch); !status.is_ok())
        return failed(EvaluationStatus::kLaunch, status);
      if (!check_zones(evaluation)) return failed(evaluation.status, Status::ok());
      if (!options_.verify) continue;
      if (const Status read = arguments_->read_outputs(); !read.is_ok())
        return failed(EvaluationStatus::kLaunch, read);
      const Result<std::optional<std::string>> changed = arguments_->find_changed_input();
      if (!changed.is_ok()) return failed(EvaluationStatus::kLaunch, changed.status());
      if (*changed) {
        // An output that is wrong as well says more.
        if (!is_right(run, evaluation)) return failed(evaluation.status, Status::ok());
        return failed(EvaluationStatus::kWrong, {Code::kFailed, **changed});
      }
      if (run + 1 < runs && !is_right(run, evaluation))
        return failed(evaluation.status, Status::ok());
    }
    evaluation.verify_s = clock.seconds();
    return true;
  }

  bool check_zones(Evaluation& evaluation) {
    const Result<std::optional<std::string>> stray = arguments_->find_stray_write();
    if (stray.is_ok() && !*stray) return true;
    fail(evaluation, stray.is_ok() ? EvaluationStatus::kOutOfBounds : EvaluationStatus::kLaunch,
         stray.is_ok() ? Status(Code::kInvalid, **stray) : stray.status());
    return false;
  }

  bool rotates(const Policy& policy) const {
    return policy.inputs == Policy::Inputs::kAsSpec ? spec_.rotate_inputs
                                                    : policy.inputs == Policy::Inputs::kRotate;
  }

  // The copies of the inputs that launches take in turn. False when there is no room for them.
  bool add_sets(gpu::Launch& launch, const Policy& policy, Evaluation& evaluation) {
    if (!arguments_ || !rotates(policy)) return true;
    auto further = arguments_->further(launch.arguments);
    if (!further.is_ok()) {
      fail(evaluation, EvaluationStatus::kLaunch, further.status());
      return false;
    }
    launch.further_arguments = std::move(further).value();
    evaluation.input_sets = 1 + static_cast<int>(launch.further_arguments.size());
    return true;
  }

  Restore restore() {
    if (!arguments_ || !arguments_->has_inout()) return {};
    return [this] { return arguments_->restore(true); };
  }

  void time(gpu::Launch& launch, const Policy& policy, Evaluation& evaluation) {
    step("measure");
    const Stopclock clock;
    if (!add_sets(launch, policy, evaluation)) return;
    const Restore restore = this->restore();
    Result<Timing> timing = time_kernel(device_, launch, policy, restore);
    evaluation.measure_s = clock.seconds();
    if (!timing.is_ok()) return fail(evaluation, EvaluationStatus::kLaunch, timing.status());
    evaluation.samples = timing->samples;
    evaluation.time_ms = median_ms(evaluation.samples);
    if (evaluation.time_ms < kLeastMs) {
      const double ms = std::exchange(evaluation.time_ms, 0);
      return fail(evaluation, EvaluationStatus::kLaunch,
                  error(Code::kUnavailable,
                        "the clock of {} measured {} ms for it: the clock does "
                        "not work, or the kernel is too short for it",
                        device_.info().id, ms));
    }
    evaluation.raced_out = timing->gave_up;
    evaluation.how = timing->how;
    if (timing->left_out > 0)
      evaluation.how += fmt::format(", {} without a time left out", timing->left_out);
    // A config that lost the race cannot win by its energy (the session ensures that).
    if (policy.energy_s > 0 && !timing->gave_up) {
      const Result<Energy> energy =
          measure_energy(device_, launch, *timing, policy.energy_s, restore);
      evaluation.measure_s = clock.seconds();
      if (!energy.is_ok()) return fail(evaluation, EvaluationStatus::kLaunch, energy.status());
      evaluation.energy_mj = energy->energy_mj;
      evaluation.energy_error = energy->error;
      evaluation.power_w = energy->power_w;
    }
    // Checked again: a rare stray write had many more launches to happen.
    if (device_.executes() && !check_zones(evaluation)) {
      evaluation.time_ms = 0;
      return;
    }
    // Again: now the time and the power are known.
    if (const Status kept = check_compiled(spec_, problem_, evaluation, device_.info());
        !kept.is_ok())
      fail(evaluation, EvaluationStatus::kInvalid, kept);
  }

  void fail(Evaluation& evaluation, EvaluationStatus status, const Status& why) {
    evaluation.status = status;
    if (why.is_ok()) return;
    evaluation.message = why.message();
    if (why.code() == Code::kTimeout) evaluation.status = EvaluationStatus::kTimeout;
    if (why.code() != Code::kFailed || status == EvaluationStatus::kWrong) return;
    lost_ = true;
    evaluation.status = EvaluationStatus::kCrash;
    evaluation.message = "the device was lost: " + evaluation.message;
  }

  void finish(Evaluation& evaluation, const Stopclock& clock) const {
    evaluation.cost_s = clock.seconds();
    if (const std::optional<gpu::RecordedCost> cost = device_.recorded_cost(evaluation.config)) {
      evaluation.compile_s = cost->compile_s;
      evaluation.verify_s = cost->verify_s;
      evaluation.measure_s = cost->measure_s;
      evaluation.cost_s = cost->total_s;
    }
  }

  gpu::Device& device_;
  const Config usual_;  // the default at the problem
  const KernelSpec spec_;
  const ProblemShape problem_;
  const Options options_;
  std::optional<Arguments> arguments_;
  std::vector<Kept> kept_;                         // the one used last at the end
  std::optional<std::int64_t> usual_local_bytes_;  // of the default config, once known
  bool lost_ = false;
};

}  // namespace

Result<std::unique_ptr<Workbench>> Workbench::create(gpu::Device& device, const KernelSpec& spec,
                                                     const ProblemShape& problem, Options options) {
  auto workbench = std::make_unique<DeviceWorkbench>(device, spec, problem, std::move(options));
  PURLIN_TRY(workbench->prepare());
  return std::unique_ptr<Workbench>(std::move(workbench));
}

Result<Work> work_of(const KernelSpec& spec, const ProblemShape& problem, const Config& config,
                     const DeviceInfo& device) {
  const Scope scope = config_scope(spec, problem, config, device);
  Work work;
  const auto evaluate = [&](const std::optional<SpecExpression>& expression, double& out) {
    if (!expression) return Status::ok();
    const Result<double> value = expression->expression.evaluate_double(scope.lookup());
    if (!value.is_ok()) return value.status().with_context(expression->where);
    out = *value;
    return Status::ok();
  };
  PURLIN_TRY(evaluate(spec.flops, work.flops));
  PURLIN_TRY(evaluate(spec.bytes, work.bytes));
  return work;
}

std::string bounded_log(std::string_view log, std::size_t limit) {
  if (log.size() <= limit) return std::string(log);
  std::size_t start = 0;
  if (const std::size_t found = log.find("error");
      found != std::string_view::npos && found > limit / 2) {
    start = log.rfind('\n', found);
    start = start == std::string_view::npos ? 0 : start + 1;
  }
  const std::string_view kept = log.substr(start, limit);
  return fmt::format("{}{}\n[{} bytes of the log left out]", start > 0 ? "[…]\n" : "", kept,
                     log.size() - kept.size());
}

}  // namespace purlin::measure
