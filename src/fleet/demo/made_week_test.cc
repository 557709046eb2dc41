// SPDX-License-Identifier: Apache-2.0
#include "fleet/demo/made_week.h"

#include "base/files.h"
#include "fleet/analysis/compare.h"
#include "fleet/analysis/raw_kernel.h"
#include "fleet/analysis/roofs.h"
#include "fleet/analysis/slower.h"
#include "fleet/analysis/stragglers.h"
#include "fleet/api/memory_store_testing.h"
#include "fleet/demo/made_backlog.h"
#include "fleet/demo/made_raws.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kEnd = 1'790'003'600'000'000'000;

struct WeekOfCells {
  std::vector<analysis::Cell> cells;
  std::vector<analysis::CoverageCell> coverage;
};
const WeekOfCells& the_week() {
  static const WeekOfCells kWeek = [] {
    WeekOfCells week;
    for (const store::Batch& batch : made_week({kEnd})) {
      for (const store::BatchRow& row : batch.rows) {
        const store::BatchDevice& device = batch.devices[row.device];
        analysis::Cell cell;
        cell.kernel = row.kernel, cell.shape = row.shape, cell.dtype = row.dtype;
        cell.op = row.op, cell.role = row.role, cell.gpu = device.model;
        cell.driver = device.driver, cell.runtime = device.runtime;
        cell.build = batch.runs[row.run].build;
        cell.node = batch.node, cell.device = device.uuid, cell.begin_ns = row.hour_ns;
        cell.time = row.duration;
        week.cells.push_back(std::move(cell));
      }
      for (const store::BatchCoverage& one : batch.coverage) {
        analysis::CoverageCell cell;
        cell.node = batch.node, cell.device = batch.devices[one.device].uuid;
        cell.busy_ns = one.busy_ns, cell.seen_ns = one.seen_ns;
        cell.launches_seen = one.launches_seen, cell.launches_lost = one.launches_lost;
        cell.why = one.why;
        week.coverage.push_back(std::move(cell));
      }
    }
    return week;
  }();
  return kWeek;
}

TEST(MadeWeek, IsTheSameEachTimeAndHas40Kernels) {
  const std::vector<store::Batch> week = made_week({kEnd});
  EXPECT_EQ(week, made_week({kEnd}));
  std::set<std::string> kernels, models, roles;
  for (const store::Batch& batch : week) {
    for (const store::BatchRow& row : batch.rows)
      kernels.insert(row.kernel), roles.insert(row.role);
    for (const store::BatchDevice& device : batch.devices) models.insert(device.model);
    EXPECT_LE(batch.end_ns, kEnd);
  }
  EXPECT_GE(kernels.size(), 38u);
  EXPECT_EQ(models.size(), 5u);
  EXPECT_GE(roles.size(), 9u);
}

TEST(MadeWeek, ShowsBothRegressionsWithTheirMarksAndNothingElse) {
  const analysis::Slower found = analysis::got_slower(the_week().cells, the_week().coverage, {});
  ASSERT_FALSE(found.refused.has_value());
  std::map<std::string, analysis::SlowerKernel> alarms;
  for (const analysis::SlowerKernel& row : found.kernels)
    if (row.alarm) alarms[row.key.kernel.substr(0, 8)] = row;
  ASSERT_EQ(alarms.size(), 2u);
  const analysis::SlowerKernel& norm = alarms["rms_norm"];
  EXPECT_NEAR(norm.ratio, 1.09, 0.01);
  ASSERT_EQ(norm.marks.size(), 1u);
  EXPECT_EQ(norm.marks[0].what, "build");
  EXPECT_EQ(analysis::bisect_command(norm), "purlin guard bisect v1.8 v1.9 --suite SUITE");
  const analysis::SlowerKernel& attention = alarms["paged_at"];
  EXPECT_NEAR(attention.ratio, 1.06, 0.01);
  ASSERT_EQ(attention.marks.size(), 1u);
  EXPECT_EQ(attention.marks[0].what, "driver");
}

TEST(MadeWeek, ShowsTheStragglerAndTheNodeThatIsHardlySeen) {
  const analysis::Stragglers found = analysis::find_stragglers(the_week().cells, {});
  ASSERT_EQ(found.devices_slow.size(), 1u);
  EXPECT_EQ(found.devices_slow[0].device, "GPU-h100-07-1");
  const auto thin = analysis::thin_nodes(the_week().coverage, {});
  ASSERT_EQ(thin.size(), 1u);
  EXPECT_EQ(thin[0].node, "a100-03");
}

TEST(MadeWeek, HasRawProfilesWithAndWithoutCounters) {
  std::vector<store::Batch> week = made_week({kEnd, 20});
  const std::vector<MadeRaw> raws = add_made_raws(week);
  ASSERT_EQ(raws.size(), 2u);
  EXPECT_EQ(raws[0].sha256, add_made_raws(week)[0].sha256);
  const auto with = analysis::analyse_raw(raws[0].bytes),
             without = analysis::analyse_raw(raws[1].bytes);
  ASSERT_TRUE(with.is_ok() && without.is_ok());
  const Json norm = analysis::row_of_kernel(*with, "rms_norm_kernel", "NVIDIA H100 80GB HBM3");
  EXPECT_GT(norm["counters"].size(), 4u);
  EXPECT_EQ(norm["stalls"]["reasons"].items().at(0)["reason"].as_string(), "long_scoreboard");
  EXPECT_GT(norm["stalls"]["sites"].size(), 2u);
  EXPECT_TRUE(norm["occupancy"].is_object());
  EXPECT_TRUE(analysis::row_of_kernel(*with, "rms_norm_kernel", "NVIDIA H200").is_null());
  const Json decode = analysis::row_of_kernel(*without, "sm90_fp8_gemm_1d2d_kernel", "");
  EXPECT_TRUE(decode.is_object());
  EXPECT_TRUE(decode["stalls"].is_null());
  EXPECT_EQ(decode["counters"].size(), 0u);
}

TEST(MadeWeek, HasTasksOfEachState) {
  const auto facts = std::make_shared<MemoryFacts>();
  facts->batches = made_week({kEnd, 10});
  MemoryReader reader(facts);
  const std::string folder = make_temporary_directory("purlin-made").value();
  {
    backlog::Leases leases = backlog::Leases::open(join_path(folder, "backlog.sqlite")).value();
    ASSERT_TRUE(fill_made_backlog(reader, leases, kEnd).is_ok());
    std::map<backlog::TaskState, int> states;
    const auto tasks = leases.list(kEnd).value();
    for (const backlog::SharedTask& task : tasks) ++states[task.state];
    EXPECT_EQ(states[backlog::TaskState::kDone], 4);
    EXPECT_EQ(states[backlog::TaskState::kLeased], 2);
    EXPECT_EQ(states[backlog::TaskState::kFailed], 1);
    EXPECT_GT(states[backlog::TaskState::kOpen], 5);
    EXPECT_GT(*leases.spent_gpu_s_in_all(), 1000);
  }
  ASSERT_TRUE(remove_tree(folder).is_ok());
}

TEST(MadeWeek, FewKernelsOwnMostOfTheTime) {
  using analysis::RoofRow;
  const std::vector<RoofRow> rows =
      analysis::find_roofs(the_week().cells, analysis::RoofsBy::kKernel, 100);
  double all_s = 0, first_s = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all_s += rows[i].gpu_s;
    if (i < 20) first_s += rows[i].gpu_s;
  }
  EXPECT_GT(first_s, 0.8 * all_s);
  // Each GPU model of the week is in the table.
  for (const RoofRow& row : rows) EXPECT_EQ(row.unknown.find("figures"), row.unknown.npos);
}

}  // namespace
}  // namespace purlin::fleet
