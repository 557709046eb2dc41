// SPDX-License-Identifier: Apache-2.0
#include "guard/runner.h"

#include "gpu/registry.h"
#include "guard/signed_rank.h"
#include "measure/worker.h"

#include <utility>

namespace purlin::guard {
namespace {

class WorkerRunner : public Runner {
 public:
  explicit WorkerRunner(RunnerOptions options) : options_(std::move(options)) {}

  Result<ProcessReading> run(const Target& target, bool verify) override {
    measure::WorkerSetup setup;
    setup.executable = options_.executable;
    setup.device = options_.device;
    setup.spec_path = target.spec_path;
    setup.problem = target.problem;
    setup.binary_cache = options_.binary_cache;
    setup.verify = verify;
    setup.seed = options_.seed;
    Result<std::unique_ptr<measure::Worker>> worker = measure::Worker::start(setup);
    if (!worker.is_ok()) {
      // A spec that no longer loads, or a reference that no longer runs, is the arm's own fault.
      const Code code = worker.status().code();
      const bool of_arm =
          code == Code::kInvalid || code == Code::kFailed || code == Code::kNotFound;
      return Status(of_arm ? Code::kFailed : code, worker.status().message());
    }
    PURLIN_ASSIGN(const Evaluation evaluation,
                  (*worker)->evaluate(target.config, options_.policy, options_.timeout_s));
    if (!evaluation.ok())
      return error(Code::kFailed, "{}{}{}", status_name(evaluation.status),
                   evaluation.message.empty() ? "" : ": ", evaluation.message);
    std::vector<double> times, clocks;
    for (const Sample& sample : evaluation.samples) {
      times.push_back(sample.ms * 1e6);
      clocks.push_back(sample.sm_clock_mhz);
    }
    if (times.empty() || median_of(times) <= 0)
      return error(Code::kFailed, "the device reported no time for '{}'", target.kernel);
    ProcessReading reading;
    reading.reading = reading_of(times, clocks);
    reading.p95_ns = quantile_of(times, 0.95);
    reading.clock_mhz = median_of(clocks);
    reading.iterations = static_cast<int>(times.size());
    reading.times_ns = std::move(times);
    reading.clocks_mhz = std::move(clocks);
    return reading;
  }

 private:
  RunnerOptions options_;
};

}  // namespace

std::unique_ptr<Runner> make_worker_runner(RunnerOptions options) {
  return std::make_unique<WorkerRunner>(std::move(options));
}

Result<ResolvedDevice> resolve_device(const std::string& name) {
  PURLIN_ASSIGN(const std::unique_ptr<gpu::Device> device, gpu::open_device(name));
  // Only names that stand for a search are replaced: a script or a recording is opened by its file.
  const bool is_file = name.find(':') != std::string::npos;
  return ResolvedDevice{is_file ? name : device->info().id, device->info()};
}

}  // namespace purlin::guard
