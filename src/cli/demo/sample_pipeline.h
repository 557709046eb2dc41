// SPDX-License-Identifier: Apache-2.0
// Pipeline: the sample program's work, a step of several kernels as an inference server would run
// it.
//
// For each kernel it asks the config cache for a winner and falls back to the spec's default
// config, as any program would that uses Purlin. Owned by one thread. Failure: a Status that names
// the kernel.
#pragma once

#include "base/status.h"
#include "gpu/device.h"
#include "model/spec/spec.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::sample {

struct Stage {
  std::string kernel;  // the spec's name
  Config config;
  bool tuned = false;   // the config came from the cache
  std::string explain;  // why not, if not
};

class Pipeline {
 public:
  struct Options {
    std::vector<std::string> spec_files;
    std::string preset;  // of the problem shapes; kernels without it use their default shape
    std::string cache;   // directory; "" = the default one
    bool use_cache = true;
  };
  static Result<std::unique_ptr<Pipeline>> create(gpu::Device& device, const Options& options);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Launches every stage once, in order, and waits for the last.
  Status step();
  const std::vector<Stage>& stages() const { return stages_; }

 private:
  struct Prepared;
  Pipeline() = default;
  static Result<std::unique_ptr<Prepared>> prepare(gpu::Device& device, const KernelSpec& spec,
                                                   const ProblemShape& problem,
                                                   const Config& config);
  gpu::Device* device_ = nullptr;
  std::vector<Stage> stages_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace purlin::sample
