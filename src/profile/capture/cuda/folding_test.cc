// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/folding.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace purlin::profile::capture::cuda {
namespace {

CUptiResult CUPTIAPI next_kernel(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* next = *record == nullptr ? buffer
                                          : reinterpret_cast<std::uint8_t*>(*record) +
                                                sizeof(CUpti_ActivityKernel10);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI nothing_dropped(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}

class FoldingTest : public testing::Test, private Source {
 protected:
  FoldingTest() {
    cupti_.next_record = next_kernel;
    cupti_.dropped_records = nothing_dropped;
  }
  void collect(bool) override {}

  // Launches of one kernel, as CUPTI hands them over.
  void deliver(const char* name, int launches, std::int64_t start_ns) {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0, most = 0, used = 0;
    folding_.lend(&bytes, &size, &most);
    ASSERT_NE(bytes, nullptr);
    for (int i = 0; i < launches; ++i) {
      CUpti_ActivityKernel10 record = {};
      record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      record.name = name;
      record.start = static_cast<std::uint64_t>(start_ns + i * 1000);
      record.end = record.start + 500;
      std::memcpy(bytes + used, &record, sizeof record);
      used += sizeof record;
    }
    folding_.take(nullptr, 0, bytes, used);
  }
  std::string sealed() { return session_.recorder().drain(0, wall_ns(), true); }
  static bool holds(const std::string& bytes, const char* text) {
    return bytes.find(text) != std::string::npos;
  }

  Cupti cupti_;
  Session session_{SessionOptions{}, *this};
  Attribution attribution_{cupti_, session_.recorder(), AttributionOptions{}};
  Folding folding_{cupti_, session_, attribution_};
};

TEST_F(FoldingTest, AHeldBufferHasItsNamesWhenTheirModulesAreGone) {
  folding_.begin_period(2, false, false);
  char first[] = "kernel_of_a_module", second[] = "kernel_of_another";
  deliver(first, 3, wall_ns() + 1000);
  deliver(second, 2, wall_ns() + 1000);
  // The place of a name that was freed is another's now.
  std::memset(first, '?', sizeof first);
  std::memset(second, '!', sizeof second);
  folding_.settle(2, 1e9);
  const std::string bytes = sealed();
  EXPECT_TRUE(holds(bytes, "kernel_of_a_module"));
  EXPECT_TRUE(holds(bytes, "kernel_of_another"));
  EXPECT_FALSE(holds(bytes, "??"));
  EXPECT_TRUE(holds(bytes, "\"launches_seen\":5"));
  EXPECT_TRUE(holds(bytes, "\"launches_sampled_out\":5"));
}

TEST_F(FoldingTest, WhatIsKnownIsFoldedBeforeCuptiIsAnswered) {
  folding_.begin_period(1, true, false);
  char name[] = "kernel_of_a_module";
  deliver(name, 1, wall_ns() + 1000);
  std::memset(name, '?', sizeof name);
  const std::string bytes = sealed();
  EXPECT_TRUE(holds(bytes, "kernel_of_a_module"));
  EXPECT_FALSE(holds(bytes, "??"));
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
