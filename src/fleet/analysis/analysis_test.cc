// SPDX-License-Identifier: Apache-2.0
// Planted truths: what each conclusion must find, and what must not fool it.
#include "fleet/analysis/compare.h"
#include "fleet/analysis/documents.h"
#include "fleet/analysis/made_fleet_testing.h"
#include "fleet/analysis/rank.h"
#include "fleet/analysis/roofs.h"
#include "fleet/analysis/slower.h"
#include "fleet/analysis/stragglers.h"

#include <gtest/gtest.h>

namespace purlin::fleet::analysis {
namespace {

std::vector<Cell> sided(const std::vector<Cell>& cells, bool before, std::int64_t at_ns) {
  std::vector<Cell> side;
  for (const Cell& cell : cells)
    if ((cell.begin_ns < at_ns) == before) side.push_back(cell);
  return side;
}
std::int64_t begin_of(int step) { return 1'700'006'400'000'000'000 + step * 6 * kHourNs; }

TEST(Slower, FindsAPlantedRegressionAndNamesTheDriver) {
  MadeFleet fleet;
  fleet.factor = [](int, int step) { return step >= 16 ? 1.05 : 1.0; };
  fleet.dress = [](Cell* cell, int, int step) {
    if (step >= 16) cell->driver = "580";
  };
  const Slower found = got_slower(make_cells(fleet), {}, {});
  ASSERT_EQ(found.kernels.size(), 1u);
  const SlowerKernel& row = found.kernels.front();
  EXPECT_TRUE(row.alarm) << row.why_suspect;
  EXPECT_NEAR(row.ratio, 1.05, 0.008);
  EXPECT_LE(row.low, 1.05);
  EXPECT_GE(row.high, 1.045);
  EXPECT_EQ(row.at_ns, begin_of(16));
  EXPECT_EQ(row.nodes, 24);
  ASSERT_EQ(row.marks.size(), 1u);
  EXPECT_EQ(row.marks[0].what, "driver");
  EXPECT_EQ(row.marks[0].after, "580");
  EXPECT_NEAR(row.lost_gpu_s, row.gpu_s_after * (1 - 1 / row.ratio), 1e-9);
  EXPECT_EQ(bisect_command(row), "");
}

TEST(Slower, IsNotFooledByAChangedMixOfShapes) {
  MadeFleet fleet;  // the plain p50 becomes seven times as long
  fleet.launches = [](const MadeShape& shape, int, int step) {
    const bool large = shape.shape == "M=4096";
    return large == (step >= 16) ? 60 : 12;
  };
  const Slower found = got_slower(make_cells(fleet), {}, {});
  EXPECT_EQ(found.tested, 1);
  EXPECT_TRUE(found.kernels.empty());
}

TEST(Slower, ShowsAFasterKernelNotAtAll) {
  MadeFleet fleet;
  fleet.factor = [](int, int step) { return step >= 16 ? 0.9 : 1.0; };
  EXPECT_TRUE(got_slower(make_cells(fleet), {}, {}).kernels.empty());
}

TEST(Slower, IgnoresAChangeThatWentAway) {
  MadeFleet fleet;
  fleet.factor = [](int, int step) { return step >= 10 && step < 16 ? 1.08 : 1.0; };
  for (const SlowerKernel& row : got_slower(make_cells(fleet), {}, {}).kernels)
    EXPECT_FALSE(row.alarm);
}

TEST(Slower, IgnoresWhatIsBelowTheMinimum) {
  MadeFleet fleet;
  fleet.process = 0.001;
  fleet.factor = [](int, int step) { return step >= 16 ? 1.01 : 1.0; };
  EXPECT_TRUE(got_slower(make_cells(fleet), {}, {}).kernels.empty());
}

TEST(Slower, OneBadNodeIsNoRegressionOfAKernel) {
  MadeFleet fleet;
  fleet.factor = [](int node, int step) { return node == 3 && step >= 16 ? 1.5 : 1.0; };
  EXPECT_TRUE(got_slower(make_cells(fleet), {}, {}).kernels.empty());
}

TEST(Slower, OnFewNodesIsASuspectWithTheReason) {
  MadeFleet fleet;
  fleet.nodes = 5;
  fleet.factor = [](int, int step) { return step >= 16 ? 1.2 : 1.0; };
  const Slower found = got_slower(make_cells(fleet), {}, {});
  ASSERT_EQ(found.kernels.size(), 1u);
  EXPECT_FALSE(found.kernels[0].alarm);
  EXPECT_NE(found.kernels[0].why_suspect, "");
}

TEST(Slower, RefusesAThinKernelWithTheReason) {
  MadeFleet fleet;
  fleet.nodes = 2, fleet.steps = 3;
  const Slower found = got_slower(make_cells(fleet), {}, {});
  EXPECT_TRUE(found.kernels.empty());
  ASSERT_EQ(found.thin.size(), 1u);
  EXPECT_NE(found.thin[0].why.find("needed"), std::string::npos);
}

TEST(Slower, BuildsGiveABisectionUnlessTheirNamesAreHostile) {
  SlowerKernel row;
  row.marks = {{"build", "v1.2", "v1.3", 1, 1}};
  EXPECT_EQ(bisect_command(row), "purlin guard bisect v1.2 v1.3 --suite SUITE");
  row.marks[0].after = "v1.3; rm -rf /";
  EXPECT_EQ(bisect_command(row), "");
  row.marks[0].after = "--upload-pack=x";
  EXPECT_EQ(bisect_command(row), "");
}

TEST(Compare, SimpsonsParadoxIsSeenThrough) {
  // Every shape became 4 % faster, but the large one is launched more often: the plain p50 grew.
  MadeFleet fleet;
  fleet.factor = [](int, int step) { return step >= 14 ? 0.96 : 1.0; };
  fleet.launches = [](const MadeShape& shape, int, int step) {
    const bool large = shape.shape == "M=4096";
    return large == (step >= 14) ? 60 : 12;
  };
  const std::vector<Cell> cells = make_cells(fleet);
  const Comparison found =
      compare(sided(cells, true, begin_of(14)), sided(cells, false, begin_of(14)), {}, {});
  ASSERT_EQ(found.kernels.size(), 1u);
  const KernelComparison& row = found.kernels.front();
  EXPECT_EQ(row.change, Change::kFaster);
  EXPECT_NEAR(row.ratio, 0.96, 0.006);
  EXPECT_GT(row.mixed_ratio, 3);
  EXPECT_TRUE(row.paired);
}

TEST(Compare, NodesOfEachBuildAreComparedWithEachOther) {
  MadeFleet fleet;
  fleet.nodes = 30, fleet.steps = 4, fleet.chip = 0.01;
  fleet.factor = [](int node, int) { return node % 2 ? 1.06 : 1.0; };
  std::vector<Cell> old, now;
  for (const Cell& cell : make_cells(fleet))
    (std::stoi(cell.node.substr(4)) % 2 ? now : old).push_back(cell);
  const Comparison found = compare(old, now, {}, {});
  ASSERT_EQ(found.kernels.size(), 1u);
  EXPECT_EQ(found.kernels[0].change, Change::kSlower);
  EXPECT_FALSE(found.kernels[0].paired);
  EXPECT_NEAR(found.kernels[0].ratio, 1.06, 0.02);
}

TEST(Compare, TheSameIsTheSame) {
  const std::vector<Cell> cells = make_cells({});
  const Comparison found =
      compare(sided(cells, true, begin_of(14)), sided(cells, false, begin_of(14)), {}, {});
  ASSERT_EQ(found.kernels.size(), 1u);
  EXPECT_EQ(found.kernels[0].change, Change::kSame);
}

TEST(Compare, RefusesWithoutCommonShapesAndWithoutNodes) {
  MadeFleet fleet;
  std::vector<Cell> old = make_cells(fleet);
  fleet.shapes = {{"M=2048", 300'000, 40}};
  const std::vector<Cell> now = make_cells(fleet);
  const Comparison other = compare(old, now, {}, {});
  ASSERT_EQ(other.kernels.size(), 1u);
  EXPECT_EQ(other.kernels[0].change, Change::kRefused);
  EXPECT_NE(other.kernels[0].refused.find("shapes"), std::string::npos);

  fleet.nodes = 2;
  const std::vector<Cell> few = make_cells(fleet);
  const Comparison thin =
      compare(sided(few, true, begin_of(14)), sided(few, false, begin_of(14)), {}, {});
  ASSERT_EQ(thin.kernels.size(), 1u);
  EXPECT_EQ(thin.kernels[0].change, Change::kRefused);
  EXPECT_NE(thin.kernels[0].refused.find("needed"), std::string::npos);
}

TEST(Compare, ThinCoverageRefusesTheWhole) {
  CoverageCell cell;
  cell.node = "n", cell.busy_ns = 1e12, cell.seen_ns = 1e9, cell.launches_seen = 10;
  cell.why = "another CUPTI client is active";
  const Comparison found = compare(make_cells({}), make_cells({}), {cell}, {});
  ASSERT_TRUE(found.refused.has_value());
  EXPECT_NE(found.refused->find("another CUPTI client"), std::string::npos);
  EXPECT_EQ(to_json(found)["refused"]["why"].as_string(), *found.refused);
}

TEST(Holm, IsStepwise) {
  EXPECT_EQ(holm({0.004, 0.5, 0.002}, 0.01), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(holm({0.004, 0.5, 0.006}, 0.01), (std::vector<bool>{false, false, false}));
}

TEST(Stragglers, AreSlowAgainstPeersOnEqualShapes) {
  MadeFleet fleet;
  fleet.chip = 0.01;
  fleet.factor = [](int node, int) { return node == 7 ? 1.25 : 1.0; };
  // Node 9 runs the large shape alone: it is not slow.
  fleet.launches = [](const MadeShape& shape, int node, int) {
    return node == 9 && shape.shape == "M=1024" ? 0 : 40;
  };
  const Stragglers found = find_stragglers(make_cells(fleet), {});
  EXPECT_EQ(found.devices, 24);
  ASSERT_EQ(found.devices_slow.size(), 1u);
  EXPECT_EQ(found.devices_slow[0].node, "node7");
  EXPECT_TRUE(found.devices_slow[0].slow_to_peers);
  EXPECT_NEAR(*found.devices_slow[0].relative_score, 0.8, 0.02);
}

TEST(Stragglers, AreSlowAgainstTheirOwnPast) {
  MadeFleet fleet;
  fleet.chip = 0.06;  // peers differ so much that 15 % is within them
  fleet.factor = [](int node, int step) { return node == 7 && step >= 14 ? 1.15 : 1.0; };
  const Stragglers found = find_stragglers(make_cells(fleet), {});
  ASSERT_EQ(found.devices_slow.size(), 1u);
  EXPECT_EQ(found.devices_slow[0].node, "node7");
  EXPECT_TRUE(found.devices_slow[0].slow_to_past);
  EXPECT_FALSE(found.devices_slow[0].slow_to_peers);
}

TEST(Stragglers, AChangeOfAllIsNobodysFault) {
  MadeFleet fleet;
  fleet.factor = [](int, int step) { return step >= 14 ? 1.15 : 1.0; };
  EXPECT_TRUE(find_stragglers(make_cells(fleet), {}).devices_slow.empty());
}

TEST(Stragglers, AChangeOfOneModelIsNobodysFault) {
  MadeFleet fleet, others;
  others.gpu = "A100", others.nodes = 10, others.seed = 2;
  others.factor = [](int, int step) { return step >= 14 ? 1.15 : 1.0; };
  std::vector<Cell> cells = make_cells(fleet);
  for (Cell& cell : make_cells(others)) {
    cell.node = "a100-" + cell.node;
    cells.push_back(std::move(cell));
  }
  EXPECT_TRUE(find_stragglers(cells, {}).devices_slow.empty());
}

// With the median absolute deviation, 4 % of such fleets had one.
TEST(Stragglers, FewDevicesThatDifferAreNone) {
  constexpr int kFleets = 300;
  int with_one = 0;
  for (int i = 0; i < kFleets; ++i) {
    MadeFleet fleet;
    fleet.nodes = 7, fleet.steps = 1, fleet.chip = 0.03;
    fleet.seed = static_cast<std::uint64_t>(i) + 1;
    fleet.shapes = {{"M=1024", 100'000, 200}};
    const Stragglers found = find_stragglers(make_cells(fleet), {});
    ASSERT_EQ(found.devices, 7);
    with_one += found.devices_slow.empty() ? 0 : 1;
  }
  EXPECT_LE(with_one, kFleets / 100);
}

TEST(Stragglers, OneStepIsEnoughForPeers) {
  MadeFleet fleet;
  fleet.steps = 1, fleet.chip = 0.01;
  fleet.shapes = {{"M=1024", 100'000, 400}};
  fleet.factor = [](int node, int) { return node == 7 ? 1.25 : 1.0; };
  const Stragglers found = find_stragglers(make_cells(fleet), {});
  ASSERT_EQ(found.devices_slow.size(), 1u);
  EXPECT_FALSE(found.devices_slow[0].individual_score.has_value());
}

TEST(Stragglers, RefusesWithoutPeers) {
  MadeFleet fleet;
  fleet.nodes = 4;
  const Stragglers found = find_stragglers(make_cells(fleet), {});
  EXPECT_TRUE(found.refused.has_value());
  EXPECT_EQ(found.thin.size(), 4u);
}

TEST(TuneThese, StaleFirstThenBySavingWithoutCommunication) {
  const auto cell = [](const char* kernel, const char* shape, int launches) {
    Cell made;
    made.kernel = kernel, made.shape = shape, made.gpu = "H100", made.node = "n";
    for (int i = 0; i < launches; ++i) made.time.add(1e6);
    return made;
  };
  const std::vector<TuneTask> tasks =
      tune_these({cell("a", "M=1", 100), cell("b", "M=1", 50), cell("c", "M=1", 10),
                  cell("ncclDevKernel_AllReduce", "", 1000)},
                 {{"a", "M=1", "", "H100", std::nullopt, 0.95, false},
                  {"b", "M=1", "", "H100", 0.5e6, {}, false},
                  {"c", "M=1", "", "H100", 0.9e6, {}, true}},
                 10);
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].kernel, "c");
  EXPECT_TRUE(tasks[0].stale);
  EXPECT_EQ(tasks[1].kernel, "b");
  EXPECT_NEAR(tasks[1].headroom, 0.5, 0.01);
  EXPECT_EQ(tasks[1].basis, HeadroomBasis::kBestKnown);
  EXPECT_EQ(tasks[2].kernel, "a");
  EXPECT_NEAR(tasks[2].saving_s(), 0.1 * 0.05, 1e-6);
}

Cell product(const std::string& shape, const std::string& gpu, double us, int launches) {
  Cell cell;
  cell.kernel = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64";
  cell.shape = shape, cell.dtype = "bf16", cell.gpu = gpu;
  for (int i = 0; i < launches; ++i) cell.time.add(us * 1000);
  return cell;
}

// 1.65e12 FLOP in 3.34 ms are half of the dense peak of an H200, in 1.67 ms all of it.
TEST(Roofs, AreWeightedByTheKnownTime) {
  const std::string shape = "M=16384,N=12288,K=4096";
  const std::vector<Cell> cells = {
      product(shape, "NVIDIA H200", 3340, 100), product(shape, "NVIDIA H200", 3340, 100),
      product(shape, "NVIDIA H100 80GB HBM3", 1800, 100), product("", "NVIDIA H200", 3340, 10),
      product(shape, "Some GPU", 3340, 20)};
  const std::vector<RoofRow> all = find_roofs(cells, RoofsBy::kKernel, 10);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NEAR(all[0].gpu_s, 0.948, 0.01);
  EXPECT_NEAR(all[0].known_gpu_s, 0.848, 0.01);
  ASSERT_TRUE(all[0].utilization.has_value());
  EXPECT_NEAR(*all[0].utilization, (0.5 * 0.668 + 0.928 * 0.18) / 0.848, 0.02);
  EXPECT_NEAR(*all[0].headroom(), 1 - *all[0].utilization, 1e-12);
  EXPECT_EQ(all[0].bound, analyze::Bound::kCompute);
  EXPECT_EQ(all[0].unknown, "the figures of Some GPU are not known");
  const std::vector<RoofRow> shapes = find_roofs(cells, RoofsBy::kShape, 10);
  ASSERT_EQ(shapes.size(), 4u);
  EXPECT_EQ(shapes[0].gpu, "NVIDIA H200");
  EXPECT_NEAR(*shapes[0].utilization, 0.5, 0.02);
  EXPECT_FALSE(shapes[2].utilization.has_value());
  EXPECT_FALSE(shapes[3].headroom().has_value());
  EXPECT_EQ(shapes[3].unknown, "no problem shape was recorded");
  EXPECT_EQ(shapes[3].bound_from, "op_class") << "a guess, and marked as one";
}

TEST(Roofs, AreOfTheKernelsWithMostTime) {
  std::vector<Cell> cells = {product("", "", 10, 1), product("", "", 10, 30)};
  cells[0].kernel = "small", cells[1].kernel = "large";
  const std::vector<RoofRow> rows = find_roofs(cells, RoofsBy::kKernel, 1);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kernel, "large");
  EXPECT_FALSE(rows[0].utilization.has_value());
  const Json json = to_json(rows);
  EXPECT_TRUE(json.items().at(0)["utilization"].is_null());
  EXPECT_TRUE(json.items().at(0)["headroom"].is_null());
}

TEST(ThinNodes, AreNamedWithTheReason) {
  CoverageCell good, bad;
  good.node = "good", good.busy_ns = 1e12, good.seen_ns = 9e11, good.launches_seen = 1000;
  bad.node = "bad", bad.busy_ns = 1e12, bad.seen_ns = 9e11, bad.launches_seen = 10;
  bad.launches_lost = 10;
  const std::vector<ThinNode> thin = thin_nodes({good, bad}, {});
  ASSERT_EQ(thin.size(), 1u);
  EXPECT_EQ(thin[0].node, "bad");
  EXPECT_NE(thin[0].why.find("lost"), std::string::npos);
}

}  // namespace
}  // namespace purlin::fleet::analysis
