// SPDX-License-Identifier: Apache-2.0
// Workbench: a kernel spec laid out on one device for one problem shape, ready to try configs on.
//
// It owns the arguments' buffers: inputs with deterministic contents, outputs poisoned anew before
// each verification so that an unwritten element is seen, red zones around each buffer so that a
// write outside it is seen, and the reference's outputs, computed once. Inputs are restored when a
// kernel changed them. Thread-safety: belongs to one thread. Failure of a config is an Evaluation,
// not a Status; a Status means that the spec or the device is unusable.
#pragma once

#include "base/status.h"
#include "gpu/device.h"
#include "measure/timing.h"
#include "model/evaluation.h"
#include "model/spec.h"

#include <memory>
#include <string>

namespace purlin::measure {

class BinaryCache;

class Workbench {
 public:
  struct Options {
    bool verify = true;
    BinaryCache* binaries = nullptr;  // not owned; nullptr: compile every time
  };
  // Allocates, fills and runs the reference. kInvalid with where the spec is wrong (a reference
  // that does not compile or run, sizes that are not positive), kUnavailable when memory is short.
  static Result<std::unique_ptr<Workbench>> create(gpu::Device& device, const KernelSpec& spec,
                                                   const ProblemShape& problem, Options options);
  virtual ~Workbench() = default;

  // Compiles only, into the binary cache; ok or the Evaluation that says why not.
  virtual Evaluation compile(const Config& config) = 0;
  // Constraints and limits, compile, verify, measure.
  virtual Evaluation evaluate(const Config& config, const Policy& policy) = 0;
  virtual const ProblemShape& problem() const = 0;
};

// FLOPs and bytes of one launch by the spec's expressions; 0 where the spec has none.
struct Work {
  double flops = 0, bytes = 0;
};
Result<Work> work_of(const KernelSpec& spec, const ProblemShape& problem, const Config& config,
                     const DeviceInfo& device);

}  // namespace purlin::measure
