// SPDX-License-Identifier: Apache-2.0
// Runner: starts one process that measures kernels, and brings back what it said of each. The unit
// of replication of the gate is such a process, never an iteration inside one.
//
// Owned by its caller. Thread-safety: belongs to one thread. Failure, per kernel: kFailed says that
// it does not compile, run or verify; any other code that the tool or the machine cannot go on.
#pragma once

#include "base/status.h"
#include "guard/gate/samples.h"
#include "measure/timing.h"
#include "model/device/device.h"
#include "model/expression/value.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace purlin::guard {

// What a process is to run: one arm of one item.
struct Target {
  std::string kernel;  // the spec's name
  std::string spec_path;
  ProblemShape problem;
  Config config;
};

class Runner {
 public:
  virtual ~Runner() = default;
  // One result per target, measured in the given order. `verify` also checks the outputs against
  // the reference, which takes longer.
  virtual std::vector<Result<ProcessReading>> run(const std::vector<Target>& targets,
                                                  bool verify) = 0;
};

struct RunnerOptions {
  std::string executable;  // "" = as measure::Worker finds it
  std::string device;
  std::string binary_cache;
  std::uint64_t seed = 0;
  measure::Policy policy;
  double timeout_s = 120;
  std::map<std::string, std::string> environment;  // of the process, beside what it inherits
};
// A fresh measure::Worker for every call of run().
std::unique_ptr<Runner> make_worker_runner(RunnerOptions options);

// The facts of a device, opened for as long as that takes: nothing stays behind on it.
struct ResolvedDevice {
  std::string name;  // as workers are to open it; "auto" has become "cuda:0"
  DeviceInfo info;
};
Result<ResolvedDevice> resolve_device(const std::string& name);

}  // namespace purlin::guard
