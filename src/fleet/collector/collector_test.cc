// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/collector.h"

#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "fleet/collector/testing.h"
#include "profile/format/capture_file_testing.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

using profile::CaptureFile;

constexpr std::int64_t kNow = 1'700'000'000'000'000'000, kTenSecondsNs = 10'000'000'000;

class CollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-collect").value();
    for (const char* folder : {"watched", "tmp", "state"})
      ASSERT_TRUE(make_directories(join_path(root_, folder)).is_ok());
    clock_.now_ns = kNow;
    start();
  }
  void TearDown() override {
    collector_.reset();
    ASSERT_TRUE(remove_tree(root_).is_ok());
  }
  // As after a restart.
  void start() {
    collector_.reset();
    spool_ = BatchSpool::open({join_path(root_, "state")}, "boot").value();
    CollectorOptions options;
    options.node = "gpu07";
    options.spools.folders = {watched()};
    options.spools.temporary = {join_path(root_, "tmp")};
    options.stop = [this](const FoundCapture& capture, std::int64_t pid) {
      stopped_.push_back(fmt::format("{} {}", capture.name, pid));
      return Status::ok();
    };
    collector_ = std::make_unique<Collector>(options, *spool_, places_, clock_, log_);
  }
  std::string watched() const { return join_path(root_, "watched"); }
  void look() {
    clock_.now_ns += kTenSecondsNs;
    ASSERT_TRUE(collector_->look().is_ok());
  }
  // Takes what waits, as a server would.
  std::vector<store::Batch> ship() {
    std::vector<store::Batch> batches;
    while (const auto batch = spool_->next_to_send()) {
      batches.push_back(store::decode(spool_->read(*batch).value()).value());
      add_to(shipped_, batches.back());
      EXPECT_TRUE(spool_->sent(*batch).is_ok());
    }
    return batches;
  }

  std::string root_;
  FakeClock clock_;
  KeptLog log_;
  PlaceLabels places_{{}, nullptr, clock_};
  std::unique_ptr<BatchSpool> spool_;
  std::unique_ptr<Collector> collector_;
  std::vector<std::string> stopped_;
  Ledger shipped_;
};

TEST_F(CollectorTest, FoldsAPeriodToRowsWithTheirPlace) {
  CaptureFile file(watched(),
                   {.start_ns = kNow, .labels = {{"job", "4711.0"}, {"scheduler", "slurm"}}});
  for (int i = 0; i < 100; ++i) file.launch("flash_fwd_kernel", 1000);
  file.launch("ncclDevKernel_AllReduce", 5000);
  file.overhead(50'000);
  file.seal(kNow + 1'000'000'000);
  look();
  const std::vector<store::Batch> batches = ship();
  ASSERT_EQ(batches.size(), 1U);
  const store::Batch& batch = batches[0];
  EXPECT_EQ(batch.node, "gpu07");
  EXPECT_EQ(batch.boot, "boot");
  ASSERT_EQ(batch.rows.size(), 2U);
  EXPECT_EQ(batch.rows[0].duration.count(), 100);
  EXPECT_EQ(batch.rows[0].recorded, 100);
  EXPECT_EQ(batch.rows[0].role, "attention");
  EXPECT_EQ(batch.rows[1].role, "communication");
  EXPECT_EQ(batch.devices.at(0).model, "NVIDIA H200");
  EXPECT_EQ(batch.runs.at(0).build, "v1");
  EXPECT_EQ(batch.runs.at(0).labels.job, "4711.0");
  ASSERT_EQ(batch.coverage.size(), 1U);
  EXPECT_EQ(batch.coverage[0].launches_seen, 101);
  EXPECT_EQ(batch.coverage[0].overhead_ns, 50'000);
  EXPECT_GT(batch.collector_rss_bytes, 0U);
  EXPECT_EQ(batch.spool, (store::SpoolFill{0, spool_->max_bytes()}));
  look();
  EXPECT_TRUE(ship().empty()) << "a period without activity makes none";
}

TEST_F(CollectorTest, PeriodsOfEarlierHoursArriveAfterARestartAndAClockThatIsSet) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  CaptureFile file(watched(), {.start_ns = kNow});
  const auto launch_at = [&](std::int64_t ns) {
    file.launch("kernel", 1000);
    file.seal(ns);
  };
  launch_at(kNow + 1'000'000'000);
  launch_at(kNow + 3 * kHour);
  clock_.now_ns = kNow + 26 * kHour;
  start();  // the collector was away for a day
  look();
  EXPECT_EQ(ship().size(), 1U);
  launch_at(clock_.now_ns + 30'000'000'000);  // ahead, perhaps in the next hour
  clock_.now_ns = (clock_.now_ns / kHour + 1) * kHour - 20'000'000'000;
  launch_at(clock_.now_ns + 30'000'000'000);
  look();
  clock_.now_ns -= 2 * kHour;  // set back
  launch_at(clock_.now_ns);
  look();
  launch_at(1'000'000'000);  // 1970
  look();
  ship();
  EXPECT_EQ(shipped_["kernel"], 6);
}

TEST_F(CollectorTest, NothingIsLostOrDoubledOverRestarts) {
  CaptureFile file(watched(), {.start_ns = kNow});
  Random random(7);
  Ledger launched;
  for (int i = 0; i < 60; ++i) {
    for (std::uint64_t k = random.below(4); k-- > 0;) {
      const std::string kernel = fmt::format("kernel_{}", random.below(5));
      file.launch(kernel, 1000);
      ++launched[kernel];
    }
    file.seal(clock_.now_ns + 1);
    if (random.below(3) == 0) start();
    if (random.below(2) == 0) look();
    if (random.below(3) == 0) ship();
  }
  look();
  ship();
  EXPECT_EQ(shipped_, launched);
}

TEST_F(CollectorTest, WhatCouldNotBeStoredIsStoredLater) {
  CaptureFile file(watched(), {.start_ns = kNow});
  file.launch("kernel_a", 1000);
  file.seal(kNow + 1);
  const std::string state = join_path(root_, "state/state.json");
  ASSERT_TRUE(make_directories(join_path(state, "x")).is_ok());  // as a full disk
  clock_.now_ns += kTenSecondsNs;
  EXPECT_FALSE(collector_->look().is_ok());
  EXPECT_EQ(collector_->state().failed_looks, 1U);
  file.launch("kernel_a", 1000);
  file.seal(kNow + 2);
  EXPECT_FALSE(collector_->look().is_ok());
  ASSERT_TRUE(remove_tree(state).is_ok());
  look();
  ship();
  EXPECT_EQ(shipped_, (Ledger{{"kernel_a", 2}}));
}

TEST_F(CollectorTest, AnEndedCaptureIsRemovedOnlyFromWatchedFolders) {
  ASSERT_TRUE(make_directories(join_path(root_, "tmp/purlin-spool.x")).is_ok());
  CaptureFile ours(watched(), {.start_ns = kNow}),
      theirs(join_path(root_, "tmp/purlin-spool.x"), {.start_ns = kNow}),
      running(watched(), {.pid = 1, .start_ns = kNow});
  for (CaptureFile* file : {&ours, &theirs}) {
    file->launch("kernel_a", 1000);
    file->seal(kNow + 1, true);
  }
  running.seal(kNow + 1);
  look();
  EXPECT_FALSE(file_exists(ours.path()));
  EXPECT_TRUE(file_exists(theirs.path()));
  EXPECT_TRUE(file_exists(running.path()));
  ship();
  look();
  start();
  look();
  ship();
  EXPECT_EQ(shipped_, (Ledger{{"kernel_a", 2}}));
}

TEST_F(CollectorTest, AFileThatItsRunRemovedIsReadToItsEnd) {
  ASSERT_TRUE(make_directories(join_path(root_, "tmp/purlin-spool.x")).is_ok());
  CaptureFile file(join_path(root_, "tmp/purlin-spool.x"), {.start_ns = kNow});
  file.launch("kernel_a", 1000);
  file.seal(kNow + 1);
  look();
  file.launch("kernel_a", 1000);
  file.seal(kNow + 2, true);
  ASSERT_TRUE(remove_tree(join_path(root_, "tmp/purlin-spool.x")).is_ok());
  look();
  ship();
  EXPECT_EQ(shipped_, (Ledger{{"kernel_a", 2}}));
  EXPECT_EQ(collector_->state().captures, 0U);
}

TEST_F(CollectorTest, ADamagedOrForeignFileIsLeftAlone) {
  ASSERT_TRUE(write_atomic(join_path(watched(), "x.plprof"), std::string(500, 'x')).is_ok());
  CaptureFile file(watched(), {.start_ns = kNow});
  file.launch("kernel_a", 1000);
  file.seal(kNow + 1);
  look();
  look();
  ship();
  EXPECT_EQ(shipped_, (Ledger{{"kernel_a", 1}}));
  EXPECT_EQ(collector_->state().unusable, 1U);
  EXPECT_TRUE(file_exists(join_path(watched(), "x.plprof")));
}

TEST_F(CollectorTest, ALostStateReadsOnlyWhatComes) {
  CaptureFile file(watched(), {.start_ns = kNow});
  file.launch("kernel_a", 1000);
  file.seal(kNow + 1);
  look();
  ship();
  ASSERT_TRUE(write_atomic(join_path(root_, "state/state.json"), "").is_ok());
  start();
  look();
  file.launch("kernel_a", 1000);
  file.seal(kNow + 2);
  look();
  ship();
  EXPECT_EQ(shipped_, (Ledger{{"kernel_a", 2}}));
}

TEST_F(CollectorTest, StopsWhatSlowsItsProgram) {
  CaptureFile slow(watched(), {.pid = 1, .start_ns = kNow}),
      fast(watched(), {.pid = 2, .start_ns = kNow});
  for (int i = 1; i <= 5; ++i) {
    slow.overhead(1e9);
    fast.overhead(1e8);
    for (CaptureFile* file : {&slow, &fast}) {
      file->launch("kernel_a", 1000);
      file->seal(kNow + i * kTenSecondsNs);
    }
    look();
  }
  ASSERT_EQ(stopped_.size(), 1U) << "once";
  EXPECT_NE(stopped_[0].find("cuda-1-"), std::string::npos) << stopped_[0];
  EXPECT_EQ(collector_->state().stopped, 1U);
}

TEST_F(CollectorTest, ATimeOfTheFutureIsOfThisHour) {
  CaptureFile file(watched(), {.start_ns = kNow});
  file.launch("kernel_a", 1000);
  file.seal(kNow + 40LL * 24 * 3600 * 1'000'000'000);
  look();
  const std::vector<store::Batch> batches = ship();
  EXPECT_EQ(batches.at(0).rows.at(0).hour_ns,
            clock_.now_ns / 3'600'000'000'000 * 3'600'000'000'000);
  EXPECT_EQ(batches.at(0).coverage.at(0).bad_timestamps, 1);
}

TEST(PlaceLabels, KnowsPodsByTheKubeletsLinksAndRemembersWhoIsNone) {
  const std::string root = make_temporary_directory("purlin-pods").value();
  const std::string id(64, 'a'), later(64, 'b');
  ASSERT_TRUE(write_atomic(join_path(root, "trainer-0_team_main-" + id + ".log"), "").is_ok());
  FakeClock clock;
  PlaceLabels places({.kubelet_logs = root}, nullptr, clock);
  RunLabels labels;
  labels.container = id;
  places.complete(labels, -1);
  EXPECT_EQ(labels.pod, "team/trainer-0");
  RunLabels unknown;
  unknown.container = later;
  for (int i = 0; i < 50; ++i) places.complete(unknown, -1);
  EXPECT_LE(places.lookups(), 2U);
  ASSERT_TRUE(write_atomic(join_path(root, "worker_other_main-" + later + ".log"), "").is_ok());
  clock.now_ns += 61'000'000'000;
  places.complete(unknown, -1);
  EXPECT_EQ(unknown.pod, "other/worker");
  ASSERT_TRUE(remove_tree(root).is_ok());
}

TEST(PlaceLabels, AsksTheKubeletOnceForAll) {
  FakeClock clock;
  int asked = 0;
  ScriptedHttp http([&](const blobs::HttpRequest&) {
    ++asked;
    return Result<blobs::HttpResponse>(
        blobs::HttpResponse{200,
                            {},
                            R"({"items": [{"metadata": {"namespace": "team", "name": "trainer-1"},
          "status": {"containerStatuses": [{"containerID": "containerd://)" +
                                std::string(64, 'c') + R"("}]}}]})"});
  });
  PlaceLabels places({.kubelet_url = "http://127.0.0.1:10255/pods"}, &http, clock);
  for (const char digit : {'c', 'd', 'c', 'd'}) {
    RunLabels labels;
    labels.container = std::string(64, digit);
    places.complete(labels, -1);
    EXPECT_EQ(labels.pod, digit == 'c' ? "team/trainer-1" : "");
  }
  EXPECT_EQ(asked, 1);
}

TEST(PlaceLabels, TakesTheJobOfAGpuFromAMappingFolder) {
  const std::string root = make_temporary_directory("purlin-jobs").value();
  ASSERT_TRUE(write_atomic(join_path(root, "0"), "4711\n").is_ok());
  ASSERT_TRUE(write_atomic(join_path(root, "1"), "1\n2\n").is_ok());
  FakeClock clock;
  PlaceLabels places({.job_mapping = root}, nullptr, clock);
  RunLabels none, shared, own;
  own.job = "8.1";
  places.complete(none, 0);
  places.complete(shared, 1);
  places.complete(own, 0);
  EXPECT_EQ(none.job, "4711");
  EXPECT_EQ(none.scheduler, "slurm");
  EXPECT_EQ(shared.job, "") << "a GPU that jobs share belongs to none of them";
  EXPECT_EQ(own.job, "8.1");
  ASSERT_TRUE(remove_tree(root).is_ok());
}

}  // namespace
}  // namespace purlin::fleet
