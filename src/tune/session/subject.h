// SPDX-License-Identifier: Apache-2.0
// Subject: a kernel at one problem shape, or a recording of one, ready to be tuned. It owns the
// evaluators (worker processes or the recording) and the space.
//
// Belongs to one thread. Failure: kInvalid for the spec, a limit or an empty space; kUnavailable
// for the device or a missing energy counter; kCancelled when `stop` was set.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "gpu/replay/replay_device.h"
#include "model/spec/spec.h"
#include "tune/session/command/evaluator.h"
#include "tune/session/confirm.h"
#include "tune/session/replay_evaluator.h"
#include "tune/session/worker_pool.h"
#include "tune/space/space.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::tune {

struct Subject {
  std::optional<KernelSpec> spec;  // nullopt: a recording
  ProblemShape problem;
  std::string name;                    // of the kernel, for people
  std::vector<Evaluator*> evaluators;  // the first holds the finals, and its device is the winner's
  Space space;
  double space_s = 0;                    // Seconds to build the space.
  DeviceInfo device;                     // As the key has it: a library's version is its toolkit.
  std::optional<Config> default_config;  // If nullopt: a recording.
  std::vector<std::size_t> seeds;        // A library's own proposals. The search starts with them.
  std::vector<SpecExpression> limits;    // Further limits of a config, next to the spec's.
  bool energy = false;                   // The energy of a launch is measured.
  // Starts evaluators to confirm a winner with. Empty: the winner of the finals is final.
  FreshEvaluator fresh;

  bool executes() const { return evaluators.front()->executes(); }

  // The owners of `evaluators`.
  std::vector<std::unique_ptr<WorkerPool>> pools;
  std::unique_ptr<gpu::ReplayDevice> recording;
  std::unique_ptr<ReplayEvaluator> replay;
  std::unique_ptr<CommandEvaluator> commands;
};

struct SubjectOptions {
  std::vector<std::string> devices;  // as gpu::open_device takes them, all of one model
  std::string binary_cache;          // directory
  int compilers = -1;                // processes that compile ahead; -1: default_compilers()
  double timeout_s = 60;             // Of one compilation, and of one run.
  double reference_s = 0;            // Of the reference's run, where the budget limits it
  std::vector<std::string> limits;   // expressions such as "power_w < 500"
  Objective objective = Objective::kTime;
  // Ends the start, the construction of the space and evaluations; outlives the subject.
  const std::atomic<bool>* stop = nullptr;
  // Hears what the start does, in words for people: "runs the reference".
  std::function<void(std::string_view)> on_phase{};
};

// The facts of the device that a spec's kernel is tuned on, opened for them alone. The processor,
// for commands of the host.
Result<DeviceInfo> device_for_spec(const KernelSpec& spec, const std::string& name);

// Starts the workers and builds the space. The space of a spec with a [library] is the list of
// algorithms that the library accepts. A spec with a [command] has no worker.
Result<std::unique_ptr<Subject>> open_kernel(const KernelSpec& spec, const ProblemShape& problem,
                                             const SubjectOptions& options, Log& log);

// A recording at `path`. With `spec` the space is the part of the spec's space that is recorded.
Result<std::unique_ptr<Subject>> open_recording(const std::string& path,
                                                const std::optional<KernelSpec>& spec, Log& log);

}  // namespace purlin::tune
