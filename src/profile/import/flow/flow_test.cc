// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/flow.h"

#include "base/files.h"
#include "profile/import/flow/execution_trace_for_test.h"
#include "profile/import/import.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::profile {
namespace {

// Two layers of attention with gradients, on an H200 (PyTorch 2.11): no step reads its results.
std::string real_trace() {
  return std::string(PURLIN_SOURCE_DIR) + "/tests/data/imports/attention_training.et.json.gz";
}

TEST(DataFlow, OfARealTrace) {
  const Result<DataFlow> found = read_data_flow(real_trace());
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_EQ(found->steps, 3u);
  // Forward: two layers of bmm, mul, softmax, bmm with the copies that they need. Then backward.
  EXPECT_EQ(found->ops, 24u);
  EXPECT_TRUE(found->same_data);
  // The one that backward() begins with. Where nothing is read, nothing is unread.
  ASSERT_EQ(found->facts.size(), 1u);
  EXPECT_EQ(found->facts[0].kind, FlowKind::kUnchanged);
  EXPECT_EQ(found->facts[0].op, "aten::fill_");
  const Result<Profile> profile = open_profile(real_trace());
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_TRUE(profile->data_flow.recorded());
  EXPECT_TRUE(profile->kernels.empty());
}

TEST(DataFlow, OfAProgramWithOtherKernelsIsANote) {
  flow::TraceText trace;
  const flow::TensorText x = flow::tensor(1, {4}), y = flow::tensor(2, {4}),
                         z = flow::tensor(3, {4});
  for (int i = 0; i < 3; ++i) {
    trace.step();
    trace.empty(y);
    trace.binary("add", x, y, z);
  }
  const std::string path = ::testing::TempDir() + "/hidden.et.json";
  ASSERT_TRUE(write_atomic(path, trace.text()).is_ok());
  const Result<Profile> profile = open_profile(path);
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_FALSE(profile->data_flow.recorded());
  ASSERT_EQ(profile->coverage.notes.size(), 1u);
  EXPECT_EQ(profile->coverage.notes[0].cause, "data_flow_unknown");
}

// A step of 100 ns with one launch at 50, by an op of that name.
Profile with_launch(const std::string& op, bool graph = false, std::int64_t at = 50) {
  Profile profile;
  profile.data_flow.steps = 3;
  profile.processes.resize(1);
  profile.kernels.resize(1);
  Timeline& timeline = profile.timeline;
  timeline.names = {"", op};
  Range step;
  step.duration_ns = 100;
  step.kind = RangeKind::kStep;
  timeline.ranges.push_back(step);
  if (!op.empty()) timeline.ops.push_back({at - 1, 10, 1, 0, 0, kNone, 0, 0});
  Call call;
  call.start_ns = at;
  call.op = op.empty() ? kNone : 0;
  if (!graph) timeline.calls.push_back(call);
  Activity activity;
  activity.start_ns = at;
  activity.call = graph ? kNone : 0;
  timeline.activities.push_back(activity);
  return profile;
}

TEST(DataFlow, GoesWhereTheTimelineHasKernelsThatNoOpLaunched) {
  const auto stays = [](Profile profile) {
    judge_by_timeline(profile);
    EXPECT_EQ(profile.data_flow.recorded(), profile.coverage.notes.empty());
    return profile.data_flow.recorded();
  };
  for (const char* op : {"aten::mm", "mine::op", "nccl:all_reduce"})
    EXPECT_TRUE(stays(with_launch(op))) << op;
  EXPECT_FALSE(stays(with_launch("")));
  EXPECT_FALSE(stays(with_launch("MyFunction")));
  EXPECT_FALSE(stays(with_launch("triton_poi_fused_0")));
  EXPECT_FALSE(stays(with_launch("aten::mm", true)));
  EXPECT_TRUE(stays(with_launch("", false, 200)));  // after the step
  Profile late = with_launch("aten::mm");  // runs in the step, launched before the recording
  Activity before = late.timeline.activities[0];
  before.start_ns = 10;
  before.call = kNone;
  late.timeline.activities.insert(late.timeline.activities.begin(), before);
  EXPECT_TRUE(stays(late));
  // Where no range marks the steps, any time may be of one.
  Profile unmarked = with_launch("", false, 200);
  unmarked.data_flow.sequence_ops = 5;
  EXPECT_FALSE(stays(unmarked));
  Profile another = with_launch("");  // of a process without steps
  another.processes.resize(2);
  another.timeline.activities[0].process = 1;
  EXPECT_TRUE(stays(another));
  Profile none;
  judge_by_timeline(none);
  EXPECT_TRUE(none.coverage.notes.empty());
}

}  // namespace
}  // namespace purlin::profile
