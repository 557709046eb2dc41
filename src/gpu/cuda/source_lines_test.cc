// SPDX-License-Identifier: Apache-2.0
// CUPTI reads line tables without a GPU, so this runs on each machine with CUPTI and NVRTC.
#include "gpu/source_lines.h"

#include "gpu/cuda/nvrtc.h"
#include "gpu/cuda/toolkit_for_test.h"

#include <gtest/gtest.h>

#include <set>

namespace purlin::gpu {
namespace {

constexpr const char* kLinesSource =
    R"(extern "C" __global__ void chase(const int* next, int* out, int n) {
  int at = threadIdx.x;
  for (int i = 0; i < n; ++i)
    at = next[at];
  out[threadIdx.x] = at;
}
)";

std::string module_with(const std::vector<std::string>& options) {
  const auto nvrtc = Nvrtc::load();
  if (!nvrtc.is_ok()) return "";
  CompileRequest request;
  request.name = "chase.cu";
  request.source = kLinesSource;
  request.entry = "chase";
  request.options = options;
  const Result<Binary> binary = (*nvrtc)->compile(request, "sm_90");
  EXPECT_TRUE(binary.is_ok()) << binary.status().message();
  return binary.is_ok() ? binary->image : "";
}

TEST(SourceLines, InstructionsHaveTheLinesTheyWereCompiledFrom) {
  const Result<SourceLines> lines = SourceLines::open();
  const std::string module = module_with({"-lineinfo"});
  PURLIN_NEED_TOOLKIT(lines.is_ok() && !module.empty(), "CUPTI or NVRTC");
  std::set<std::uint32_t> seen;
  for (std::uint64_t offset = 0; offset < 0x200; offset += 16) {
    const SourceLine line = lines->find(module, "chase", offset);
    seen.insert(line.line);
    if (line.line > 0) {
      EXPECT_NE(line.file.find("chase.cu"), std::string::npos) << line.file;
    }
  }
  EXPECT_TRUE(seen.count(4) == 1) << "the load";
  EXPECT_EQ(lines->find(module, "no_such_function", 0).line, 0u);
  EXPECT_EQ(lines->find("no module", "chase", 0).line, 0u);
}

TEST(SourceLines, CodeWithoutLinesHasNone) {
  const Result<SourceLines> lines = SourceLines::open();
  const std::string module = module_with({});
  PURLIN_NEED_TOOLKIT(lines.is_ok() && !module.empty(), "CUPTI or NVRTC");
  EXPECT_EQ(lines->find(module, "chase", 16).line, 0u);
}

}  // namespace
}  // namespace purlin::gpu
