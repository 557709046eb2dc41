// SPDX-License-Identifier: Apache-2.0
// Worker: Workbenches in a separate process. If a candidate crashes, hangs or corrupts memory, only
// that candidate is lost, not the session. The guard also uses a new process for every round.
//
// The child is `purlin worker`, a hidden verb; requests and replies are JSON lines over pipes
// (docs/formats/worker.md). Thread-safety: a Worker belongs to one thread at a time; use several
// for parallel compilation. The child ends when its Worker, or the process that holds it, does.
#pragma once

#include "base/status.h"
#include "gpu/device.h"
#include "measure/timing.h"
#include "model/evaluation.h"
#include "model/spec/spec.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::measure {

class WorkerChannel;

// The setup of one Workbench of a worker.
struct BenchSetup {
  std::string spec_path;
  ProblemShape problem;
  bool verify = true;
  std::uint64_t seed = 0;  // added to the spec's seed: other input contents, same shapes
};

struct WorkerSetup {
  std::string executable;  // the purlin binary; "" = next to the running one
  std::string device;      // as open_device takes it
  std::string spec_path;   // of the first bench; "" = none yet, see open()
  ProblemShape problem;
  std::string binary_cache;  // directory; "" = none
  bool verify = true;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> environment;  // added to what the process inherits
  // For each step of a start: opening the device, laying out the arguments, compiling the
  // reference. How long these take says how busy the host is, and nothing of the problem's size.
  double start_timeout_s = 300;
  double reference_timeout_s = 300;  // for the run of the reference
  // Hears what the worker does, in words for people: "runs the reference". On the caller's thread.
  std::function<void(std::string_view)> on_phase{};
};

class Worker {
 public:
  // Starts the process, opens the device in it and the first bench, if the setup names a spec. With
  // `compile_only` no buffers are made and evaluate() may not be called. kInvalid for what is wrong
  // with the spec, kUnavailable for the device, kFailed when the child dies repeatedly, kTimeout
  // when it takes too long. `stop` ends the start early (kCancelled). It outlives the worker: the
  // calls below end early too, an evaluation after a short grace.
  static Result<std::unique_ptr<Worker>> start(const WorkerSetup& setup, bool compile_only = false,
                                               const std::atomic<bool>* stop = nullptr);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // A further bench in the same process; the number to name it by. The setup's own is number 0.
  Result<int> open(const BenchSetup& bench);

  // A dead or hung child becomes kCrash or kTimeout, and the next call starts a new one. A Status
  // is returned only when no worker can be started any more, or when `stop` or policy.limit_s ended
  // it (kCancelled): then nothing is known of the config. The timeout is for each step: compiling,
  // verifying, measuring. What a new child takes to start is not counted.
  Result<Evaluation> compile(const Config& config, double timeout_s, int bench = 0);
  Result<Evaluation> evaluate(const Config& config, const Policy& policy, double timeout_s,
                              int bench = 0);

  // A batch of samples of a config that was evaluated, and how it ended (workbench.h).
  Result<Evaluation> repeat(const Config& config, const Policy& policy, double timeout_s,
                            int bench = 0);

  // Hardware counters of one launch of a config that was evaluated (workbench.h). Do not time in
  // this child afterwards. kUnavailable: this machine has no counters, with the reason. Any other
  // Status is about this config, or is temporary.
  Result<std::map<std::string, double>> count(const Config& config, const Policy& policy,
                                              double timeout_s, int bench = 0);

  // The algorithms that a library offers for the bench's operation and shape, from the worker's
  // cache of them if possible. kInvalid if the bench's spec has no [library].
  Result<gpu::LibrarySpace> library_space(double timeout_s, int bench = 0);

  // No phase is reported from now on.
  void end_phases() { setup_.on_phase = nullptr; }

  const DeviceInfo& device() const { return device_; }
  bool executes() const { return executes_; }
  // Why the device's energy cannot be measured; "" = it can.
  const std::string& energy_problem() const { return energy_problem_; }
  int restarts() const { return restarts_; }  // children that had to be replaced

 private:
  Worker(WorkerSetup setup, bool compile_only);
  Status ensure_open(int bench);
  Result<Evaluation> ask(Json request, const Config& config, double timeout_s, double limit_s,
                         int bench);
  void report_phase(std::string_view phase) const;
  static std::string too_long(const std::string& step, const BenchSetup& bench);
  Json start_request() const;
  Json open_request(int bench) const;

  WorkerSetup setup_;
  bool compile_only_;
  bool is_known_ = false;  // the three that follow, from the first child on
  DeviceInfo device_;
  bool executes_ = true;
  std::string energy_problem_;
  std::vector<BenchSetup> benches_;
  std::vector<bool> opened_;  // in the present child
  std::unique_ptr<WorkerChannel> channel_;
  int restarts_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace purlin::measure
