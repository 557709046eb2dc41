// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/host/slow_op.h"

#include "analyze/advise/advice.h"
#include "analyze/replay/testing.h"
#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::analyze {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr int kTokens = 12;

// A step makes `layers` attentions and launches a kernel in each; the first one takes `first`.
const Profile& decoder(TimelineBuilder& builder, std::string_view op, std::int64_t first,
                       std::int64_t step, int slow_steps = kTokens) {
  builder.profile.source = "kineto";
  constexpr int kLayers = 10;
  for (int token = 0; token < kTokens; ++token) {
    const std::int64_t at = token * step;
    std::int64_t now = at + 10'000;
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(token), at, step);
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::int64_t took = layer == 0 && token < slow_steps ? first : 30'000;
      builder.op(op, now, took + 10'000);
      const std::uint32_t call = builder.launch(now + took, 5'000);
      builder.profile.timeline.calls[call].op =
          static_cast<std::uint32_t>(builder.profile.timeline.ops.size() - 1);
      builder.kernel("fprop", now + took + 8'000, 4'000, call);
      now += took + 12'000;
    }
  }
  builder.profile.kernels[0].duration.add(4'000, 1.0 * kLayers * kTokens);
  return builder.sorted();
}

TEST(SlowOp, ThatKeepsTheDeviceWaitingIsNamed) {
  TimelineBuilder builder;
  const Profile& profile = decoder(builder, "aten::_cudnn_attention_forward", 40 * kMs, 42 * kMs);
  const Advice advice = advise(profile, analyze_timeline(profile));
  ASSERT_FALSE(advice.interventions.empty());
  const Intervention& first = advice.interventions[0];
  EXPECT_EQ(first.id, "slow_op");
  EXPECT_GT(first.saved_share.high, 0.8);
  EXPECT_NE(first.how[0].find("enable_cudnn_sdp"), std::string::npos);
  bool named = false;
  for (const Evidence& evidence : first.evidence)
    named = named || evidence.value.find("aten::_cudnn_attention_forward") != std::string::npos;
  EXPECT_TRUE(named);
  // What is left for launches in general is small.
  for (const Intervention& other : advice.interventions)
    if (other.id == "cut_host_work") {
      EXPECT_LT(other.saved_share.high, 0.2);
    }
}

TEST(SlowOp, OfAnotherNameHasTheGeneralCure) {
  TimelineBuilder builder;
  const Profile& profile = decoder(builder, "mylib::solve", 20 * kMs, 22 * kMs);
  const Advice advice = advise(profile, analyze_timeline(profile));
  ASSERT_FALSE(advice.interventions.empty());
  EXPECT_EQ(advice.interventions[0].id, "slow_op");
  for (const std::string& how : advice.interventions[0].how)
    EXPECT_EQ(how.find("cudnn"), std::string::npos) << how;
}

// Neither operators of the usual length, nor one that is slow once or twice.
TEST(SlowOp, IsSilentOtherwise) {
  TimelineBuilder usual;
  EXPECT_FALSE(find_slow_op(decoder(usual, "aten::mm", 900'000, 2 * kMs).timeline, 3));
  TimelineBuilder once;
  EXPECT_FALSE(find_slow_op(decoder(once, "aten::mm", 40 * kMs, 42 * kMs, 2).timeline, 3));
}

// The time of inner operators and of waits is theirs.
TEST(SlowOp, OwnTimeLeavesOutCallsAndInnerOps) {
  TimelineBuilder builder;
  builder.op("outer", 0, 50 * kMs);
  builder.op("inner", kMs, 48 * kMs);
  builder.profile.timeline.ops[1].parent = 0;
  builder.profile.timeline
      .calls[builder.call(CallKind::kSync, "cudaStreamSynchronize", 2 * kMs, 46 * kMs)]
      .op = 1;
  const auto slow = find_slow_op(builder.profile.timeline, 1);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->name, "outer");
  EXPECT_EQ(slow->own_ns, 2.0 * kMs);
  EXPECT_EQ(slow->when.size(), 1u);
}

}  // namespace
}  // namespace purlin::analyze
