// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace purlin::analyze {
namespace {

// A launch of which no rule of own kernels guesses anything: it moves much for its time.
KernelRow own_kernel(const char* name = "turn_frames") {
  KernelRow out = advised_row(name, "", "", "");
  out.launch.grid = {131'072, 1, 1};
  out.launch.block = {256, 1, 1};
  return out;
}
Advice program_of(const KernelRow& row, double ns = 700'000) {
  return Program().steps(kSteps, [&](Program& program) { program.kernel(row, ns); }).advice();
}
bool speaks(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}
std::string as_text(const Advice& advice) {
  return render_advice(advice, Terminal(false, false, false, 100));
}

TEST(UnknownRoof, AnOwnKernelThatTakesTheTimeIsNeverNothing) {
  const Advice advice = program_of(own_kernel());
  EXPECT_TRUE(advice.interventions.empty());
  ASSERT_EQ(advice.unknown_roofs.size(), 1u);
  const UnknownRoof& one = advice.unknown_roofs[0];
  EXPECT_EQ(one.kernel, "turn_frames");
  EXPECT_NEAR(one.share, 1, 0.02);
  EXPECT_NEAR(one.ns, 700'000, 1);
  EXPECT_TRUE(speaks(one.collect, "purlin profile --counters"));
  EXPECT_TRUE(speaks(one.collect, "purlin profile --stalls"));
  EXPECT_TRUE(speaks(one.collect, "ncu --set full -k turn_frames "));
  EXPECT_FALSE(speaks(one.collect, "rocprofv3"));
  EXPECT_TRUE(speaks(one.look_at, "coalescing"));
  EXPECT_TRUE(speaks(one.look_at, "loads in flight"));
  EXPECT_FALSE(speaks(one.look_at, "bank conflicts"));
  EXPECT_EQ(advice.verdict, "unknown");
  EXPECT_NE(advice.verdict_text.find("the roof of turn_frames is not known"), std::string::npos);
  EXPECT_NE(advice.nothing.find("turn_frames takes"), std::string::npos);
  const std::string text = as_text(advice);
  EXPECT_EQ(text.find("Nothing to recommend"), std::string::npos);
  EXPECT_NE(text.find("not known: how far turn_frames is from its roof"), std::string::npos);
  EXPECT_NE(text.find("no saving is estimated"), std::string::npos);
}

TEST(UnknownRoof, TheLaunchSaysWhatToLookAtFirst) {
  KernelRow tile = own_kernel();
  tile.launch.dynamic_shared_bytes = 4096;
  EXPECT_NE(program_of(tile).unknown_roofs.at(0).look_at.front().find("bank conflicts"),
            std::string::npos);
  tile.launch.dynamic_shared_bytes = 4224;  // 33 columns: padded
  EXPECT_NE(program_of(tile).unknown_roofs.at(0).look_at.front().find("coalescing"),
            std::string::npos);
  EXPECT_TRUE(speaks(program_of(tile).unknown_roofs.at(0).look_at, "bank conflicts"));
  KernelRow spilled = own_kernel();
  spilled.local_bytes = 96;
  EXPECT_NE(program_of(spilled).unknown_roofs.at(0).look_at.front().find("spills"),
            std::string::npos);
  KernelRow odd = own_kernel();
  odd.launch.block = {250, 1, 1};
  EXPECT_TRUE(speaks(program_of(odd).unknown_roofs.at(0).look_at, "6 lanes idle"));
  KernelRow few = own_kernel();
  few.launch.grid = {600, 1, 1};
  EXPECT_TRUE(speaks(program_of(few).unknown_roofs.at(0).look_at, "56.8% of the places"));
}

TEST(UnknownRoof, CountersAndStallsAreNotAskedForTwice) {
  const KernelRow counted =
      with_counters(own_kernel(), {{"smsp__inst_executed.sum", 1e6}, {"kineto.warps_per_sm", 60}});
  EXPECT_FALSE(speaks(program_of(counted).unknown_roofs.at(0).collect, "--counters"));
  const KernelRow estimated = with_counters(own_kernel(), {{"kineto.warps_per_sm", 60}});
  EXPECT_TRUE(speaks(program_of(estimated).unknown_roofs.at(0).collect, "--counters"));
}

// A name from a file is no part of a command unless it is a plain word.
TEST(UnknownRoof, NamesInCommandsArePlain) {
  EXPECT_TRUE(
      speaks(program_of(own_kernel("void mine::turn<float>(float*)")).unknown_roofs.at(0).collect,
             "-k turn "));
  EXPECT_TRUE(
      speaks(program_of(own_kernel("$(reboot)")).unknown_roofs.at(0).collect, "-k KERNEL "));
}

TEST(UnknownRoof, NotWhereSomethingIsKnownOrLittleIsTaken) {
  // The rule of own kernels guesses: far more time than its registers can hold data for.
  const Advice guessed = program_of(own_kernel(), 20'000'000);
  EXPECT_NE(find(guessed, "tune_kernel"), nullptr);
  EXPECT_TRUE(guessed.unknown_roofs.empty());
  KernelRow framework = own_kernel("indexing_backward");
  framework.op = "aten::index_put_";
  EXPECT_TRUE(program_of(framework).unknown_roofs.empty());
  EXPECT_TRUE(program_of(own_kernel("void thrust::turn<int>(int)")).unknown_roofs.empty());
  const auto part = [](double own_ns) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 program.kernel(own_kernel(), own_ns);
                 program.kernel(functor("Add", "n=1073741824,inputs=2"), 4'000'000);
               })
        .advice();
  };
  EXPECT_TRUE(part(700'000).unknown_roofs.empty());
  const Advice third = part(2'000'000);
  ASSERT_EQ(third.unknown_roofs.size(), 1u);
  EXPECT_NEAR(third.unknown_roofs[0].share, 1.0 / 3, 0.01);
}

// Many small ones are as much as a large one; the heaviest are listed.
TEST(UnknownRoof, SeveralKernelsTogether) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   for (const char* name : {"first", "second", "third", "fourth", "fifth"})
                     program.kernel(own_kernel(name), name[0] == 's' ? 150'000 : 100'000);
                   program.kernel(functor("Add", "n=1073741824,inputs=2"), 1'500'000);
                 })
          .advice();
  ASSERT_EQ(advice.unknown_roofs.size(), 3u);
  EXPECT_EQ(advice.unknown_roofs[0].kernel, "second");
  EXPECT_LT(advice.unknown_roofs[0].share, 0.1);
}

// The host sets the pace: a faster kernel gains little, so it owns little of the time.
TEST(UnknownRoof, NotWhereTheHostSetsThePace) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) { program.late_kernel(own_kernel(), 60'000, 600'000); })
          .advice();
  EXPECT_TRUE(advice.unknown_roofs.empty());
}

}  // namespace
}  // namespace purlin::analyze
