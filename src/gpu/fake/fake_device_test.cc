// SPDX-License-Identifier: Apache-2.0
#include "gpu/fake/fake_device.h"

#include <gtest/gtest.h>

#include <cstring>

namespace purlin::gpu {
namespace {

CompileRequest request_with(std::int64_t bm) {
  CompileRequest request;
  request.name = "k.cl";
  request.entry = "k";
  request.config.set("BM", bm);
  return request;
}

std::int64_t bm_of(const FakeKernel& kernel) {
  return std::get<std::int64_t>(*kernel.config.find("BM"));
}

TEST(FakeDevice, AKernelWritesItsPatternToItsLastBuffer) {
  FakeDevice device;
  auto kernel = device.load(*device.compile(request_with(16)));
  ASSERT_TRUE(kernel.is_ok()) << kernel.status().message();
  auto input = device.allocate(1024), output = device.allocate(1024);
  ASSERT_TRUE(device.fill(**output, 0, 0xEE, 1024).is_ok());
  Launch launch;
  launch.kernel = kernel->get();
  launch.arguments = {
      {input->get(), 0, 0, ""}, {output->get(), 256, 512, ""}, {nullptr, 0, 0, "x"}};
  ASSERT_TRUE(device.run(launch).is_ok());
  std::vector<std::uint8_t> bytes(1024);
  ASSERT_TRUE(device.read(**output, 0, bytes.data(), bytes.size()).is_ok());
  float value = 0;
  std::memcpy(&value, &bytes[256 + 127 * 4], 4);
  EXPECT_EQ(value, 63.5F);
  EXPECT_EQ(bytes[255], 0xEE);
  EXPECT_EQ(bytes[768], 0xEE);
  EXPECT_EQ(device.launches, 1);
  EXPECT_EQ(device.compiles, 1);
}

TEST(FakeDevice, CallbacksDecide) {
  FakeBehaviour behaviour;
  behaviour.compile = [](const CompileRequest& request) {
    return request.config.items().empty() ? error(Code::kInvalid, "refused") : Status::ok();
  };
  behaviour.launch = [](const FakeKernel& kernel, const Launch&) {
    return bm_of(kernel) > 64 ? error(Code::kInvalid, "too big") : Status::ok();
  };
  behaviour.time_ms = [](const FakeKernel& kernel, const LaunchShape&) {
    return static_cast<double>(bm_of(kernel));
  };
  FakeDevice device(behaviour);
  EXPECT_EQ(device.compile({}).status().message(), "refused");
  auto small = device.load(*device.compile(request_with(64)));
  auto large = device.load(*device.compile(request_with(128)));
  EXPECT_EQ(device.time({small->get(), {}, {}}, {})->front().ms, 64.0);
  EXPECT_EQ(device.time({large->get(), {}, {}}, {}).status().message(), "too big");
}

TEST(FakeDevice, NoiseIsReproducibleAndTheBudgetCountsItsOwnTime) {
  FakeBehaviour behaviour;
  behaviour.noise = 0.01;
  behaviour.time_ms = [](const FakeKernel&, const LaunchShape&) { return 10.0; };
  FakeDevice one(behaviour), two(behaviour);
  auto kernel = one.load(*one.compile(request_with(1)));
  const Launch launch{kernel->get(), {}, {}};
  const auto a = *one.time(launch, {100, 1, false, 0}), b = *two.time(launch, {100, 1, false, 0});
  ASSERT_EQ(a.size(), 100u);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].ms, b[i].ms);
  EXPECT_NE(a[0].ms, a[1].ms);
  EXPECT_NEAR(median_ms(a), 10.0, 0.05);
  EXPECT_LE(one.time(launch, {100, 2, false, 0.1})->size(), 6u);
}

TEST(FakeDevice, RefusesABinaryOfAnotherKind) {
  FakeDevice device;
  EXPECT_EQ(device
                .load({"k",
                       "\x7f"
                       "ELF",
                       "", 0})
                .status()
                .code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace purlin::gpu
