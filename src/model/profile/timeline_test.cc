// SPDX-License-Identifier: Apache-2.0
#include "model/profile/timeline.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace purlin {
namespace {

// Each event carries the number of what it points at, so that links can be checked after sorting.
TEST(SortTimeline, OrdersEventsStablyAndMendsTheirLinks) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random rng(seed);
    Timeline timeline;
    const auto count = [&] { return static_cast<std::uint32_t>(rng.below(40)); };
    const std::uint32_t ops = count(), calls = count(), activities = count();
    const auto link = [&](std::uint32_t size) {
      return size == 0 || rng.below(4) == 0 ? kNone : static_cast<std::uint32_t>(rng.below(size));
    };
    const auto time = [&] { return static_cast<std::int64_t>(rng.below(20)); };
    for (std::uint32_t i = 0; i < ops; ++i) {
      Op op;
      op.start_ns = time();
      op.duration_ns = time();
      op.name = i;
      op.shape = op.parent = link(ops);  // shape says who the parent is
      timeline.ops.push_back(op);
    }
    for (std::uint32_t i = 0; i < calls; ++i) {
      Call call;
      call.start_ns = time();
      call.duration_ns = time();
      call.name = i;
      call.thread = call.op = link(ops);
      timeline.calls.push_back(call);
    }
    for (std::uint32_t i = 0; i < activities; ++i) {
      Activity activity;
      activity.start_ns = time();
      activity.device = static_cast<std::uint16_t>(rng.below(2));
      activity.row = i;
      activity.graph = activity.call = link(calls);
      timeline.activities.push_back(activity);
    }
    const Timeline before = timeline;
    sort_timeline(timeline);

    const auto sorted = [](const auto& events, auto key) {
      return std::is_sorted(events.begin(), events.end(),
                            [&](const auto& a, const auto& b) { return key(a) < key(b); });
    };
    EXPECT_TRUE(sorted(timeline.ops, [](const Op& op) {
      return std::make_tuple(op.start_ns, -op.duration_ns, op.name);
    }));
    EXPECT_TRUE(sorted(timeline.calls, [](const Call& call) {
      return std::make_tuple(call.start_ns, -call.duration_ns, call.name);
    }));
    EXPECT_TRUE(sorted(timeline.activities, [](const Activity& activity) {
      return std::make_tuple(activity.device, activity.start_ns, activity.row);
    }));
    for (const Op& op : timeline.ops) {
      EXPECT_EQ(op.start_ns, before.ops[op.name].start_ns);
      EXPECT_EQ(op.parent == kNone ? kNone : timeline.ops[op.parent].name, op.shape);
    }
    for (const Call& call : timeline.calls) {
      EXPECT_EQ(call.start_ns, before.calls[call.name].start_ns);
      EXPECT_EQ(call.op == kNone ? kNone : timeline.ops[call.op].name, call.thread);
    }
    for (const Activity& activity : timeline.activities) {
      EXPECT_EQ(activity.start_ns, before.activities[activity.row].start_ns);
      EXPECT_EQ(activity.call == kNone ? kNone : timeline.calls[activity.call].name,
                activity.graph);
    }
  }
}

TEST(DropBefore, KeepsTheCallsOfWorkThatStays) {
  Timeline timeline;
  const auto call = [&](std::int64_t start) {
    Call one;
    one.start_ns = start;
    timeline.calls.push_back(one);
  };
  const auto work = [&](std::int64_t start, std::uint32_t of, std::uint32_t process) {
    Activity one;
    one.start_ns = start;
    one.call = of;
    one.process = process;
    timeline.activities.push_back(one);
  };
  for (const std::int64_t start : {1, 8, 12}) call(start);
  work(2, 0, 0);      // early, with its call
  work(11, 1, 0);     // stays; its call began before
  work(13, 2, 0);     // stays
  work(3, kNone, 1);  // of a process without a bound
  drop_before(timeline, {10});
  ASSERT_EQ(timeline.activities.size(), 3u);
  ASSERT_EQ(timeline.calls.size(), 2u);
  EXPECT_EQ(timeline.calls[timeline.activities[0].call].start_ns, 8);
  EXPECT_EQ(timeline.calls[timeline.activities[1].call].start_ns, 12);
  EXPECT_EQ(timeline.activities[2].call, kNone);
}

}  // namespace
}  // namespace purlin
