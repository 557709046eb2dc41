// SPDX-License-Identifier: Apache-2.0
#include "cache/foreign/foreign.h"

#include "base/text.h"
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

// As Triton 3.6 writes it; the second config failed.
constexpr std::string_view kTriton = R"({"key": [2048, 1024, 512, "torch.float16", "torch.float16",
 "torch.float32", true], "configs_timings": [
 [{"kwargs": {"BM": 64, "BN": 64, "EVEN": true}, "num_warps": 4, "num_ctas": 1, "num_stages": 3,
   "maxnreg": null, "pre_hook": null, "ir_override": null}, [0.5, 0.49, 0.51]],
 [{"kwargs": {"BM": 256, "BN": 256, "EVEN": true}, "num_warps": 4, "num_ctas": 1, "num_stages": 5,
   "maxnreg": null, "pre_hook": null}, [Infinity, Infinity, Infinity]],
 [{"kwargs": {"BM": 128, "BN": 64, "EVEN": true}, "num_warps": 8, "num_ctas": 2, "num_stages": 3,
   "maxnreg": 128, "pre_hook": null}, [0.25, 0.24, 0.26]]]})";

constexpr const char* kMoeName =
    "dir/E=8,N=7168,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8,block_shape=[128,128].json";
constexpr std::string_view kMoe = R"({"triton_version": "3.5.0",
 "1": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "GROUP_SIZE_M": 1, "num_warps": 4, "num_stages": 4},
 "24": {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 64, "GROUP_SIZE_M": 1, "num_warps": 4, "num_stages": 4},
 "32": {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "GROUP_SIZE_M": 1, "num_warps": 4, "num_stages": 4},
 "many": {"BLOCK_SIZE_M": 64}})";

constexpr std::string_view kTunable =
    "Validator,PT_VERSION,2.10.0\nValidator,HIP_VERSION,702\n"
    "Validator,GCN_ARCH_NAME,gfx942:sramecc+:xnack-\n"
    "GemmTunableOp_BFloat16_TN,tn_512_256_4096_ld_4096_4096_512,Gemm_Hipblaslt_1219,0.0105563\n"
    "GemmTunableOp_float_NT,nt_25088_4096_64,Gemm_Rocblas_1216,1.262\r\n"
    "GemmStridedBatchedTunableOp_Half_NN,nn_64_32_16_B_8_ld_64_16_64,Default,0.5,sig\n"
    "ScaledGemmTunableOp_Float8_e4m3fnuz_Float8_e4m3fnuz_BFloat16_TN,"
    "tn_64_32_16_ld_64_16_64_rw_1_bias_None,Gemm_Hipblaslt_7,0.25\n"
    "GemmTunableOp_float_NN,nn_0_1_1,Default,1\n"
    "GemmTunableOp_float_NN,nn_1_1_1,Default,-1\n";

ForeignFacts stating(std::string_view arch, std::vector<std::string> dimensions = {}) {
  ForeignFacts facts;
  facts.key.arch = arch;
  facts.dimensions = std::move(dimensions);
  return facts;
}

TEST(Foreign, ReadsTritonsResultsAsTheDecoratorKeysThem) {
  const auto read = read_foreign(ForeignFormat::kTriton, "x/matmul.autotune.json", kTriton,
                                 stating("sm_90", {"M", "N", "K", "EVEN"}));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  ASSERT_EQ(read->entries.size(), 1u);
  const Entry& entry = read->entries[0];
  EXPECT_EQ(entry.key.op, "triton");
  EXPECT_EQ(entry.key.kernel, "matmul");
  EXPECT_EQ(entry.key.backend, "cuda");
  EXPECT_EQ(entry.key.dtype, "float16,float16,float32,EVEN=True");
  EXPECT_EQ(entry.problem.text(), "M=2048,N=1024,K=512");
  EXPECT_EQ(entry.config.text(),
            "BM=128 BN=64 EVEN=1 num_warps=8 num_stages=3 num_ctas=2 maxnreg=128");
  EXPECT_EQ(entry.time_ms, 0.25);
  EXPECT_EQ(entry.runner_up_ms, 0.5);
  EXPECT_EQ(entry.evaluations, 3);
  EXPECT_FALSE(entry.verified);
  EXPECT_EQ(entry.strategy, "import triton");
  const auto files = write_foreign(ForeignFormat::kTriton, read->entries);
  ASSERT_TRUE(files.is_ok()) << files.status().message();
  ASSERT_EQ(files->size(), 1u);
  EXPECT_TRUE(starts_with(files->front().first, "M=2048_N=1024_K=512-")) << files->front().first;
  EXPECT_TRUE(ends_with(files->front().first, "/matmul.autotune.json"));
  const Json written = *Json::parse(files->front().second);
  const Json& best = written["configs_timings"].items()[0].items()[0];
  EXPECT_EQ(best["kwargs"].dump(), R"({"BM":128,"BN":64,"EVEN":1})");
  EXPECT_EQ(best["num_ctas"].as_int(), 2);
  EXPECT_TRUE(best["pre_hook"].is_null());
  const auto again = read_foreign(ForeignFormat::kTriton, files->front().first,
                                  files->front().second, stating("sm_90", {"M", "N", "K", "EVEN"}));
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(again->entries[0].config, entry.config);
  EXPECT_EQ(again->entries[0].runner_up, entry.runner_up);
  EXPECT_EQ(again->entries[0].key, entry.key);
  EXPECT_EQ(again->entries[0].time_ms, entry.time_ms);
  EXPECT_EQ(write_foreign(ForeignFormat::kTriton, {}).status().code(), Code::kNotFound);
  const Status unnamed =
      read_foreign(ForeignFormat::kTriton, "matmul.autotune.json", kTriton, stating("sm_90", {"M"}))
          .status();
  EXPECT_NE(unnamed.message().find("4 values"), std::string::npos) << unnamed.message();
  EXPECT_FALSE(read_foreign(ForeignFormat::kTriton, "m.autotune.json", kTriton,
                            stating("", {"M", "N", "K", "E"}))
                   .is_ok());
}

TEST(Foreign, ReadsAndWritesVllmsConfigs) {
  const auto read = read_foreign(ForeignFormat::kVllmMoe, kMoeName, kMoe, {});
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  ASSERT_EQ(read->entries.size(), 3u);
  EXPECT_EQ(read->skipped.size(), 1u);
  const Entry& entry = read->entries[1];
  EXPECT_EQ(entry.key.arch, "sm_90");  // of the model in the name
  EXPECT_EQ(entry.key.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(entry.key.dtype, "fp8_w8a8,block_shape=[128,128]");
  EXPECT_EQ(entry.key.toolkit, "triton 3.5.0");
  EXPECT_EQ(entry.key.bucket, "E=8,N=7168,M=32");
  EXPECT_EQ(entry.time_ms, 0);
  const auto files = write_foreign(ForeignFormat::kVllmMoe, read->entries);
  ASSERT_TRUE(files.is_ok());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ("dir/" + files->front().first, kMoeName);
  const Json written = *Json::parse(files->front().second), original = *Json::parse(kMoe);
  for (const char* batch : {"1", "24", "32", "triton_version"})
    EXPECT_EQ(written[batch], original[batch]) << batch;
  for (const std::string name : {"E=8,N=64,device_name=NVIDIA_H200.json",
                                 "E=8,N=64,device_name=NVIDIA_H200,dtype=int8_w8a16.json",
                                 "E=8,N=64,device_name=NVIDIA_H200,per_channel_quant=True.json"}) {
    const auto again = read_foreign(ForeignFormat::kVllmMoe, name, kMoe, {});
    ASSERT_TRUE(again.is_ok());
    EXPECT_EQ(write_foreign(ForeignFormat::kVllmMoe, again->entries)->front().first, name);
  }
  for (const char* name : {"config.json", "E=8,N=x,device_name=Y.json", "E=8,N=4.json"})
    EXPECT_FALSE(read_foreign(ForeignFormat::kVllmMoe, name, kMoe, {}).is_ok()) << name;
}

TEST(Foreign, SecondKernelsAndFurtherSizesAreKeptApart) {
  for (const std::string name :
       {"E=256,N=512,device_name=NVIDIA_H200_down.json",
        "E=256,N=512,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128]_down.json"}) {
    const auto down = read_foreign(ForeignFormat::kVllmMoe, name, kMoe, {});
    ASSERT_TRUE(down.is_ok()) << down.status().message();
    EXPECT_EQ(down->entries[0].key.kernel, "sglang.fused_moe_down");
    EXPECT_EQ(down->entries[0].key.device, "NVIDIA H200");
    EXPECT_EQ(down->entries[0].key.dtype.find("down"), std::string::npos);
    EXPECT_EQ(write_foreign(ForeignFormat::kVllmMoe, down->entries)->front().first, name);
    EXPECT_EQ(guess_foreign_format(name, "{}"), ForeignFormat::kVllmMoe);
  }
  const std::string name = "H=2048,E=64,N=768,device_name=Device_4000.json";
  EXPECT_EQ(guess_foreign_format(name, "{}"), ForeignFormat::kVllmMoe);
  EXPECT_NE(read_foreign(ForeignFormat::kVllmMoe, name, kMoe, {})
                .status()
                .message()
                .find("'Device 4000' is not known; state it"),
            std::string::npos);
  const auto read = read_foreign(ForeignFormat::kVllmMoe, name, kMoe, stating("xcore1000"));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->entries[0].problem.text(), "H=2048,E=64,N=768,M=1");
  EXPECT_EQ(write_foreign(ForeignFormat::kVllmMoe, read->entries)->front().first, name);
  for (const char* wrong : {"E=8,E=8,N=4,device_name=Y.json", "M=1,E=8,N=4,device_name=Y.json",
                            "E=8,N=4,device_name=_down.json"})
    EXPECT_FALSE(read_foreign(ForeignFormat::kVllmMoe, wrong, kMoe, stating("sm_90")).is_ok())
        << wrong;
}

TEST(Foreign, ReadsAndWritesTunableOpsResults) {
  const auto read = read_foreign(ForeignFormat::kTunableOp, "r.csv", kTunable, {});
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  ASSERT_EQ(read->entries.size(), 4u);
  EXPECT_EQ(read->skipped.size(), 2u);
  const Entry& entry = read->entries[0];
  EXPECT_EQ(entry.key.kernel, "pytorch.GemmTunableOp_BFloat16_TN");
  EXPECT_EQ(entry.key.backend, "hip");
  EXPECT_EQ(entry.key.arch, "gfx942");
  EXPECT_EQ(entry.key.dtype, "bf16");
  EXPECT_EQ(entry.key.layout, "A=row,B=column,C=column");
  EXPECT_EQ(entry.problem.text(), "M=512,N=256,K=4096,LDA=4096,LDB=4096,LDC=512");
  EXPECT_EQ(entry.time_ms, 0.0105563);
  const auto files = write_foreign(ForeignFormat::kTunableOp, read->entries);
  ASSERT_TRUE(files.is_ok());
  ASSERT_EQ(files->size(), 1u);
  const std::string& text = files->front().second;
  for (const std::string& line : split(kTunable, '\n'))
    if (line.find("nn_0_") == std::string::npos && line.find("-1") == std::string::npos) {
      EXPECT_NE(text.find(trim(line)), std::string::npos) << line;
    }
  EXPECT_FALSE(read_foreign(ForeignFormat::kTunableOp, "r.csv", "a,b,c,d\n", {}).is_ok());
  const Status nowhere = read_foreign(ForeignFormat::kTunableOp, "r.csv",
                                      "GemmTunableOp_float_NN,nn_1_1_1,Default,1\n", {})
                             .status();
  EXPECT_NE(nowhere.message().find("--with arch="), std::string::npos) << nowhere.message();
}

TEST(Foreign, IsToldByNameAndContents) {
  EXPECT_EQ(guess_foreign_format("a/k.autotune.json", "{}"), ForeignFormat::kTriton);
  EXPECT_EQ(guess_foreign_format(kMoeName, "{}"), ForeignFormat::kVllmMoe);
  EXPECT_EQ(guess_foreign_format("x.csv", kTunable), ForeignFormat::kTunableOp);
  EXPECT_EQ(guess_foreign_format("x.json", "{\"schema\": \"purlin.cache/1\"}"), std::nullopt);
}

// Who states the driver gets what another tool measured only on request; a measurement of ours
// displaces it.
TEST(Foreign, IsServedByTheRulesOfEveryLookup) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const auto read = read_foreign(ForeignFormat::kVllmMoe, kMoeName, kMoe, {});
  for (const Entry& entry : read->entries) ASSERT_TRUE(store.put(entry).is_ok());
  CacheKey wanted = read->entries[1].key;
  const ProblemShape shape = *parse_shape("E=8,N=7168,M=20");
  EXPECT_EQ(store.get(wanted, shape).outcome, Outcome::kBucket);
  EXPECT_EQ(store.get(wanted, shape).entry->problem.text(), "E=8,N=7168,M=32");
  EXPECT_EQ(store.get(wanted, *parse_shape("E=8,N=7168,M=24")).outcome, Outcome::kExact);
  wanted.driver = "580.95";
  EXPECT_EQ(store.get(wanted, shape).outcome, Outcome::kMiss);
  EXPECT_EQ(store.get(wanted, shape, {.allow_transferred = true}).outcome, Outcome::kTransferred);
  wanted.arch = "sm_80";
  EXPECT_EQ(store.get(wanted, shape, {.allow_transferred = true}).outcome, Outcome::kMiss);
}

}  // namespace
}  // namespace purlin::cache
