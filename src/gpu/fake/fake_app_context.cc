// SPDX-License-Identifier: Apache-2.0
#include "gpu/fake/fake_app_context.h"

namespace purlin::gpu {
namespace {

class FakeAppKernel : public AppKernel {
 public:
  explicit FakeAppKernel(std::string text) : config(std::move(text)) {}
  const std::string config;
};

class FakeTiming : public AppTiming {
 public:
  explicit FakeTiming(std::array<double, 2> ms) : ms_(ms) {}
  std::optional<std::array<double, 2>> poll() override { return ms_; }

 private:
  const std::array<double, 2> ms_;
};

const std::string& config_of(const AppWork& work) {
  return static_cast<const FakeAppKernel*>(work.kernel)->config;
}

}  // namespace

FakeAppContext::FakeAppContext(std::string language) : language_(std::move(language)) {
  info_.id = "fake:app";
  info_.backend = language_;
  info_.kind = "gpu";
  info_.name = "Fake GPU";
  info_.arch = "fake_1";
  info_.driver = "1.0";
  info_.toolkit = "Fake 1.0";
  info_.max_threads_per_block = 1024;
  info_.warp_size = 32;
}

Result<Binary> FakeAppContext::compile(const CompileRequest& request) {
  ++compiles;
  if (on_compile) PURLIN_TRY(on_compile(request));
  return Binary{request.entry, request.config.text(), "", 0};
}

Result<std::unique_ptr<AppKernel>> FakeAppContext::load(const Binary& binary,
                                                        const std::vector<std::size_t>&) {
  return std::unique_ptr<AppKernel>(std::make_unique<FakeAppKernel>(binary.image));
}

Status FakeAppContext::admit(AppKernel&, const LaunchShape&) { return Status::ok(); }

int FakeAppContext::launch(const AppWork& work, const AppLaunch&) noexcept {
  launches.fetch_add(1, std::memory_order_relaxed);
  if (notes) noted.push_back({config_of(work), *work.shape});
  return launch_code;
}

Status FakeAppContext::failure(int code, const LaunchShape& shape) const {
  return error(Code::kFailed, "launching {}: error {}", to_text(shape), code);
}

bool FakeAppContext::may_overlap(const void* value_a, std::size_t, const void* value_b,
                                 std::size_t) const {
  return *static_cast<void* const*>(value_a) == *static_cast<void* const*>(value_b);
}

int FakeAppContext::launch_shadowed(const std::array<AppWork, 2>& first, const AppWork& live,
                                    const AppLaunch& launch, std::unique_ptr<AppTiming>& timing) {
  ++shadows;
  std::array<double, 2> ms{1, 1};
  for (std::size_t i = 0; time_ms && i < 2; ++i) ms[i] = time_ms(config_of(first[i]));
  timing = std::make_unique<FakeTiming>(ms);
  return this->launch(live, launch);
}

}  // namespace purlin::gpu
