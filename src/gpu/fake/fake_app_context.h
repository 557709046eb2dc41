// SPDX-License-Identifier: Apache-2.0
// FakeAppContext: an AppContext without hardware, for tests and for measuring the overhead of a
// dispatch without its launch.
//
// A kernel is its config's text. Launches are counted, and noted if `notes` is set. Shadow launches
// take the times that the test sets. Thread-safety: as AppContext, except for the noted launches
// and the callbacks, which belong to single-threaded tests.
#pragma once

#include "gpu/app_context.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace purlin::gpu {

class FakeAppContext : public AppContext {
 public:
  explicit FakeAppContext(std::string language = "opencl");

  std::string_view language() const override { return language_; }
  Result<Binary> compile(const CompileRequest& request) override;
  Result<std::unique_ptr<AppKernel>> load(const Binary& binary,
                                          const std::vector<std::size_t>& sizes) override;
  Status admit(AppKernel& kernel, const LaunchShape& shape) override;
  int launch(const AppWork& work, const AppLaunch& launch) noexcept override;
  Status failure(int code, const LaunchShape& shape) const override;
  bool capturing(void*) const noexcept override { return is_capturing; }
  bool may_overlap(const void* value_a, std::size_t, const void* value_b,
                   std::size_t) const override;
  int launch_shadowed(const std::array<AppWork, 2>& first, const AppWork& live,
                      const AppLaunch& launch, std::unique_ptr<AppTiming>& timing) override;

  DeviceInfo& mutable_info() { return info_; }
  struct Noted {
    std::string config;
    LaunchShape shape;
  };
  bool notes = false;
  std::vector<Noted> noted;  // each launch of the program, where `notes`
  std::atomic<std::uint64_t> launches{0}, shadows{0};
  std::atomic<int> compiles{0};
  bool is_capturing = false;
  int launch_code = 0;                                       // what launches return
  std::function<Status(const CompileRequest&)> on_compile;   // empty: all compile
  std::function<double(const std::string& config)> time_ms;  // of a shadow; empty: 1 ms

 private:
  const std::string language_;
};

}  // namespace purlin::gpu
