// SPDX-License-Identifier: Apache-2.0
// Dispatcher: one kernel of a program, launched with the best config known for each problem shape.
//
// A launch whose shape has a plan takes a probe, a counter and the driver's call: no lock, no
// allocation, no wait. The first launch of a shape makes the plan: it looks the config up, compiles
// it through the cache of binaries that the tuner fills, and works out its grid. If any obstacle
// prevents a tuned config, the default is served, which is loaded when the dispatcher is opened.
// While a graph is captured nothing is compiled or loaded.
//
// [MT]. The device's context must outlive the dispatcher. Failure: kInvalid for a wrong call or a
// shape that no config, not even the default, is valid for; else the device's own.
#pragma once

#include "gpu/app_context.h"
#include "measure/binary_cache.h"
#include "model/spec/spec.h"
#include "runtime/op.h"
#include "runtime/plan_table.h"
#include "runtime/shadow.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace purlin::runtime {

struct DispatcherOptions {
  std::string binaries;             // directory of compiled kernels; "" = the tuner's
  std::string policy;               // "warm" or "cold" measurements; "" = any
  bool compile_ahead_only = false;  // launches never compile, prepare() does
  bool allow_transferred = false;
  bool refuse_stale = false;  // no entries of another driver or toolkit
  int shadow_every = 0;       // one launch in so many is shadowed; 0 = none
  std::uint64_t seed = 0;     // of the shadow's choices; 0 = by the clock
};

class Dispatcher final : public CacheSession::Member {
 public:
  static Result<std::unique_ptr<Dispatcher>> open(std::shared_ptr<CacheSession> session,
                                                  KernelSpec spec,
                                                  std::unique_ptr<gpu::AppContext> device,
                                                  DispatcherOptions options);
  ~Dispatcher() override;

  // The names of the extents, in the order in which they are given; and of the arguments.
  const std::vector<std::string>& dimensions() const { return dimensions_; }
  const std::vector<Argument>& arguments() const { return spec_.arguments; }
  const gpu::AppContext& device() const { return *device_; }

  Status dispatch(const std::int64_t* extents, const gpu::AppLaunch& launch) {
    Plan* plan = plans_.find(extents);
    if (plan == nullptr || plan->generation.load(std::memory_order_acquire) !=
                               generation_.load(std::memory_order_relaxed))
      return dispatch_unplanned(extents, launch);
    const Choice& choice = *plan->choice.load(std::memory_order_acquire);
    const std::uint64_t count = plan->launches.fetch_add(1, std::memory_order_relaxed) + 1;
    if (choice.variant == nullptr) return choice.problem;
    if (shadow_.enabled() && shadow_.due(*plan, count)) return launch_shadowed(choice, launch);
    return run(choice, launch);
  }

  // Makes the plan ahead, compiling what it takes. Worth calling before a graph is captured.
  Status prepare(const std::int64_t* extents);
  // What a launch would get, as planned by now or, where it is not, as it would be planned without
  // compiling.
  Choice choice(const std::int64_t* extents);
  Shadow::Figures figures(const Duel& duel) const { return shadow_.figures(duel); }

  void update(const cache::Layers& layers) override;
  void collect(std::vector<backlog::WorkRow>& rows) override;

 private:
  Dispatcher(std::shared_ptr<CacheSession> session, KernelSpec spec,
             std::unique_ptr<gpu::AppContext> device, DispatcherOptions options);
  Status run(const Choice& choice, const gpu::AppLaunch& launch) {
    if (!choice.scalars.empty()) return run_with_scalars(choice, launch);
    const int code = device_->launch({choice.variant->kernel.get(), &choice.shape}, launch);
    return code == 0 ? Status::ok() : device_->failure(code, choice.shape);
  }
  Status run_with_scalars(const Choice& choice, const gpu::AppLaunch& launch);
  Status launch_shadowed(const Choice& choice, const gpu::AppLaunch& launch);
  Status dispatch_unplanned(const std::int64_t* extents, const gpu::AppLaunch& launch);

  // With the mutex held.
  Choice make_choice(const std::int64_t* extents, bool may_compile, bool& provisional);
  Status fill(Choice& choice, const Variant& variant, const Scope& scope) const;
  Result<std::vector<Choice::BufferUse>> buffer_uses(const Scope& scope) const;
  void add_rivals(Choice& choice, const ProblemShape& problem, bool may_compile);
  // Compiled and loaded, or nullptr where that may not be done now.
  const Variant* variant(const Config& config, bool may_compile);
  Status build(Variant& variant);
  void settle(Plan& plan, const std::int64_t* extents, bool may_compile);
  void act_on(const std::vector<Defeat>& defeats);
  ProblemShape problem_of(const std::int64_t* extents) const;
  void log_choice(const Choice& choice, const ProblemShape& problem) const;

  const std::shared_ptr<CacheSession> session_;
  const KernelSpec spec_;
  const std::unique_ptr<gpu::AppContext> device_;
  const DispatcherOptions options_;
  const measure::BinaryCache binaries_;
  std::vector<std::string> dimensions_;
  std::vector<std::size_t> sizes_;  // of each argument's value, 0 = a buffer
  Config default_;
  bool idempotent_ = true;  // no argument is changed in place
  std::unique_ptr<Op> op_;
  Shadow shadow_;
  std::mutex mutex_;
  PlanTable plans_;                                           // written under the mutex
  std::atomic<std::uint64_t> generation_{1};                  // plans made before it are stale
  std::map<std::string, std::unique_ptr<Variant>> variants_;  // by config, under the mutex
  std::map<std::string, Config> defeated_;  // record -> what is served instead; under the mutex
};

}  // namespace purlin::runtime
