// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/batch_spool.h"

#include "base/files.h"
#include "base/sha256.h"
#include "fleet/collector/testing.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace purlin::fleet {
namespace {

store::Batch batch_of(const std::string& kernel, int launches = 1) {
  store::Batch batch;
  batch.node = "gpu07";
  batch.begin_ns = 1'700'000'000'000'000'000;
  batch.end_ns = batch.sent_ns = batch.begin_ns + 10'000'000'000;
  batch.devices = {{.uuid = "GPU-1", .model = "NVIDIA H200"}};
  batch.runs = {store::BatchRun{}};
  store::BatchRow row;
  row.hour_ns = batch.begin_ns / 3'600'000'000'000 * 3'600'000'000'000;
  row.kernel = kernel;
  for (int i = 0; i < launches; ++i) row.duration.add(1000);
  row.recorded = launches;
  batch.rows.push_back(row);
  return batch;
}

class BatchSpoolTest : public testing::Test {
 protected:
  void SetUp() override { root_ = make_temporary_directory("purlin-batches").value(); }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  std::unique_ptr<BatchSpool> open(const std::string& boot = "boot-1",
                                   std::uint64_t max_bytes = 1 << 20) {
    return BatchSpool::open({root_, max_bytes}, boot).value();
  }
  static store::Batch read(BatchSpool& spool, const WaitingBatch& batch) {
    return store::decode(spool.read(batch).value()).value();
  }
  std::string root_;
};

TEST_F(BatchSpoolTest, WhatWasCommittedIsThereAfterARestart) {
  {
    auto spool = open();
    ASSERT_TRUE(spool->commit({batch_of("a"), batch_of("b")}, {{"file", {100}}}).is_ok());
    ASSERT_TRUE(spool->commit({batch_of("c")}, {{"file", {200}}, {"other", {5}}}).is_ok());
  }
  auto spool = open();
  EXPECT_EQ(spool->marks(), (ReadMarks{{"file", {200}}, {"other", {5}}}));
  std::vector<std::string> kernels;
  std::vector<std::uint64_t> sequences;
  while (const auto batch = spool->next_to_send()) {
    kernels.push_back(read(*spool, *batch).rows.at(0).kernel);
    sequences.push_back(read(*spool, *batch).sequence);
    EXPECT_EQ(sha256_hex(read_file(batch->path).value()), batch->hash);
    ASSERT_TRUE(spool->sent(*batch).is_ok());
  }
  EXPECT_EQ(kernels, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 2, 3}));
  ASSERT_TRUE(spool->commit({batch_of("d")}, {}).is_ok());
  EXPECT_EQ(read(*spool, *spool->next_to_send()).sequence, 4U) << "also where none waits";
}

// A kill between the batch and the state: its launches are read again.
TEST_F(BatchSpoolTest, ABatchWithoutItsStateIsRemoved) {
  {
    auto spool = open();
    ASSERT_TRUE(spool->commit({batch_of("a")}, {{"file", {100}}}).is_ok());
    const std::string state = read_file(join_path(root_, "state.json")).value();
    ASSERT_TRUE(spool->commit({batch_of("b")}, {{"file", {200}}}).is_ok());
    ASSERT_TRUE(write_atomic(join_path(root_, "state.json"), state).is_ok());
  }
  auto spool = open();
  EXPECT_EQ(spool->marks().at("file").offset, 100U);
  EXPECT_EQ(spool->totals().waiting, 1U);
}

TEST_F(BatchSpoolTest, AFailedCommitChangesNothing) {
  auto spool = open();
  ASSERT_TRUE(spool->commit({batch_of("a")}, {{"file", {100}}}).is_ok());
  // The state's name is taken by a folder: as a full disk, it fails after the batch was written.
  const std::string state = join_path(root_, "state.json");
  ASSERT_TRUE(remove_file(state).is_ok());
  ASSERT_TRUE(make_directories(join_path(state, "x")).is_ok());
  EXPECT_FALSE(spool->commit({batch_of("b")}, {{"file", {200}}}).is_ok());
  EXPECT_EQ(spool->totals().waiting, 1U);
  EXPECT_EQ(spool->marks().at("file").offset, 100U);
  std::size_t batches = 0;
  const std::vector<std::string> names = list_directory(root_).value();
  for (const std::string& name : names)
    batches += name.find(".pbatch") != std::string::npos ? 1 : 0;
  EXPECT_EQ(batches, 1U);
  ASSERT_TRUE(remove_tree(state).is_ok());
  EXPECT_TRUE(spool->commit({batch_of("b")}, {{"file", {200}}}).is_ok());
  EXPECT_EQ(spool->totals().waiting, 2U);
}

TEST_F(BatchSpoolTest, TheOldestAreShedAndTheirTotalsSent) {
  const std::uint64_t one = store::encode(batch_of("a")).value().size();
  auto spool = open("boot-1", 3 * (one + 60));
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(spool->commit({batch_of(fmt::format("k{}", i))}, {}).is_ok());
  const BatchSpool::Totals totals = spool->totals();
  EXPECT_LE(totals.waiting_bytes, 3 * (one + 60));
  ASSERT_EQ(totals.shed.size(), 1U);
  EXPECT_EQ(totals.shed[0].cause, "spool_full");
  EXPECT_EQ(totals.shed[0].batches, 6 - totals.waiting);
  EXPECT_EQ(totals.shed[0].rows, 6 - totals.waiting);
  EXPECT_NE(read(*spool, *spool->next_to_send()).rows[0].kernel, "k0") << "the oldest goes first";
  // A restart keeps the totals that a commit has written.
  ASSERT_TRUE(spool->commit({batch_of("last")}, {}).is_ok());
  spool = open();
  EXPECT_GE(spool->totals().shed.at(0).batches, totals.shed[0].batches);
}

TEST_F(BatchSpoolTest, SequencesBeginAgainWithTheMachine) {
  ASSERT_TRUE(open("boot-1")->commit({batch_of("a")}, {}).is_ok());
  auto spool = open("boot-2");
  ASSERT_TRUE(spool->commit({batch_of("b")}, {}).is_ok());
  const auto first = spool->next_to_send();
  EXPECT_EQ(read(*spool, *first).boot, "boot-1");
  ASSERT_TRUE(spool->sent(*first).is_ok());
  EXPECT_EQ(read(*spool, *spool->next_to_send()).boot, "boot-2");
  EXPECT_EQ(read(*spool, *spool->next_to_send()).sequence, 1U);
}

TEST_F(BatchSpoolTest, ADamagedStateLosesNoBatchAndDoublesNone) {
  ASSERT_TRUE(open()->commit({batch_of("a")}, {{"file", {100}}}).is_ok());
  ASSERT_TRUE(write_atomic(join_path(root_, "state.json"), "{\"schema\": \"pur").is_ok());
  auto spool = open();
  EXPECT_TRUE(spool->was_lost());
  EXPECT_TRUE(spool->marks().empty());
  EXPECT_EQ(spool->totals().waiting, 1U);
  ASSERT_TRUE(spool->commit({batch_of("b")}, {}).is_ok());
  spool = open();
  EXPECT_FALSE(spool->was_lost());
  EXPECT_EQ(spool->totals().shed.at(0).cause, "state_lost");
  const auto first = spool->next_to_send();
  ASSERT_TRUE(spool->sent(*first).is_ok());
  EXPECT_NE(read(*spool, *spool->next_to_send()).boot, "boot-1");
}

TEST_F(BatchSpoolTest, ABuriedBatchIsKeptAside) {
  auto spool = open();
  ASSERT_TRUE(spool->commit({batch_of("a")}, {}).is_ok());
  const auto batch = spool->next_to_send();
  ASSERT_TRUE(spool->bury(*batch).is_ok());
  EXPECT_FALSE(spool->next_to_send());
  EXPECT_EQ(list_directory(join_path(root_, "dead")).value().size(), 1U);
  EXPECT_EQ(spool->totals().dead, 1U);
}

TEST_F(BatchSpoolTest, BytesThatADiskChangedAreNotSent) {
  auto spool = open();
  ASSERT_TRUE(spool->commit({batch_of("a")}, {}).is_ok());
  const auto batch = spool->next_to_send();
  ASSERT_TRUE(write_atomic(batch->path, "x").is_ok());
  EXPECT_EQ(spool->read(*batch).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace purlin::fleet
