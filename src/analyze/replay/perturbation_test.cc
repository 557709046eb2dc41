// SPDX-License-Identifier: Apache-2.0
// Edges are tested by what they are for: a replay with faster and slower kernels or host must give
// what the program would have done. The machine of testing.h runs the same program both ways.
#include "analyze/replay/replayer.h"
#include "analyze/replay/testing.h"

#include <gtest/gtest.h>

#include <functional>

namespace purlin::analyze {
namespace {

using MachineProgram = std::function<void(Machine&)>;

struct Case {
  const char* name;
  MachineProgram run;
  int devices = 1;
  std::size_t queue = 1'000'000;
};

constexpr int kMachineSteps = 12;

Profile record(const Case& of, MachineRules rules) {
  rules.queue = of.queue;
  Machine machine(rules, of.devices);
  of.run(machine);
  return machine.finish();
}

// One step of the window that is replayed.
double step_in(const Profile& profile, const ReplayWindow& window) {
  const Graph graph = build_graph(profile, window);
  return span_of(graph, graph.recorded) / window.steps;
}

// Small kernels, launched one by one; the host sets the pace.
void launch_bound(Machine& m) {
  for (int step = 0; step < kMachineSteps; ++step) {
    m.step(step);
    for (int i = 0; i < 40; ++i) {
      m.work(6'000);
      m.launch(i % 2 == 0 ? "a" : "b", 3'000);
    }
  }
}
// The host waits for the device at the end of each step.
void device_bound(Machine& m) {
  for (int step = 0; step < kMachineSteps; ++step) {
    m.step(step);
    for (int i = 0; i < 20; ++i) {
      m.work(3'000);
      m.launch(i % 3 == 0 ? "a" : "b", 30'000);
    }
    m.wait();
  }
}
// A wait in the middle of each step, and host work after it.
void waits(Machine& m) {
  for (int step = 0; step < kMachineSteps; ++step) {
    m.step(step);
    for (int i = 0; i < 5; ++i) {
      m.work(5'000);
      m.launch("a", 40'000);
      m.wait();
      m.work(60'000);
      m.launch("b", 10'000);
    }
  }
}
// Forward on one thread, backward on another.
void threads(Machine& m) {
  for (int step = 0; step < kMachineSteps; ++step) {
    m.step(step);
    for (int i = 0; i < 10; ++i) {
      m.work(8'000);
      m.launch("a", 9'000);
    }
    m.hand_over(1, 2);
    for (int i = 0; i < 10; ++i) {
      m.work(8'000, 2);
      m.launch("b", 9'000, 7, 2);
    }
    m.hand_over(2, 1);
    m.work(10'000);
    m.launch("c", 5'000);
    m.wait();
  }
}
// Two streams that wait for one another.
void events(Machine& m, bool recorded) {
  for (int step = 0; step < kMachineSteps; ++step) {
    m.step(step);
    for (int i = 0; i < 6; ++i) {
      m.work(2'000);
      m.launch("a", 50'000, 7);
      m.event(7, 9, recorded);
      m.launch("b", 60'000, 9);
      m.launch("c", 20'000, 7);
      m.event(9, 7, recorded);
      m.launch("d", 10'000, 7);
    }
    m.wait();
  }
}
// Two ranks; the second computes longer, the first waits in the collective.
void ranks(Machine& m) {
  for (int step = 0; step < kMachineSteps; ++step) {
    m.step(step);
    for (int rank = 0; rank < 2; ++rank) {
      m.work(5'000, 1, rank);
      m.launch("a", rank == 0 ? 100'000 : 180'000, 20, 1, rank);
    }
    m.collective(50'000);
    for (int rank = 0; rank < 2; ++rank) m.wait(1, rank);
  }
}
// More launches than the queue holds.
void full_queue(Machine& m) {
  for (int step = 0; step < kMachineSteps; ++step) {
    m.step(step);
    for (int i = 0; i < 600; ++i) {
      m.work(1'000);
      m.launch(i % 2 == 0 ? "a" : "b", 40'000);
    }
  }
}

const Case kCases[] = {
    {"launch bound", launch_bound},
    {"device bound", device_bound},
    {"waits", waits},
    {"threads", threads},
    {"events", [](Machine& m) { events(m, true); }},
    {"inferred events", [](Machine& m) { events(m, false); }},
    {"ranks", ranks, 2},
    {"full queue", full_queue, 1, 1'000},
};

struct Perturbation {
  const char* name;
  double device, host;
};
constexpr Perturbation kPerturbations[] = {
    {"devices x 3", 3, 1}, {"devices x 0.25", 0.25, 1}, {"host x 0.3", 1, 0.3}, {"host x 2", 1, 2}};

Change perturb(const Profile& profile, const Perturbation& by) {
  Change change;
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < profile.kernels.size(); ++i) rows.push_back(i);
  change.edits.emplace_back(
      edit::Scale{Affected::of_rows(rows), {by.device, by.device, by.device}});
  change.edits.emplace_back(edit::ScaleHost{{by.host, by.host, by.host}, {}, kNone});
  return change;
}

TEST(ReplayPerturbation, FindsWhatTheProgramWouldHaveDone) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    const Profile recorded = record(one, {});
    const ReplayWindow window = choose_window(recorded, analyze_timeline(recorded));
    ASSERT_GE(window.steps, 10);
    const Graph graph = build_graph(recorded, window);
    const Applier applier(recorded, graph);
    for (const Perturbation& by : kPerturbations) {
      SCOPED_TRACE(by.name);
      MachineRules rules;
      rules.device = by.device;
      rules.host = by.host;
      const Profile truth = record(one, rules);
      const double expected = step_in(truth, choose_window(truth, analyze_timeline(truth)));
      const Applied after =
          applier.apply(perturb(recorded, by), Scenario::kMid, recorded_weights(graph));
      const double found = span_of(graph, replay(graph, after.weights)) / window.steps;
      EXPECT_NEAR(found / expected, 1, 0.05) << found << " " << expected;
    }
  }
}

// The second rank's clock is ahead: what a change saves stays.
TEST(ReplayPerturbation, ClocksOfRanksMayDiffer) {
  const Profile together = record(kCases[6], {});
  Profile apart = together;
  constexpr std::int64_t kAhead = 3'000'000;
  for (Activity& activity : apart.timeline.activities)
    if (activity.process == 1) activity.start_ns += kAhead;
  for (Call& call : apart.timeline.calls)
    if (call.process == 1) call.start_ns += kAhead;
  sort_timeline(apart.timeline);
  ReplayWindow window;
  window.time = {0, 1'000'000'000};
  const auto saved = [&](const Profile& profile) {
    const Graph graph = build_graph(profile, window);
    EXPECT_EQ(replay(graph, recorded_weights(graph)), graph.recorded);
    const Applier applier(profile, graph);
    const Applied after = applier.apply(perturb(profile, {"devices x 0.5", 0.5, 1}), Scenario::kMid,
                                        recorded_weights(graph));
    return span_of(graph, graph.recorded) - span_of(graph, replay(graph, after.weights));
  };
  EXPECT_NEAR(saved(apart) / saved(together), 1, 0.02);
}

TEST(ReplayPerturbation, ConstantDelaysGiveTheRecording) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    const Profile recorded = record(one, {});
    const Replayer replayer(recorded, analyze_timeline(recorded), 0);
    ASSERT_TRUE(replayer.usable());
    EXPECT_LT(replayer.quality().constant_error, 0.01);
    EXPECT_LT(replayer.quality().residuals, 0.02);
    EXPECT_EQ(replayer.quality().unlinked, 0);
    EXPECT_EQ(replayer.quality().unrecovered, 0);
    EXPECT_EQ(replayer.graph().broken, 0);
  }
}

}  // namespace
}  // namespace purlin::analyze
