// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/platform.h"

#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

DeviceInfo pocl() {
  DeviceInfo device;
  device.id = "opencl:0";
  device.backend = "opencl";
  device.kind = "cpu";
  device.name = "pthread-EPYC";
  return device;
}

KernelRow plain_row() {
  KernelRow row;
  row.name = "saxpy";
  return row;
}

// A program whose copies nothing hides, and which waits in each step.
Program copying(const char* copy_kind) {
  Program program;
  program.steps(5, [&](Program& step) {
    step.copy(copy_kind, 2'000'000, 8 << 20);
    step.kernel(plain_row(), 3'000'000);
  });
  return program;
}

std::string steps_of(const Advice& advice) {
  std::string text;
  for (const Intervention& one : advice.interventions)
    for (const std::string& step : one.how) text += one.id + "> " + step + "\n";
  return text;
}

TEST(Platform, IsReadFromDevicesProcessesAndNames) {
  Profile profile;
  EXPECT_EQ(platform_of(profile, {}).api, Platform::Api::kCuda) << "unknown";
  EXPECT_FALSE(platform_of(profile, {}).torch);
  profile.environment.devices = {pocl()};
  EXPECT_EQ(platform_of(profile, {}).api, Platform::Api::kOpencl);
  EXPECT_TRUE(platform_of(profile, {}).cpu);
  profile.environment.devices.push_back(h200());
  EXPECT_FALSE(platform_of(profile, {}).cpu);
  profile.environment.devices = {h200()};
  profile.environment.devices[0].arch = "gfx942";
  EXPECT_EQ(platform_of(profile, {}).api, Platform::Api::kHip);
  KernelStat row;
  row.op = "aten::mm";
  EXPECT_TRUE(platform_of(profile, {row}).torch);
  row.op = "";
  row.name.family = "pytorch";
  EXPECT_TRUE(platform_of(profile, {row}).torch);
  EXPECT_FALSE(platform_of(profile, {row}).jax);
  row.name.family = "xla";
  EXPECT_TRUE(platform_of(profile, {row}).jax);
  EXPECT_FALSE(platform_of(profile, {}).jax);
  CoverageNote note;
  note.cause = "jax_programs";
  profile.coverage.notes = {note};
  EXPECT_TRUE(platform_of(profile, {}).jax);
  EXPECT_TRUE(fits(platform_of(profile, {}), "JAX: jax.lax.scan"));
  EXPECT_FALSE(fits(platform_of(Profile(), {}), "JAX: jax.lax.scan"));
}

TEST(Platform, AStepNamesItsAudience) {
  const Platform opencl = {.api = Platform::Api::kOpencl, .cpu = true};
  EXPECT_TRUE(fits(opencl, "OpenCL: map"));
  EXPECT_TRUE(fits(opencl, "a larger batch: fewer launches")) << "no audience";
  for (const char* step : {"CUDA: x", "PyTorch: x", "cuBLASLt: x", "GPU: x", "HIP: x"})
    EXPECT_FALSE(fits(opencl, step)) << step;
  const Platform torch = {.torch = true};
  EXPECT_TRUE(fits(torch, "PyTorch: x"));
  EXPECT_TRUE(fits(torch, "CUDA: x"));
  EXPECT_FALSE(fits(torch, "OpenCL: x"));
}

TEST(Platform, ACProgramOnAProcessorGetsNoAdviceForGpusOrPyTorch) {
  Program program = copying("h2d");
  program.builder().profile.environment.devices = {pocl()};
  const Advice advice = program.advice();
  const std::string steps = steps_of(advice);
  EXPECT_NE(steps.find("map_buffers> OpenCL: clEnqueueMapBuffer"), std::string::npos) << steps;
  EXPECT_NE(steps.find("CL_MEM_USE_HOST_PTR"), std::string::npos);
  for (const char* wrong : {"torch", "cuda", "pin", "PCIe", "DataLoader"})
    EXPECT_EQ(steps.find(wrong), std::string::npos) << wrong << "\n" << steps;
  for (const Intervention& one : advice.interventions) {
    EXPECT_NE(one.id, "pin_memory");
    EXPECT_NE(one.id, "cuda_graphs");
  }
}

TEST(Platform, ACudaProgramInCGetsNoPyTorch) {
  const std::string steps = steps_of(copying("h2d pageable").advice());
  EXPECT_NE(steps.find("pin_memory> CUDA: cudaMallocHost"), std::string::npos) << steps;
  EXPECT_EQ(steps.find("PyTorch"), std::string::npos) << steps;
  EXPECT_EQ(steps.find("OpenCL"), std::string::npos) << steps;
}

// A text of one world without its label would reach every program.
TEST(Platform, EveryStepOfAFrameworkIsLabelled) {
  std::vector<Remedy> all(remedies().begin(), remedies().end());
  for (const Rule* rule : playbook())
    all.insert(all.end(), rule->remedies.begin(), rule->remedies.end());
  const Platform bare = {.api = Platform::Api::kOpencl, .cpu = true};
  for (const Remedy& remedy : all)
    for (const std::string& step : from_remedy(remedy).how) {
      if (!fits(bare, step)) continue;
      for (const char* word : {"torch", "cuda", "Cuda", "__launch", "DataLoader", "ncu", "nvcc",
                               "cudnn", "hipM", ".item()", "pin_memory"})
        EXPECT_EQ(step.find(word), std::string::npos) << remedy.id << ": " << step;
    }
}

TEST(Platform, KernelsAreWrittenInALanguageOfTheDevice) {
  Intervention one;
  one.expertise = "kernel";
  one.id = "tune_kernel";
  Platform platform;
  EXPECT_EQ(route_of(platform, one), "cuda");
  platform.torch = true;
  EXPECT_EQ(route_of(platform, one), "triton");
  one.id = "avoid_bank_conflicts";  // Triton's compiler arranges shared memory
  EXPECT_EQ(route_of(platform, one), "cuda");
  platform.api = Platform::Api::kHip;
  EXPECT_EQ(route_of(platform, one), "hip");
  platform.api = Platform::Api::kOpencl;
  EXPECT_EQ(route_of(platform, one), "opencl");
  one.expertise = "framework";
  EXPECT_EQ(route_of(platform, one), "");
}

// A V100 has neither TF32 nor bfloat16, an A100 no FP8.
TEST(Platform, WhatTheDeviceLacksIsNotAdvised) {
  Platform platform{.torch = true};
  const auto steps = [&](std::string_view id) {
    std::string out;
    for (const std::string& step : from_remedy(id).how)
      if (fits(platform, step)) out += step + "\n";
    return out;
  };
  EXPECT_NE(steps("tensor_cores").find("TF32"), std::string::npos) << "the device is not known";
  platform.arch = 70;
  const std::string volta = steps("tensor_cores");
  EXPECT_EQ(volta.find("TF32"), std::string::npos) << volta;
  EXPECT_EQ(volta.find("bfloat16"), std::string::npos) << volta;
  EXPECT_NE(volta.find("float16"), std::string::npos) << volta;
  EXPECT_EQ(steps("more_loads_in_flight").find("cp.async"), std::string::npos);
  platform.arch = 80;
  EXPECT_NE(steps("tensor_cores").find("bfloat16"), std::string::npos);
  const std::string fp8 = "PyTorch: FP8 by torch._scaled_mm";
  EXPECT_FALSE(fits(platform, fp8));
  platform.arch = 90;
  EXPECT_TRUE(fits(platform, fp8));
}

TEST(Platform, TheOldestDeviceDecides) {
  Profile profile;
  for (const char* arch : {"sm_90", "sm_75"}) {
    profile.environment.devices.emplace_back();
    profile.environment.devices.back().arch = arch;
  }
  EXPECT_EQ(platform_of(profile, {}).arch, 75);
}

}  // namespace
}  // namespace purlin::analyze
