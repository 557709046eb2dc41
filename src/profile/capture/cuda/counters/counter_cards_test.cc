// SPDX-License-Identifier: Apache-2.0
// Every card of every chip against CUPTI itself: its host interface needs no GPU and no driver.
#include "model/device/counter_cards.h"

#include "gpu/cuda/counter_host.h"
#include "gpu/cuda/toolkit_for_test.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <set>
#include <string>

namespace purlin::profile::capture::cuda {
namespace {

class CounterCards : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "CUPTI binds its libraries in a way that the address sanitizer refuses "
                    "(RTLD_DEEPBIND); the plain build checks the cards";
#endif
    const char* named = std::getenv("PURLIN_CUPTI");
    for (const char* path : {named, "libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so",
                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "libcupti.so.12"})
      if (path != nullptr && (library_ = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL)) != nullptr) break;
    PURLIN_NEED_TOOLKIT(library_ != nullptr, "CUPTI (PURLIN_CUPTI names another place)");
    std::string reason;
    PURLIN_NEED_TOOLKIT(host_.bind(library_, reason), reason);
  }

  void* library_ = nullptr;
  gpu::CounterHost host_;
};

TEST_F(CounterCards, NeedOnePassOnEveryChip) {
  std::set<std::string> unknown;
  std::size_t chips = 0;
  for (const std::string& chip : host_.chips()) {
    const std::vector<CounterCard> cards = counter_cards(chip);
    if (cards.empty()) {
      unknown.insert(chip);
      continue;
    }
    ++chips;
    gpu::CounterConfig tuning;
    ASSERT_EQ(host_.prepare(chip, tuning_counters(chip), tuning), CUPTI_SUCCESS)
        << chip << ", the tuner's set: a counter does not exist";
    EXPECT_LE(tuning.passes, 6u) << chip << ", the tuner's set";
    EXPECT_TRUE(chip != "GH100" || tuning.passes == 3) << tuning.passes;
    for (std::size_t i = 0; i < cards.size(); ++i) {
      gpu::CounterConfig config;
      ASSERT_EQ(host_.prepare(chip, cards[i].metrics, config), CUPTI_SUCCESS)
          << chip << ", card " << i << " (" << cards[i].topic << "): a counter does not exist";
      EXPECT_EQ(config.passes, 1u) << chip << ", card " << i << " (" << cards[i].topic << ')';
    }
  }
  EXPECT_GE(chips, 20u);
  for (const std::string& chip : unknown)  // Volta, which CUDA 13 does not support
    EXPECT_TRUE(chip == "GV100" || chip == "GV11B") << chip << " has no cards";
}

TEST_F(CounterCards, TheFullSetExists) {
  for (const char* chip :
       {"TU102", "GA100", "AD102", "GH100", "GB100", "GB10B", "GB110", "GB202"}) {
    const std::vector<std::string_view> metrics = full_counters(chip);
    gpu::CounterConfig config;
    ASSERT_EQ(host_.prepare(chip, metrics, config), CUPTI_SUCCESS) << chip;
    EXPECT_GT(config.passes, 5u) << chip;
    EXPECT_LT(config.passes, 60u) << chip;
  }
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
