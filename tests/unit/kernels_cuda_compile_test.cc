// SPDX-License-Identifier: Apache-2.0
// Every CUDA sample compiles with NVRTC, without a GPU: the reference, the default config and
// configs drawn from the space. Whether they compute the right thing is for tests/gpu to see.
#include "base/random.h"
#include "measure/binary_cache.h"
#include "model/spec/spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#if PURLIN_HAVE_CUDA
#include "gpu/cuda/nvrtc.h"

namespace purlin {
namespace {

std::vector<std::string> sample_specs() {
  std::vector<std::string> specs;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(PURLIN_SOURCE_DIR "/kernels"))
    if (entry.path().extension() == ".toml") specs.push_back(entry.path().string());
  std::sort(specs.begin(), specs.end());
  return specs;
}

DeviceInfo hopper() {
  DeviceInfo device;
  device.kind = "gpu";
  device.compute_units = 132;
  device.warp_size = 32;
  device.max_threads_per_block = 1024;
  device.shared_memory_per_block = 227 * 1024;
  return device;
}

Config draw(const KernelSpec& spec, Random& random) {
  Config config;
  for (const Parameter& parameter : spec.parameters)
    config.set(parameter.name, parameter.values[random.below(parameter.values.size())]);
  return config;
}

class KernelsCudaCompile : public testing::TestWithParam<std::string> {};

TEST_P(KernelsCudaCompile, ReferenceDefaultAndDrawnConfigs) {
  Result<KernelSpec> spec = load_spec(GetParam());
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  if (!spec->sources.count("cuda")) GTEST_SKIP() << "no CUDA source";
  const Result<std::unique_ptr<gpu::Nvrtc>> nvrtc = gpu::Nvrtc::load();
  if (!nvrtc.is_ok()) GTEST_SKIP() << nvrtc.status().message();

  const SourceText& reference = spec->reference.sources.at("cuda");
  const Result<gpu::Binary> compiled = (*nvrtc)->compile(
      measure::compile_request(*spec, reference, spec->reference.entry, {}), "sm_90");
  ASSERT_TRUE(compiled.is_ok()) << compiled.status().message();

  if (spec->library) return;  // its configs are the library's
  const DeviceInfo device = hopper();
  const SourceText& source = spec->sources.at("cuda");
  const std::vector<std::string> archs =
      source.archs.empty() ? std::vector<std::string>{"sm_90", "sm_80"} : source.archs;
  std::vector<Config> configs = {default_config(*spec)};
  Random random(11);
  constexpr int kTries = 200000;
  for (int i = 0; i < kTries && configs.size() < 7; ++i) {
    Config config = draw(*spec, random);
    if (check_constraints(*spec, config_scope(*spec, spec->problem, config, device)).is_ok())
      configs.push_back(std::move(config));
  }
  EXPECT_EQ(configs.size(), 7U) << "the constraints leave too little of the space";
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Scope scope = config_scope(*spec, spec->problem, configs[i], device);
    EXPECT_TRUE(check_constraints(*spec, scope).is_ok()) << configs[i].text();
    const Result<LaunchShape> launch = resolve_launch(spec->launch, scope, device);
    EXPECT_TRUE(launch.is_ok()) << configs[i].text() << ": " << launch.status().message();
    for (const std::string& arch : archs) {
      const Result<gpu::Binary> binary =
          (*nvrtc)->compile(measure::compile_request(*spec, source, spec->entry, configs[i]), arch);
      EXPECT_TRUE(binary.is_ok()) << arch << " " << configs[i].text() << ": "
                                  << binary.status().message();
      if (i > 0) break;  // one arch is enough for the drawn ones
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, KernelsCudaCompile, testing::ValuesIn(sample_specs()),
                         [](const auto& sample) {
                           return std::filesystem::path(sample.param).stem().string();
                         });

}  // namespace
}  // namespace purlin
#endif
