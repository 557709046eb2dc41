// SPDX-License-Identifier: Apache-2.0
// nvcc compiles without a GPU, so the first half runs on each machine with nvcc. The second half
// runs against a script in place of the compiler.
#include "gpu/cuda/nvcc.h"

#include "base/files.h"
#include "gpu/cuda/toolkit_for_test.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sys/stat.h>

namespace purlin::gpu {
namespace {

constexpr const char* kNvccSource = R"(
#include <vector>  // NVRTC has no such thing
#include "neighbour.h"
extern "C" __global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= FACTOR;
}
namespace deep {
template <class T, int N, bool TWICE> __global__ void add(T* x) {
  x[threadIdx.x] += T(N) * (TWICE ? 2 : 1);
}
__global__ void plain(float* x) { x[0] = kNeighbour; }
// Its mangled name abbreviates what it repeats, and otherwise where it is part of another.
template <class T, int N> __global__ void repeated(const T* x, T* out, const T* y, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x] * T(N);
}
}
template __global__ void deep::add<float, 7, true>(float*);
)";

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class NvccTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("purlin-nvcc-test").value();
    ASSERT_TRUE(write_atomic(join_path(folder_, "neighbour.h"), "constexpr float kNeighbour = 3;\n")
                    .is_ok());
    here_ = nvcc_.version().is_ok();
    if (here_) return;
    EXPECT_TRUE(contains(nvcc_.version().status().message(), "PURLIN_NVCC"));
  }
  void TearDown() override { static_cast<void>(remove_tree(folder_)); }
  CompileRequest request(const std::string& entry) const {
    CompileRequest request;
    request.name = "kernels.cu";
    request.source = kNvccSource;
    request.entry = entry;
    request.include_directories = {folder_};
    request.config.set("FACTOR", 2.0);
    request.config.set("COUNT", std::int64_t{3});
    request.config.set("PAIR", std::string("double, COUNT"));  // a comma, which -D would not take
    request.compiler = "nvcc";
    return request;
  }
  // A compiler that is this script.
  std::string script(const std::string& body) const {
    const std::string path = join_path(folder_, "nvcc");
    EXPECT_TRUE(write_atomic(path,
                             "#!/bin/sh\nif [ \"$1\" = --version ]; then\n"
                             "echo 'Cuda compilation tools, release 12.9, V12.9.41'; exit; fi\n" +
                                 body)
                    .is_ok());
    ::chmod(path.c_str(), 0755);
    return path;
  }

  std::string folder_;
  Nvcc nvcc_;
  bool here_ = false;
};

TEST_F(NvccTest, CompilesHostHeadersAndFindsTheEntryOfEachKind) {
  PURLIN_NEED_TOOLKIT(here_, "nvcc");
  EXPECT_EQ(nvcc_.version()->rfind("nvcc 1", 0), 0u) << *nvcc_.version();
  const auto entry_of = [&](const std::string& entry) {
    const Result<Binary> binary = nvcc_.compile(request(entry), "sm_90");
    EXPECT_TRUE(binary.is_ok()) << binary.status().message();
    if (!binary.is_ok()) return std::string();
    EXPECT_EQ(binary->image.substr(1, 3), "ELF");
    EXPECT_GT(binary->compile_s, 0);
    return binary->entry;
  };
  EXPECT_EQ(entry_of("scale"), "scale");
  EXPECT_EQ(entry_of("deep::plain"), "_ZN4deep5plainEPf");
  // Its arguments are macros of the config, and another instance is in the binary as well.
  EXPECT_EQ(entry_of("deep::add<PAIR, false>"), "_ZN4deep3addIdLi3ELb0EEEvPT_");
  EXPECT_EQ(entry_of("deep::add<float, 7, true>"), "_ZN4deep3addIfLi7ELb1EEEvPT_");
  EXPECT_EQ(entry_of("deep::repeated<float, COUNT>"), "_ZN4deep8repeatedIfLi3EEEvPKT_PS1_S3_i");
}

TEST_F(NvccTest, ErrorsBeginWithTheCompilersFirst) {
  PURLIN_NEED_TOOLKIT(here_, "nvcc");
  CompileRequest broken = request("scale");
  broken.source = "extern \"C\" __global__ void scale(float* x) {\n  x[0] = no_such_thing;\n}";
  Status status = nvcc_.compile(broken, "sm_90").status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_TRUE(contains(status.message(), "kernels.cu(2): error")) << status.message();
  EXPECT_TRUE(contains(status.message(), "no_such_thing"));
  status = nvcc_.compile(request("scalee"), "sm_90").status();
  EXPECT_TRUE(contains(status.message(), "scalee")) << status.message();
  EXPECT_EQ(nvcc_.compile(request("scale"), "sm_1").status().code(), Code::kInvalid);
}

TEST_F(NvccTest, AFeatureOfTheArchitectureTakesItsName) {
  PURLIN_NEED_TOOLKIT(here_, "nvcc");
  CompileRequest wgmma = request("scale");
  wgmma.source = R"(extern "C" __global__ void scale(float* x, int) {
    asm volatile("wgmma.fence.sync.aligned;"); })";
  EXPECT_FALSE(nvcc_.compile(wgmma, "sm_90").is_ok());
  EXPECT_TRUE(nvcc_.compile(wgmma, "sm_90a").is_ok());
  wgmma.options = {"-arch=sm_90a"};  // the options win
  EXPECT_TRUE(nvcc_.compile(wgmma, "sm_90").is_ok());
}

TEST_F(NvccTest, ACompilerThatHangsIsEnded) {
  Nvcc slow(script("sleep 600\n"));
  EXPECT_EQ(*slow.version(), "nvcc 12.9.41");
  CompileRequest limited = request("scale");
  limited.timeout_s = 0.2;
  const Status status = slow.compile(limited, "sm_90").status();
  EXPECT_EQ(status.code(), Code::kTimeout) << status.message();
  EXPECT_TRUE(contains(status.message(), "did not end within 0.2 s"));
}

TEST_F(NvccTest, WhatItIsGivenIsNotForAShell) {
  // Writes its arguments where the output should be.
  Nvcc odd(script("for a in \"$@\"; do echo \"[$a]\"; done > \"$3\"\n"));
  CompileRequest request = this->request("scale");
  request.options = {"-DX=$(touch pwned) ; `id`", "-O3"};
  const Status status = odd.compile(request, "sm_90a").status();
  EXPECT_TRUE(contains(status.message(), "no kernel 'scale'")) << status.message();
  Nvcc failing(script("for a in \"$@\"; do echo \"[$a]\" >&2; done; exit 3\n"));
  const std::string said = failing.compile(request, "sm_90a").status().message();
  EXPECT_TRUE(contains(said, "[-DX=$(touch pwned) ; `id`]")) << said;
  EXPECT_TRUE(contains(said, "[-arch=sm_90a]"));
  EXPECT_TRUE(contains(said, "exit status 3"));
  EXPECT_TRUE(contains(said, "[-I" + folder_ + "]"));
}

TEST_F(NvccTest, AMissingOrForeignCompilerSaysWhatToDo) {
  Nvcc none("/nowhere/nvcc");
  const Status status = none.compile(request("scale"), "sm_90").status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_TRUE(contains(status.message(), "PURLIN_NVCC")) << status.message();
  EXPECT_EQ(Nvcc("/bin/true").version().status().code(), Code::kUnavailable);
}

TEST(NvccArch, TheOneOfThisDeviceIsChosen) {
  EXPECT_EQ(*choose_arch({}, "sm_90"), "sm_90");
  EXPECT_EQ(*choose_arch({"sm_80", "sm_90a", "sm_100a"}, "sm_90"), "sm_90a");
  EXPECT_EQ(*choose_arch({"sm_80", "sm_90a", "sm_100a"}, "sm_100"), "sm_100a");
  const Status none = choose_arch({"sm_90a"}, "sm_80").status();
  EXPECT_EQ(none.message(), "the source is for sm_90a, this device is sm_80; add it to 'arch'");
}

TEST(NvccCubin, DamagedOnesHaveNoEntry) {
  EXPECT_FALSE(marked_entry("", "scale"));
  EXPECT_FALSE(marked_entry(std::string(64, 'x'), "scale"));
  std::string header(64, '\xff');
  header.replace(0, 4,
                 "\x7f"
                 "ELF");
  EXPECT_FALSE(marked_entry(header, "scale"));
}

}  // namespace
}  // namespace purlin::gpu
