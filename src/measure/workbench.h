// SPDX-License-Identifier: Apache-2.0
// Workbench: a kernel spec laid out on one device for one problem shape, ready to try configs on.
//
// It owns the arguments' buffers. Inputs have deterministic contents and are restored when a kernel
// changed them. Outputs are poisoned before each verification, which shows unwritten elements. Red
// zones around each buffer show writes outside it. The reference's outputs are computed once.
// Thread-safety: belongs to one thread. Failure of a config is an Evaluation, not a Status; a
// Status means that the spec or the device is unusable.
#pragma once

#include "base/status.h"
#include "gpu/device.h"
#include "measure/timing.h"
#include "model/evaluation.h"
#include "model/spec/spec.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace purlin::measure {

class BinaryCache;

class Workbench {
 public:
  struct Options {
    bool verify = true;
    bool compile_only = false;        // no buffers, no reference; evaluate() may not be called
    std::uint64_t seed = 0;           // added to the spec's seed: other contents, same shapes
    BinaryCache* binaries = nullptr;  // not owned; nullptr: compile every time
    // Called when a step begins: "compile reference", "reference"; "compile", "verify", "measure".
    // It shows the step of a crash or a hang.
    std::function<void(std::string_view)> on_step;
  };
  // Allocates, fills and runs the reference. kInvalid with where the spec is wrong (a reference
  // that does not compile or run, sizes that are not positive), kUnavailable when memory is short.
  static Result<std::unique_ptr<Workbench>> create(gpu::Device& device, const KernelSpec& spec,
                                                   const ProblemShape& problem, Options options);
  virtual ~Workbench() = default;

  // Compiles only, into the binary cache; ok, or an Evaluation with the reason.
  virtual Evaluation compile(const Config& config) = 0;
  // Constraints and limits, compile, verify, measure. A device that was lost makes it kCrash.
  virtual Evaluation evaluate(const Config& config, const Policy& policy) = 0;
  // One batch of samples (time_batch) of a config that was evaluated and worked. It is not verified
  // again, but memory outside its buffers is looked at. A few kernels stay loaded. No sample: it
  // was loaded and has warmed up.
  virtual Evaluation repeat(const Config& config, const Policy& policy) = 0;
  // Hardware counters of one launch, gpu/device.h, in the cache state that the policy times in. Of
  // a config that was evaluated; outputs are not looked at.
  virtual Result<std::map<std::string, double>> count(const Config& config,
                                                      const Policy& policy) = 0;
  // After the device was lost nothing works, and the process must end.
  virtual bool device_lost() const = 0;
  virtual const ProblemShape& problem() const = 0;
  virtual const KernelSpec& spec() const = 0;
};

// FLOPs and bytes of one launch by the spec's expressions; 0 where the spec has none.
struct Work {
  double flops = 0, bytes = 0;
};
Result<Work> work_of(const KernelSpec& spec, const ProblemShape& problem, const Config& config,
                     const DeviceInfo& device);

// At most `limit` bytes of a compiler's log, from its first error on where the log is longer.
std::string bounded_log(std::string_view log, std::size_t limit = 4096);

}  // namespace purlin::measure
