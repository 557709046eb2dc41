// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/runner.h"

#include "gpu/registry.h"
#include "measure/worker.h"

#include <utility>

namespace purlin::guard {
namespace {

class WorkerRunner : public Runner {
 public:
  explicit WorkerRunner(RunnerOptions options) : options_(std::move(options)) {}

  std::vector<Result<ProcessReading>> run(const std::vector<Target>& targets,
                                          bool verify) override {
    std::vector<Result<ProcessReading>> readings;
    measure::WorkerSetup setup;
    setup.executable = options_.executable;
    setup.device = options_.device;
    setup.binary_cache = options_.binary_cache;
    setup.environment = options_.environment;
    Result<std::unique_ptr<measure::Worker>> worker = measure::Worker::start(setup);
    for (const Target& target : targets)
      readings.push_back(worker.is_ok() ? measure_one(**worker, target, verify)
                                        : Result<ProcessReading>(worker.status()));
    return readings;
  }

 private:
  Result<ProcessReading> measure_one(measure::Worker& worker, const Target& target,
                                     bool verify) const {
    const Result<int> bench =
        worker.open({target.spec_path, target.problem, verify, options_.seed});
    if (!bench.is_ok()) {
      // A spec that does not load, or a reference that does not run, is the arm's own failure.
      const Code code = bench.status().code();
      const bool of_arm =
          code == Code::kInvalid || code == Code::kFailed || code == Code::kNotFound;
      return Status(of_arm ? Code::kFailed : code, bench.status().message());
    }
    PURLIN_ASSIGN(const Evaluation evaluation,
                  worker.evaluate(target.config, options_.policy, options_.timeout_s, *bench));
    if (!evaluation.ok())
      return error(Code::kFailed, "{}{}{}", status_name(evaluation.status),
                   evaluation.message.empty() ? "" : ": ", evaluation.message);
    std::vector<double> times, clocks;
    for (const Sample& sample : evaluation.samples) {
      times.push_back(sample.ms * 1e6);
      clocks.push_back(sample.sm_clock_mhz);
    }
    return summarise(std::move(times), std::move(clocks), worker.device().clock_mhz);
  }

  RunnerOptions options_;
};

}  // namespace

std::unique_ptr<Runner> make_worker_runner(RunnerOptions options) {
  return std::make_unique<WorkerRunner>(std::move(options));
}

Result<ResolvedDevice> resolve_device(const std::string& name) {
  PURLIN_ASSIGN(const std::unique_ptr<gpu::Device> device, gpu::open_device(name));
  // Only names of a search are replaced: a script or a recording is opened by its file.
  const bool is_file = name.find(':') != std::string::npos;
  return ResolvedDevice{is_file ? name : device->info().id, device->info()};
}

}  // namespace purlin::guard
