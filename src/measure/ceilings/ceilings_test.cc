// SPDX-License-Identifier: Apache-2.0
#include "measure/ceilings/ceilings.h"

#include "base/files.h"
#include "gpu/fake/fake_device.h"
#include "gpu/registry.h"

#include <gtest/gtest.h>

namespace purlin::measure {
namespace {

// A device of 1 TB/s whose arithmetic takes 1 us a launch and iteration, and has no f64.
std::unique_ptr<gpu::FakeDevice> fake() {
  gpu::FakeBehaviour behaviour;
  behaviour.compile = [](const gpu::CompileRequest& request) -> Status {
    for (const std::string& option : request.options)
      if (option.find("double") != std::string::npos)
        return error(Code::kInvalid, "no double here\nsecond line");
    return Status::ok();
  };
  behaviour.time_ms = [](const gpu::FakeKernel& kernel, const LaunchShape&) {
    return kernel.entry == "fma_chains" ? 10.0 : 0.004;
  };
  auto device = std::make_unique<gpu::FakeDevice>(behaviour);
  DeviceInfo& info = device->mutable_info();
  info.kind = "gpu";
  info.name = "Fake GPU";
  info.uuid = "GPU-1";
  info.driver = "1.0";
  info.compute_units = 4;
  info.clock_mhz = 1500;
  info.l2_bytes = 1 << 20;
  return device;
}

MeasuredCeilings measure_fake() {
  const auto device = fake();
  CeilingOptions options;
  options.buffer_bytes = 4'000'000 / 4096 * 4096;
  auto measured = measure_ceilings(*device, options);
  EXPECT_TRUE(measured.is_ok()) << measured.status().message();
  return std::move(measured).value();
}

const CeilingMeasurement& find(const MeasuredCeilings& measured, const std::string& ceiling,
                               const std::string& method) {
  for (const CeilingMeasurement& m : measured.measurements)
    if (m.ceiling == ceiling && m.method.substr(0, method.size()) == method) return m;
  static const CeilingMeasurement kNone;
  ADD_FAILURE() << ceiling << " by " << method << " was not tried";
  return kNone;
}

TEST(MeasuredCeilings, WorkOverTime) {
  const MeasuredCeilings measured = measure_fake();
  const double bytes = 4'000'000 / 4096 * 4096;
  EXPECT_NEAR(find(measured, "dram", "read").best, bytes / 4e-6, 1e6);
  ASSERT_NE(measured.ceilings.memory_for("dram"), nullptr);
  EXPECT_EQ(measured.ceilings.memory.front().name, "dram");
  EXPECT_EQ(measured.ceilings.memory.front().clock_mhz, 0);  // not the SMs'
  const Ceiling* f32 = measured.ceilings.compute_for("f32", false);
  ASSERT_NE(f32, nullptr);
  EXPECT_GT(f32->peak, 0);
  EXPECT_EQ(f32->clock_mhz, 1500);
  EXPECT_EQ(f32->provenance, "measured");
}

TEST(MeasuredCeilings, WhatWroteNothingIsNoMeasurement) {
  // For each kernel the fake writes its pattern to the last buffer, so copies are wrong.
  const MeasuredCeilings measured = measure_fake();
  EXPECT_NE(find(measured, "dram", "copy").problem.find("its time means nothing"),
            std::string::npos);
  EXPECT_NE(find(measured, "dram", "triad").problem, "");
  EXPECT_NE(find(measured, "f64", "fma").problem.find("no double here"), std::string::npos);
  EXPECT_EQ(measured.ceilings.compute_for("f64", false), nullptr);
  const std::string text =
      render_ceilings(measured, fake()->info(), Terminal(false, false, false, 100));
  EXPECT_NE(text.find("Not measured:"), std::string::npos);
  EXPECT_EQ(text.find("second line"), std::string::npos);
}

TEST(MeasuredCeilings, AreFoundAgainForTheirDevice) {
  const auto folder = make_temporary_directory("ceilings");
  ASSERT_TRUE(folder.is_ok());
  const auto device = fake();
  DeviceInfo info = device->info();
  MeasuredCeilings measured = measure_fake();
  EXPECT_TRUE(load_ceilings(info, *folder).empty());
  ASSERT_TRUE(store_ceilings(ceilings_document(measured, info), info, *folder).is_ok());
  EXPECT_EQ(load_ceilings(info, *folder).compute_for("f32", false)->peak,
            measured.ceilings.compute_for("f32", false)->peak);
  // Another device, another driver: not these.
  info.uuid = "GPU-2";
  EXPECT_TRUE(load_ceilings(info, *folder).empty());
  info.uuid = "GPU-1";
  info.driver = "2.0";
  EXPECT_TRUE(load_ceilings(info, *folder).empty());
  // A trace that names the model alone is given them; the very device's own come first.
  info.uuid = info.driver = "";
  EXPECT_FALSE(load_ceilings(info, *folder).empty());
  info.name = "Other GPU";
  EXPECT_TRUE(load_ceilings(info, *folder).empty());
  // Damaged files are skipped.
  ASSERT_TRUE(write_atomic(join_path(*folder, "0.json"), "{").is_ok());
  ASSERT_TRUE(write_atomic(join_path(*folder, "1.json"),
                           R"({"schema": "purlin.ceilings/1", "ceilings": {"device": 3}})")
                  .is_ok());
  EXPECT_FALSE(load_ceilings(device->info(), *folder).empty());
  EXPECT_TRUE(remove_tree(*folder).is_ok());
}

TEST(MeasuredCeilings, ARealDevice) {
  auto device = gpu::open_device("opencl");
  ASSERT_TRUE(device.is_ok()) << device.status().message() << "; ./dev test installs PoCL";
  CeilingOptions options;
  options.budget_s = 0.01;
  options.buffer_bytes = 1 << 20;
  const auto measured = measure_ceilings(**device, options);
  ASSERT_TRUE(measured.is_ok()) << measured.status().message();
  for (const char* method : {"read", "write", "copy", "triad"}) {
    EXPECT_EQ(find(*measured, "dram", method).problem, "");
    EXPECT_GT(find(*measured, "dram", method).best, 0);
  }
  EXPECT_GT(find(*measured, "f32", "fma").best, 0);
}

}  // namespace
}  // namespace purlin::measure
