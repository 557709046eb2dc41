// SPDX-License-Identifier: Apache-2.0
#include "gpu/launching.h"

#include "gpu/fake/fake_device.h"

#include <gtest/gtest.h>

namespace purlin::gpu {
namespace {

TEST(MacroOptions, SpellValuesAsCDoes) {
  Config config;
  config.set("BM", std::int64_t{64});
  config.set("PAD", false);
  config.set("UNROLL", true);
  config.set("SCALE", 2.0);
  config.set("EPS", 1e-6);
  config.set("TYPE", std::string("float4"));
  EXPECT_EQ(macro_options(config),
            (std::vector<std::string>{"-DBM=64", "-DPAD=0", "-DUNROLL=1", "-DSCALE=2.0",
                                      "-DEPS=1e-06", "-DTYPE=float4"}));
}

class CheckLaunch : public testing::Test {
 protected:
  CheckLaunch() {
    launch.kernel = &kernel;
    launch.shape.block = {128, 1, 1};
  }
  std::string problem() {
    const Status status = check_launch(device.info(), launch, 256);
    EXPECT_TRUE(status.is_ok() || status.code() == Code::kInvalid);
    return status.message();
  }
  FakeDevice device;
  FakeKernel kernel;
  FakeBuffer buffer{1024};
  Launch launch;
};

TEST_F(CheckLaunch, AcceptsWhatFits) {
  launch.arguments = {{&buffer, 256, 768, ""}, {&buffer, 0, 0, ""}, {nullptr, 0, 0, "abcd"}};
  EXPECT_EQ(problem(), "");
}

TEST_F(CheckLaunch, NamesTheLimitThatIsBroken) {
  launch.shape.block = {512, 3, 1};
  EXPECT_EQ(problem(), "1536 threads per block are over the limit of 1024 on Fake device");
  launch.shape.block = {1, 1, 65};
  EXPECT_EQ(problem(), "block.z = 65 is over the limit of 64 on Fake device");
  launch.shape.block = {128, 1, 1};
  launch.shape.grid = {1, 65536, 1};
  EXPECT_EQ(problem(), "grid.y = 65536 is over the limit of 65535 on Fake device");
  launch.shape.grid = {0, 1, 1};
  EXPECT_NE(problem().find("extent of 0"), std::string::npos);
  launch.shape.grid = {3, 1, 1};
  launch.shape.cluster = {2, 1, 1};
  EXPECT_EQ(problem(), "grid.x = 3 is not a multiple of the cluster's 2");
  launch.shape.cluster = {1, 1, 1};
  kernel.max_threads_per_block = 64;
  EXPECT_NE(problem().find("over the limit of 64 for this kernel as compiled"), std::string::npos);
  kernel.max_threads_per_block = 0;
  kernel.static_shared_bytes = 40 << 10;
  launch.shape.dynamic_shared_bytes = 9 << 10;
  EXPECT_NE(problem().find("50176 bytes of shared memory"), std::string::npos);
}

TEST_F(CheckLaunch, KeepsArgumentsInsideTheirBuffers) {
  launch.arguments = {{&buffer, 128, 0, ""}};
  EXPECT_EQ(problem(), "argument 0: offset 128 is not a multiple of 256 bytes");
  launch.arguments = {{&buffer, 256, 769, ""}};
  EXPECT_EQ(problem(), "argument 0: bytes 256 to 1025 are outside its buffer of 1024");
  launch.arguments = {{nullptr, 0, 0, ""}};
  EXPECT_EQ(problem(), "argument 0 is neither a buffer nor a scalar");
}

// A device on which every sample takes `each_ns`; records the chunks it was asked for.
struct Samplings {
  FakeClock clock;
  std::int64_t each_ns = 1'000'000;
  std::vector<int> chunks;
  std::size_t take(const TimingRequest& request) {
    auto samples = sample_in_chunks(request, clock, [&](int count, std::vector<Sample>& out) {
      chunks.push_back(count);
      clock.now_ns += each_ns * count;
      for (int i = 0; i < count; ++i) out.push_back({1, 0});
      return Status::ok();
    });
    return samples.is_ok() ? samples->size() : 0;
  }
};

TEST(SampleInChunks, WithoutABudgetManyAreInFlight) {
  Samplings s;
  EXPECT_EQ(s.take({100, 1, false, 0}), 100u);
  EXPECT_EQ(s.chunks, (std::vector<int>{64, 36}));
}

TEST(SampleInChunks, ABudgetIsProbedFirstAndThenFilled) {
  Samplings s;
  EXPECT_EQ(s.take({100, 1, false, 0.0105}), 11u);  // the one in which the budget ran out included
  EXPECT_EQ(s.chunks, (std::vector<int>{1, 9, 1}));
}

TEST(SampleInChunks, ASlowKernelGetsOneSample) {
  Samplings s;
  s.each_ns = 10'000'000'000;
  EXPECT_EQ(s.take({100, 1, false, 0.5}), 1u);
}

TEST(SampleInChunks, PassesFailuresOn) {
  FakeClock clock;
  const auto fail = [](int, std::vector<Sample>&) { return error(Code::kFailed, "lost"); };
  EXPECT_EQ(sample_in_chunks({1, 1, false, 0}, clock, fail).status().message(), "lost");
  EXPECT_EQ(sample_in_chunks({0, 1, false, 0}, clock, fail).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::gpu
