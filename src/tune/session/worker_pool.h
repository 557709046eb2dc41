// SPDX-License-Identifier: Apache-2.0
// WorkerPool: evaluations on a device, in worker processes: some that only compile, ahead of the
// one that measures. What they compiled reaches it through the binary cache on disk.
//
// On a device that is a CPU, compilers stand still while a kernel is timed, for they would run on
// the same cores. Counters of the hardware, where a policy asks for them, are read in one more
// process, right after a config was timed. Thread-safety: as Evaluator; the compilers' threads are
// its own and end with it. Failure: as measure::Worker. A compiler that
// cannot be started is done without.
#pragma once

#include "measure/worker.h"
#include "tune/session/build_ahead.h"
#include "tune/session/counters.h"
#include "tune/session/evaluator.h"

#include <memory>

namespace purlin::tune {

class WorkerPool : public Evaluator {
 public:
  static Result<std::unique_ptr<WorkerPool>> start(const measure::WorkerSetup& setup,
                                                   const PoolOptions& options);
  // Adds another device of the same model. The compilers of the first device compile its configs as
  // well; they live as long as either. kInvalid for another model: its binaries would be others.
  static Result<std::unique_ptr<WorkerPool>> start_beside(const WorkerPool& first,
                                                          const measure::WorkerSetup& setup);
  ~WorkerPool() override;

  const DeviceInfo& device() const override;
  bool executes() const override;
  const std::string& energy_problem() const { return worker_->energy_problem(); }
  std::size_t lookahead() const override;
  bool runs_beside() const override;
  std::optional<std::size_t> first_built(const std::vector<const Config*>& configs) override;
  void announce(const Config& config) override;
  void end_announced() override;
  std::string counters_problem() const override { return counters_.problem(); }
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override;
  bool repeats() const override { return runs_beside() && compilers_ != nullptr; }
  Result<Evaluation> repeat(const Config& config, const measure::Policy& policy) override;
  // Of a spec with a [library]; measure/worker.h.
  Result<gpu::LibrarySpace> library_space();

 private:
  WorkerPool(const measure::WorkerSetup& setup, std::unique_ptr<measure::Worker> worker,
             const PoolOptions& options);
  std::unique_ptr<measure::Worker> worker_;
  PoolOptions options_;
  CounterWorker counters_;
  std::shared_ptr<BuildAhead> compilers_;
};

}  // namespace purlin::tune
