// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/raw_spool.h"

#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "fleet/collector/collector.h"
#include "fleet/collector/shipper.h"
#include "fleet/collector/testing.h"
#include "profile/format/capture_file_testing.h"

#include <gtest/gtest.h>

#include <set>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kRawsNow = 1'700'000'000'000'000'000, kRawsPeriodNs = 10'000'000'000;

// A collector and a server of a few lines, with a kill between any two steps.
class RawSpoolTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-raws").value();
    for (const char* folder : {"watched", "state"})
      ASSERT_TRUE(make_directories(join_path(root_, folder)).is_ok());
    clock_.now_ns = kRawsNow;
    start();
  }
  void TearDown() override {
    collector_.reset();
    ASSERT_TRUE(remove_tree(root_).is_ok());
  }
  // As after a kill.
  void start() {
    collector_.reset();
    shipper_.reset();
    spool_ = BatchSpool::open({join_path(root_, "state")}, "boot").value();
    raw_options_.directory = join_path(root_, "state/raw");
    raws_ = RawSpool::open(raw_options_).value();
    CollectorOptions options;
    options.node = "gpu07";
    options.spools.folders = {join_path(root_, "watched")};
    options.raws = raws_.get();
    collector_ = std::make_unique<Collector>(options, *spool_, places_, clock_, log_);
    shipper_ = std::make_unique<Shipper>(
        ShipperOptions{"http://server", nullptr, raws_.get()},
        std::make_unique<ScriptedHttp>([this](const blobs::HttpRequest& request) {
          return Result<blobs::HttpResponse>(blobs::HttpResponse{answer(request), {}, ""});
        }),
        *spool_, clock_, log_, 1);
  }
  int answer(const blobs::HttpRequest& request) {
    if (request.method == "PUT") {
      if (put_status_ == 204)
        objects_.emplace(request.url.substr(request.url.rfind('/') + 1), request.body);
      return put_status_;
    }
    const store::Batch batch = store::decode(request.body).value();
    add_to(launches_, batch);
    for (const store::RawPointer& raw : batch.raws) {
      EXPECT_EQ(objects_.count(raw.sha256), 1U) << "a pointer without its object";
      pointers_.insert(raw.sha256);
      runs_.push_back(batch.runs.at(raw.run));
    }
    for (const store::BatchShed& shed : batch.shed) shed_[shed.cause] = shed.raw_bytes;
    return 204;
  }
  void look() {
    clock_.now_ns += kRawsPeriodNs;
    ASSERT_TRUE(collector_->look().is_ok());
  }
  void run_program(int launches, const std::string& build = "v1") {
    profile::CaptureFile file(join_path(root_, "watched"),
                              {.pid = ++pid_, .start_ns = clock_.now_ns, .build = build});
    for (int i = 0; i < launches; ++i) file.launch("gemm", 1000);
    file.seal(clock_.now_ns + 1'000'000, true);
  }

  std::string root_;
  FakeClock clock_;
  KeptLog log_;
  PlaceLabels places_{{}, nullptr, clock_};
  RawSpoolOptions raw_options_;
  std::unique_ptr<BatchSpool> spool_;
  std::unique_ptr<RawSpool> raws_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<Shipper> shipper_;
  int put_status_ = 204;
  std::int64_t pid_ = 100;
  std::map<std::string, std::string> objects_;
  std::set<std::string> pointers_;
  std::vector<store::BatchRun> runs_;
  std::map<std::string, std::uint64_t> shed_;
  Ledger launches_;
};

TEST_F(RawSpoolTest, ACaptureThatEndedArrivesWithItsPointerAfterIt) {
  run_program(3);
  look();
  EXPECT_EQ(raws_->totals().waiting, 1U);
  shipper_->step();
  EXPECT_EQ(objects_.size(), 1U);
  EXPECT_TRUE(pointers_.empty());
  look();
  shipper_->step();
  ASSERT_EQ(pointers_.size(), 1U);
  EXPECT_EQ(sha256_hex(objects_.begin()->second), *pointers_.begin());
  EXPECT_EQ(objects_.begin()->second.substr(0, 8), "PURLINPF");
  EXPECT_EQ(runs_.at(0).build, "v1");
  EXPECT_EQ(runs_.at(0).command, "python3 train.py");
  EXPECT_EQ(launches_["gemm"], 3);
  EXPECT_TRUE(list_directory(join_path(root_, "state/raw"))->empty());
}

TEST_F(RawSpoolTest, AKillBetweenAnyTwoStepsLosesAndDoublesNothing) {
  for (int kill_after = 0; kill_after < 4; ++kill_after) {
    run_program(3, fmt::format("v{}", kill_after));
    for (int step = 0; step < 4; ++step) {
      if (step % 2 == 0) look();
      if (step % 2 == 1) shipper_->step();
      if (step == kill_after) start();
    }
    shipper_->step();
    look();
    shipper_->step();
    EXPECT_EQ(pointers_.size(), static_cast<std::size_t>(kill_after) + 1) << kill_after;
    EXPECT_EQ(objects_.size(), pointers_.size()) << kill_after;
    EXPECT_EQ(launches_["gemm"], 3 * (kill_after + 1));
    EXPECT_TRUE(list_directory(join_path(root_, "state/raw"))->empty());
  }
}

TEST_F(RawSpoolTest, AKillInTheMiddleOfAStepLeavesNothingBehind) {
  run_program(3);
  look();
  const std::string folder = join_path(root_, "state/raw"), hash = sha256_hex("abc");
  ASSERT_TRUE(write_atomic(join_path(folder, hash), "abc").is_ok()) << "bytes, and then a kill";
  start();
  EXPECT_FALSE(file_exists(join_path(folder, hash)));
  EXPECT_EQ(raws_->totals().waiting, 1U);
  // Sent, and killed before the bytes are removed: the pointer goes, and the bytes, too.
  const RawCapture raw = *raws_->next_to_send();
  const std::string bytes = raws_->read(raw).value();
  ASSERT_TRUE(raws_->sent(raw).is_ok());
  ASSERT_TRUE(write_atomic(join_path(folder, raw.pointer.sha256), bytes).is_ok());
  objects_.emplace(raw.pointer.sha256, bytes);
  start();
  EXPECT_FALSE(file_exists(join_path(folder, raw.pointer.sha256)));
  look();
  shipper_->step();
  EXPECT_EQ(pointers_.count(raw.pointer.sha256), 1U);
}

TEST_F(RawSpoolTest, OneOfEachRunAndHourWithinTheBytesOfTheHour) {
  for (int i = 0; i < 3; ++i) run_program(3);
  look();
  EXPECT_EQ(raws_->totals().taken, 1U) << "one of a run";
  const std::uint64_t size = raws_->totals().waiting_bytes;
  clock_.now_ns += 3'600'000'000'000;
  run_program(3);
  look();
  EXPECT_EQ(raws_->totals().taken, 2U) << "another hour";
  raw_options_.bytes_per_hour = size + size / 2;
  start();
  clock_.now_ns += 3'600'000'000'000;
  for (const char* build : {"a", "b", "c"}) run_program(3, build);
  look();
  EXPECT_EQ(raws_->totals().taken, 1U) << "the hour's bytes";
  raw_options_.bytes_per_hour = 0;
  start();
  run_program(3, "d");
  look();
  EXPECT_EQ(raws_->totals().taken, 0U);
}

TEST_F(RawSpoolTest, GoesFirstWhereRoomIsShortAndTheServerLearnsIt) {
  raw_options_.max_bytes = 1;
  start();
  run_program(3);
  look();
  EXPECT_EQ(raws_->totals().waiting, 0U);
  EXPECT_EQ(spool_->totals().waiting, 1U) << "the batch stays";
  look();
  run_program(4, "v2");
  look();
  shipper_->step();
  EXPECT_GT(shed_["raw_spool_full"], 0U);
  EXPECT_EQ(launches_["gemm"], 7);
}

TEST_F(RawSpoolTest, ARawThatFailsKeepsNoBatchWaiting) {
  put_status_ = 507;
  run_program(3);
  look();
  EXPECT_EQ(shipper_->step(), 1) << "the pause of batches";
  EXPECT_EQ(raws_->totals().waiting, 1U);
  run_program(4, "v2");
  look();
  shipper_->step();
  EXPECT_EQ(launches_["gemm"], 7);
  put_status_ = 404;
  clock_.now_ns += 300'000'000'000;
  shipper_->step();
  EXPECT_EQ(raws_->totals().shed_bytes.count("raw_refused"), 1U) << "an older server";
  put_status_ = 204;
  clock_.now_ns += 300'000'000'000;
  shipper_->step();
  EXPECT_EQ(raws_->totals().waiting, 0U);
}

}  // namespace
}  // namespace purlin::fleet
