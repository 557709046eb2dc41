// SPDX-License-Identifier: Apache-2.0
#include "backlog/order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::backlog {
namespace {

Task profiled(const std::string& kernel, std::uint64_t launches, double launch_ns) {
  Task task;
  task.key.kind = "tune";
  task.key.kernel = kernel;
  task.key.shape = "N=64";
  task.key.device = "NVIDIA H200";
  task.launches = launches;
  task.launch_ns = launch_ns;
  return task;
}

std::vector<std::string> kernels_in_order(const std::vector<Task>& tasks) {
  std::vector<std::string> kernels;
  for (const RankedTask& one : ranked(tasks)) kernels.push_back(one.task.key.kernel);
  return kernels;
}

using Kernels = std::vector<std::string>;

TEST(BacklogOrder, AKernelOf6SecondsComesBeforeOneOf4800Microseconds) {
  const Task small = profiled("small", 100, 48e3);  // 4.8 ms
  const Task large = profiled("large", 1000, 6e6);  // 6 s
  EXPECT_EQ(kernels_in_order({small, large}), (Kernels{"large", "small"}));
  Task slower = small;  // a slowdown of 2 saves at most 2.4 ms
  slower.key.kind = "retune";
  slower.ratio = 2;
  EXPECT_EQ(kernels_in_order({slower, large}), (Kernels{"large", "small"}));
  Task often = small;  // neither number of findings nor number of launches decides
  often.seen = 100;
  often.launches = 4800;
  often.launch_ns = 1e3;
  EXPECT_EQ(kernels_in_order({often, large}), (Kernels{"large", "small"}));
}

TEST(BacklogOrder, IsByGpuTimeTimesHeadroom) {
  Task at_its_roof = profiled("at_its_roof", 1000, 6e6);  // 6 s × 0.01 = 60 ms
  at_its_roof.headroom = 0.01;
  Task far = profiled("far", 1000, 1e6);  // 1 s × 0.9 = 900 ms
  far.headroom = 0.9;
  Task unknown = profiled("unknown", 1000, 1e6);  // 1 s × 0.2 = 200 ms
  EXPECT_EQ(kernels_in_order({at_its_roof, unknown, far}),
            (Kernels{"far", "unknown", "at_its_roof"}));
  const RankedTask first = ranked({far}).front();
  EXPECT_DOUBLE_EQ(first.saving_ns(), 9e8);
  EXPECT_FALSE(first.time_assumed || first.headroom_assumed);
  const RankedTask assumed = ranked({unknown}).front();
  EXPECT_DOUBLE_EQ(assumed.headroom, Assumption::kHeadroom);
  EXPECT_TRUE(assumed.headroom_assumed);
  EXPECT_FALSE(assumed.time_assumed);
}

TEST(BacklogOrder, ASlowdownHasTheHeadroomThatReturnsToTheOldTime) {
  Task task = profiled("k", 1, 1e6);
  task.ratio = 1.25;
  EXPECT_DOUBLE_EQ(*known_headroom(task), 0.2);
  task.headroom = 0.5;
  EXPECT_DOUBLE_EQ(*known_headroom(task), 0.5);
  task = profiled("k", 1, 1e6);
  task.ratio = 0.9;  // faster
  EXPECT_FALSE(known_headroom(task).has_value());
}

TEST(BacklogOrder, AnotherTaskOfTheKernelKnowsItsGpuTime) {
  const Task known = profiled("k", 1000, 6e6);
  Task finding = profiled("k", 0, 0);
  finding.key.kind = "validate";
  finding.key.driver = "590.1";
  for (const RankedTask& one : ranked({finding, known, profiled("other", 10, 1e6)})) {
    if (one.task.key.kernel != "k") continue;
    EXPECT_DOUBLE_EQ(one.gpu_time_ns, 6e9) << one.task.key.kind;
    EXPECT_FALSE(one.time_assumed);
  }
}

TEST(BacklogOrder, WithoutAnyMeasuredTimeTheCountOfLaunchesDecides) {
  EXPECT_EQ(kernels_in_order({profiled("a", 5, 0), profiled("b", 7, 0), profiled("c", 0, 0)}),
            (Kernels{"b", "a", "c"}));
  const RankedTask uncounted = ranked({profiled("c", 0, 0)}).front();
  EXPECT_DOUBLE_EQ(uncounted.gpu_time_ns, Assumption::kLaunchNs);
  EXPECT_TRUE(uncounted.time_assumed);
}

TEST(BacklogOrder, TiesHaveOneOrderInEveryOrderOfArrival) {
  std::vector<Task> tasks = {profiled("b", 1, 1e3), profiled("a", 1, 1e3), profiled("c", 1, 1e3)};
  tasks[2].seen = 2;
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.key < b.key; });
  do {
    EXPECT_EQ(kernels_in_order(tasks), (Kernels{"c", "a", "b"}));
  } while (std::next_permutation(tasks.begin(), tasks.end(),
                                 [](const Task& a, const Task& b) { return a.key < b.key; }));
}

TEST(BacklogOrder, AListedTaskHasWhatTheOrderFollowsFrom) {
  Task task = profiled("k", 1000, 6e6);
  task.first_queued_at = "2026-11-20T00:00:00Z";
  const Json json = to_json(ranked({task}).front());
  EXPECT_EQ(json["schema"].as_string(), "purlin.backlog/1");
  EXPECT_EQ(json["kernel"].as_string(), "k");
  EXPECT_DOUBLE_EQ(json["gpu_time_ns"].as_double(), 6e9);
  EXPECT_DOUBLE_EQ(json["headroom"].as_double(), 0.2);
  EXPECT_TRUE(json["headroom_assumed"].as_bool());
  EXPECT_FALSE(json["gpu_time_assumed"].as_bool());
  EXPECT_DOUBLE_EQ(json["saving_ns"].as_double(), 1.2e9);
  EXPECT_EQ(json["first_queued_at"].as_string(), "2026-11-20T00:00:00Z");
}

}  // namespace
}  // namespace purlin::backlog
