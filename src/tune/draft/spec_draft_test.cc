// SPDX-License-Identifier: Apache-2.0
#include "tune/draft/spec_draft.h"

#include "model/spec/spec.h"
#include "tune/draft/launch_guess.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::tune {
namespace {

KernelSource only_kernel(const std::string& file, const std::string& text) {
  const Result<std::vector<KernelSource>> kernels = read_kernels(file, text);
  EXPECT_TRUE(kernels.is_ok()) << kernels.status().message();
  EXPECT_EQ(kernels->size(), 1u);
  return kernels->front();
}

// The draft as the reader of specs sees it.
KernelSpec drafted(const std::string& file, const std::string& text) {
  const Result<SpecDraft> draft = draft_spec(only_kernel(file, text), file);
  EXPECT_TRUE(draft.is_ok()) << draft.status().message();
  const SourceReader read = [&](const std::string&) -> Result<std::string> { return text; };
  Result<KernelSpec> spec = parse_spec(draft->text, "x.toml", read);
  EXPECT_TRUE(spec.is_ok()) << spec.status().message() << "\n" << draft->text;
  return std::move(spec).value();
}

Argument::Role role_of(const KernelSpec& spec, const std::string& name) {
  for (const Argument& argument : spec.arguments)
    if (argument.name == name) return argument.role;
  ADD_FAILURE() << name;
  return Argument::Role::kScratch;
}

TEST(SpecDraft, RolesFollowTheUsesOfAPointer) {
  using Role = Argument::Role;
  const KernelSpec spec = drafted("k.cl", R"(
__kernel void k(__global float* only_written, __global float* only_read, __global float* both,
                __global int* counted, __global const float* constant, __global float4* stored, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  only_written[i] = only_read[i] + constant[i];
  both[i] += 1;
  atomic_inc(&counted[0]);
  vstore4((float4)(0), i, stored);
})");
  EXPECT_EQ(role_of(spec, "only_written"), Role::kOutput);
  EXPECT_EQ(role_of(spec, "only_read"), Role::kInput);
  EXPECT_EQ(role_of(spec, "both"), Role::kInOut);
  EXPECT_EQ(role_of(spec, "counted"), Role::kInOut);
  EXPECT_EQ(role_of(spec, "constant"), Role::kInput);
  EXPECT_EQ(role_of(spec, "stored"), Role::kOutput);
  EXPECT_EQ(role_of(spec, "n"), Role::kScalar);
}

TEST(SpecDraft, OnlyMacrosThatAnOptionCanSetAreParameters) {
  const KernelSource kernel = only_kernel("k.cl", R"(
#define FIXED 8
#ifndef FREE
#define FREE 4
#endif
#if !defined(ALSO_FREE)
#  define ALSO_FREE 2
#endif
#define SQUARE(x) ((x) * (x))
__constant int TABLE = 3;
__kernel void k(__global float* out) { out[get_global_id(0)] = FREE * FIXED + SQUARE(UNDEFINED) + INT_MAX; })");
  std::vector<std::string> names;
  for (const SourceParameter& one : kernel.parameters) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"FREE", "ALSO_FREE", "UNDEFINED"}));
  EXPECT_EQ(kernel.fixed, (std::vector<std::string>{"FIXED", "TABLE"}));
}

TEST(SpecDraft, ABlockIsAParameterAndAxesFollowTheBounds) {
  const KernelSpec spec = drafted("k.cu", R"(
__global__ void k(float* image, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) image[y * width + x] = 0;
})");
  ASSERT_EQ(spec.launch.grid.size(), 2u);
  EXPECT_EQ(spec.launch.grid[0].expression.text(), "ceil_div(width, BLOCK_X)");
  EXPECT_EQ(spec.launch.grid[1].expression.text(), "ceil_div(height, BLOCK_Y)");
  EXPECT_EQ(spec.constraints.size(), 1u);
}

TEST(SpecDraft, SharedMemoryKeepsTheSizeOfABlock) {
  const LaunchGuess guess = guess_launch(only_kernel("k.cu", R"(
__global__ void k(float* out, int n) {
  __shared__ float tile[256];
  tile[threadIdx.x] = blockIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[0];
})"));
  ASSERT_EQ(guess.parameters.size(), 1u);
  EXPECT_EQ(guess.parameters[0].values.size(), 1u);
  EXPECT_TRUE(guess.block_fixed);
}

TEST(SpecDraft, HostileTextIsReadToItsEnd) {
  for (const char* text :
       {"", "__kernel", "__kernel void", "__kernel void k(", "__kernel void k() {", "/*", "\"",
        "__kernel void k(float", "#define", "template <", "__kernel __attribute__((", "(((((((("})
    for (const char* file : {"a.cl", "a.cu", "a.py"}) (void)read_kernels(file, text);
  for (const char* text : {"@triton.jit\ndef", "@triton.jit\ndef k(", "@triton.jit\n@", "'''"})
    (void)read_kernels("a.py", text);
  EXPECT_FALSE(read_kernels("a.c", "__kernel void k(__global int* a) {}").is_ok());
}

TEST(SpecDraft, WhatASpecCannotPassIsAnError) {
  for (const char* argument : {"__local float* a", "image2d_t a", "struct Big a"}) {
    const KernelSource kernel =
        only_kernel("k.cl", "__kernel void k(__global int* out, " + std::string(argument) +
                                ") { out[0] = 1; }");
    EXPECT_FALSE(draft_spec(kernel, "k.cl").is_ok()) << argument;
  }
}

}  // namespace
}  // namespace purlin::tune
