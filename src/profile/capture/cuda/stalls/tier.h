// SPDX-License-Identifier: Apache-2.0
// StallTier: the stall reasons of kernels' warps, from program counters that the GPU samples.
//
// CUPTI 13.0 deadlocks when sampling is switched on or off while another thread of the program
// launches (bench/results/stall_sampling.md has the stacks), and the program's threads cannot be
// stopped. So sampling of a context begins on the thread that makes it, before another thread can
// know the context. It is continuous, at a low rate, until the context ends. The session's thread
// fetches the samples before each seal. There are no windows.
//
// A context that existed before Purlin is not sampled. Another client that wants CUPTI's only
// subscription gets it, and contexts made later are not sampled. One per process, owned by the
// CollectorScheduler; called as every Tier.
#pragma once

#include "profile/capture/cuda/activity/modules.h"
#include "profile/capture/cuda/stalls/pc_sampling.h"
#include "profile/capture/cuda/tier.h"
#include "profile/capture/recording/recorder.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::profile::capture::cuda {

struct StallOptions {
  std::uint32_t period_log2 = 18;  // PURLIN_STALLS: an SM takes a sample every 2^this cycles
  std::string spool;

  // False if stalls were not requested.
  static bool from_environment(StallOptions& options);
};

class StallTier : public Tier {
 public:
  // CUPTI's default, 512 MB of pinned memory for each context, is too much.
  static constexpr std::size_t kHardwareBytes = std::size_t{16} << 20;

  StallTier(const PcSampling& cupti, Recorder& recorder, const StallOptions& options);
  ~StallTier() override;

  const char* name() const override { return "stalls"; }
  Requirements requirements() const override;
  void prepare() override;
  Opened open(const Window&) override { return Opened::kNever; }
  void close() override {}
  void yield() override;
  void collect(bool final) override;
  std::int64_t take_cost_ns() override { return 0; }

  // CUPTI's callbacks, on the program's threads.
  void context_created(CUcontext context);
  void context_ends(CUcontext context);
  Modules& modules() { return modules_; }

 private:
  struct Sampled;  // a context

  bool begin(Sampled& sampled);
  void fetch(Sampled& sampled);
  bool add_samples(Sampled& sampled, CUpti_PCSamplingData& data);
  void refuse(const char* what, CUptiResult result);

  const PcSampling cupti_;
  Recorder& recorder_;
  const StallOptions options_;
  Modules modules_;
  std::mutex mutex_;  // contexts_; never held while CUPTI is called from its own callback
  std::vector<std::shared_ptr<Sampled>> contexts_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

}  // namespace purlin::profile::capture::cuda
