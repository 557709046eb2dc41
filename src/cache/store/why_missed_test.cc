// SPDX-License-Identifier: Apache-2.0
#include "cache/store/why_missed.h"

#include "base/text.h"
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

// What is not there is called "none": empty quotes name nothing.
TEST(WhyMissed, NamesWhatNeitherHas) {
  TemporaryDirectory folder;
  std::vector<Store> stores;
  stores.push_back(*Store::open(folder.path()));
  Entry plain = sample_entry(1024);
  plain.key.dtype.clear();
  plain.key.bucket.clear();
  plain.key.driver.clear();
  plain.problem = ProblemShape();
  plain.bucket_rules.clear();
  ASSERT_TRUE(stores[0].put(plain).is_ok());
  CacheKey wanted = plain.key;
  const Lookup found = stores[0].get(wanted, plain.problem);
  EXPECT_EQ(found.outcome, Outcome::kExact);
  const std::string lines = join(found.explain, "\n");
  EXPECT_EQ(lines.find("''"), std::string::npos) << lines;
  for (const char* line : {"dtype: none, as in the entry", "bucket: none", "driver: none",
                           "problem: none, as measured"})
    EXPECT_NE(lines.find(line), std::string::npos) << line << " in\n" << lines;
  wanted.driver = "590";
  const std::string why = why_missed(stores, wanted, plain.problem).text;
  EXPECT_NE(why.find("driver: '590' wanted, none stored"), std::string::npos) << why;
  ProblemShape other;
  other.set("M", 9);
  EXPECT_NE(why_missed(stores, plain.key, other).text.find("have no dimensions, the problem has M"),
            std::string::npos);
  ASSERT_TRUE(stores[0].put(sample_entry(1024)).is_ok());
  Entry with = sample_entry(1024);
  ASSERT_TRUE(
      stores[0]
          .set_status(new_status(stores[0].put(plain)->record, EntryState::kDemoted, "slow"))
          .is_ok());
  EXPECT_NE(why_missed(stores, with.key, ProblemShape()).text.find("M,N,K, not none"),
            std::string::npos);
}

TEST(WhyMissed, AnAuthorWithoutANameIsItsHost) {
  EXPECT_EQ(author_text("mona", "gpu07"), "mona@gpu07");
  EXPECT_EQ(author_text("", "gpu07"), "gpu07");
  EXPECT_EQ(author_text("mona", ""), "mona");
  EXPECT_EQ(author_text("", ""), "");
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
