// SPDX-License-Identifier: Apache-2.0
// Runner: starts one process that measures kernels, and returns its results for each. Such a
// process, never an iteration inside it, is the gate's unit of replication.
//
// Owned by its caller. Thread-safety: belongs to one thread. Failure, per kernel: kFailed for a
// kernel that does not compile, run or verify. Any other code means that the tool or the machine
// cannot continue.
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

// One kernel for a process to run: one arm of one item.
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
  std::map<std::string, std::string>
      environment;  // of the process, in addition to the inherited one
};
// A fresh measure::Worker for every call of run().
std::unique_ptr<Runner> make_worker_runner(RunnerOptions options);

// The facts of a device. It is opened for the query only, and nothing remains on it.
struct ResolvedDevice {
  std::string name;  // the name for workers; "auto" has become "cuda:0"
  DeviceInfo info;
};
Result<ResolvedDevice> resolve_device(const std::string& name);

}  // namespace purlin::guard
