// SPDX-License-Identifier: Apache-2.0
#include "cache/store/why_missed.h"

#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

struct Question {
  std::string CacheKey::*field;
  const char* value;
  const char* decides;
  const char* part;
  bool has_spec;
};

TEST(WhyMissed, NamesWhatDiffers) {
  TemporaryDirectory folder;
  std::vector<Store> stores;
  stores.push_back(*Store::open(folder.path()));
  ProblemShape problem = sample_entry().problem;
  EXPECT_EQ(why_missed(stores, sample_entry().key, problem).text, "the cache is empty");
  ASSERT_TRUE(stores[0].put(sample_entry(1024)).is_ok());
  const Question questions[] = {
      {&CacheKey::op, "conv", "op", "there is no entry of op 'conv'; there are gemm", false},
      {&CacheKey::kernel, "fast", "kernel", "the kernel gemm, and none of 'fast'", false},
      {&CacheKey::arch, "sm_80", "arch", "'sm_80' wanted, 'sm_90' stored", true},
      {&CacheKey::device, "A100", "device", "'A100' wanted", true},
      {&CacheKey::driver, "590", "driver", "'590' wanted", true},
      {&CacheKey::dtype, "f16", "dtype", "'f16' wanted", true}};
  for (const Question& question : questions) {
    CacheKey wanted = sample_entry().key;
    wanted.*question.field = question.value;
    const MissReason reason = why_missed(stores, wanted, problem);
    EXPECT_EQ(reason.field, question.decides);
    EXPECT_NE(reason.text.find(question.part), std::string::npos) << reason.text;
    EXPECT_EQ(reason.has_spec, question.has_spec) << reason.text;
  }
  CacheKey named = sample_entry().key;
  Entry fast = sample_entry(1024);
  fast.key.kernel = "fast_gemm";
  ASSERT_TRUE(stores[0].put(fast).is_ok());
  named.op = "fast_gemm";  // the kernel's name in place of the op's
  EXPECT_NE(why_missed(stores, named, problem).text.find("is a kernel of op 'gemm'"),
            std::string::npos);
  problem.set("M", 9);
  const MissReason bucket = why_missed(stores, sample_entry().key, problem);
  EXPECT_EQ(bucket.field, "bucket");
  EXPECT_NE(bucket.text.find("tuned are M=1024,N=1024,K=512"), std::string::npos) << bucket.text;
  ProblemShape other;
  other.set("M", 9);
  other.set("Q", 9);
  const MissReason dimensions = why_missed(stores, sample_entry().key, other);
  EXPECT_EQ(dimensions.field, "dimensions");
  EXPECT_NE(dimensions.text.find("M,N,K, not M,Q"), std::string::npos) << dimensions.text;
  EXPECT_FALSE(dimensions.has_spec);
}

TEST(WhyMissed, SaysThatAnEntryWasWithdrawn) {
  TemporaryDirectory folder;
  std::vector<Store> stores;
  stores.push_back(*Store::open(folder.path()));
  const Put put = *stores[0].put(sample_entry());
  ASSERT_TRUE(
      stores[0].set_status(new_status(put.record, EntryState::kQuarantined, "wrong")).is_ok());
  EXPECT_EQ(why_missed(stores, sample_entry().key, sample_entry().problem).field, "status");
}

}  // namespace
}  // namespace purlin::cache
