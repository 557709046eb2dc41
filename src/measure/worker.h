// SPDX-License-Identifier: Apache-2.0
// Worker: a Workbench in a process of its own, so that a candidate that crashes, hangs or corrupts
// memory costs one candidate and not the session; and so that the guard can have a fresh process
// for every round.
//
// The child is `purlin worker`, a hidden verb; requests and replies are JSON lines over pipes
// (docs/formats/worker.md). Thread-safety: a Worker belongs to one thread; use several for parallel
// compilation.
#pragma once

#include "base/process.h"
#include "base/status.h"
#include "measure/timing.h"
#include "model/evaluation.h"
#include "model/spec.h"

#include <memory>
#include <string>

namespace purlin::measure {

struct WorkerSetup {
  std::string executable;  // the purlin binary; "" = the running one's folder + "/purlin"
  std::string device;      // as open_device takes it
  std::string spec_path;
  ProblemShape problem;
  std::string binary_cache;  // directory; "" = none
  bool verify = true;
  std::uint64_t seed = 0;  // added to the spec's seed: other input contents, same shapes
};

class Worker {
 public:
  // Starts the process and opens the device in it. With `compile_only` no buffers are made and
  // evaluate() may not be called.
  static Result<std::unique_ptr<Worker>> start(const WorkerSetup& setup, bool compile_only = false);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // A dead or hung child becomes kCrash or kTimeout, and the next call starts a new one. A Status
  // is returned only when no worker can be started any more.
  Result<Evaluation> compile(const Config& config, double timeout_s);
  Result<Evaluation> evaluate(const Config& config, const Policy& policy, double timeout_s);

  const DeviceInfo& device() const { return device_; }
  bool executes() const { return executes_; }

 private:
  Worker(WorkerSetup setup, bool compile_only);
  Status launch();
  Result<Evaluation> ask(Json request, const Config& config, double timeout_s);
  Result<std::string> read_line(double timeout_s);

  WorkerSetup setup_;
  bool compile_only_;
  DeviceInfo device_;
  bool executes_ = true;
  std::unique_ptr<Process> process_;
  std::string unread_;
};

// The child's side: serves requests from in_fd on out_fd until in_fd ends. Returns the exit code.
int serve_worker(int in_fd, int out_fd);

}  // namespace purlin::measure
