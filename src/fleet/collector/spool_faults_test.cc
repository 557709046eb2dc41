// SPDX-License-Identifier: Apache-2.0
// What a power cut leaves of a collector's spools: at each sync and rename, what was not synced is
// dropped, the spool is opened again and compared with a ledger.
#include "base/file_faults_testing.h"
#include "base/files.h"
#include "base/sha256.h"
#include "fleet/collector/batch_spool.h"
#include "fleet/collector/raw_spool.h"

#include <gtest/gtest.h>

#include <set>

namespace purlin::fleet {
namespace {

constexpr std::uint64_t kBytesOfARead = 100;

store::Batch batch_of_read(std::uint64_t n) {
  store::Batch batch;
  batch.node = "gpu07";
  batch.begin_ns = 1'700'000'000'000'000'000;
  batch.end_ns = batch.sent_ns = batch.begin_ns + 10'000'000'000;
  batch.devices = {{.uuid = "GPU-1", .model = "NVIDIA H200"}};
  batch.runs = {store::BatchRun{}};
  store::BatchRow row;
  row.hour_ns = batch.begin_ns / 3'600'000'000'000 * 3'600'000'000'000;
  row.kernel = std::to_string(n);
  row.duration.add(1000);
  row.recorded = 1;
  batch.rows.push_back(row);
  return batch;
}

class SpoolFaults : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-spool-faults").value();
    spool_ = join_path(root_, "spool");
    ASSERT_TRUE(make_directories_durably(spool_).is_ok());
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  // Calls `check` with the folder that each power cut would leave; returns how many there were.
  template <typename Work, typename Check>
  int cut_everywhere(const Work& work, const Check& check) {
    int cuts = 0;
    DroppingDisk disk(spool_);
    const auto cut = [&](const std::function<bool()>& kept) {
      const std::string copy = join_path(root_, "cut" + std::to_string(++cuts));
      disk.cut_power(copy, kept);
      check(copy, "power cut " + std::to_string(cuts));
      EXPECT_TRUE(remove_tree(copy).is_ok());
    };
    std::uint64_t coin = 1;
    disk.at_each_point = [&] {
      cut({});
      for (int i = 0; i < 2; ++i)
        cut([&] {
          return ((coin = coin * 6364136223846793005U + 1442695040888963407U) >> 63) != 0;
        });
    };
    work();
    disk.at_each_point();
    return cuts;
  }
  static std::uint64_t number_in(const std::string& bytes) {
    return std::stoull(store::decode(bytes).value().rows.at(0).kernel);
  }
  std::string root_, spool_;
};

TEST_F(SpoolFaults, EachLaunchIsReadAgainOrInABatchAfterAPowerCut) {
  std::set<std::uint64_t> committed, delivered;
  const auto work = [&] {
    auto spool = BatchSpool::open({spool_}, "boot").value();
    for (std::uint64_t n = 0; n < 6; ++n) {
      ASSERT_TRUE(spool->commit({batch_of_read(n)}, {{"file", {(n + 1) * kBytesOfARead}}}).is_ok());
      committed.insert(n);
      if (n % 3 == 0) continue;
      const WaitingBatch batch = *spool->next_to_send();
      if (n % 3 == 1) delivered.insert(number_in(spool->read(batch).value()));
      ASSERT_TRUE((n % 3 == 1 ? spool->sent(batch) : spool->bury(batch)).is_ok());
    }
  };
  const auto check = [&](const std::string& copy, const std::string& where) {
    auto spool = BatchSpool::open({copy}, "boot").value();
    EXPECT_FALSE(spool->was_lost()) << where;
    std::set<std::uint64_t> here = delivered;
    const std::string dead = join_path(copy, "dead");
    const std::vector<std::string> names = list_directory(dead).value();
    for (const std::string& name : names)
      here.insert(number_in(read_file(join_path(dead, name)).value()));
    while (const auto batch = spool->next_to_send()) {
      here.insert(number_in(spool->read(*batch).value()));
      ASSERT_TRUE(spool->sent(*batch).is_ok());
    }
    const auto mark = spool->marks().find("file");
    const std::uint64_t read =
        mark == spool->marks().end() ? 0 : mark->second.offset / kBytesOfARead;
    EXPECT_GE(read, committed.size()) << where << ": a commit is lost";
    EXPECT_EQ(here.size(), read) << where << ": a batch is lost, or was read twice";
    EXPECT_TRUE(here.empty() || *here.rbegin() < read) << where;
  };
  EXPECT_GT(cut_everywhere(work, check), 60);
}

TEST_F(SpoolFaults, ARawThatWasTakenWaitsOrHasArrivedAfterAPowerCut) {
  std::set<std::string> taken, delivered, named;
  const auto work = [&] {
    RawSpoolOptions options;
    options.directory = spool_;
    auto spool = RawSpool::open(options).value();
    for (int n = 0; n < 4; ++n) {
      RawCapture raw;
      raw.pointer.kind = "profile";
      raw.pointer.end_ns = n * 3'600'000'000'000;
      const std::string bytes = "capture " + std::to_string(n);
      ASSERT_TRUE(spool->add(bytes, raw).is_ok());
      taken.insert(sha256_hex(bytes));
      if (n % 2 == 0) continue;
      const RawCapture next = *spool->next_to_send();
      ASSERT_TRUE(spool->read(next).is_ok());
      delivered.insert(next.pointer.sha256);
      ASSERT_TRUE(spool->sent(next).is_ok());
      if (n < 3) continue;
      named.insert(next.pointer.sha256);  // a batch that is committed names it
      spool->forget({next});
    }
  };
  const auto check = [&](const std::string& copy, const std::string& where) {
    RawSpoolOptions options;
    options.directory = copy;
    auto spool = RawSpool::open(options).value();
    std::set<std::string> here = named;
    for (const RawCapture& raw : spool->pointers()) {
      EXPECT_EQ(delivered.count(raw.pointer.sha256), 1U) << where << ": a pointer without object";
      here.insert(raw.pointer.sha256);
    }
    while (const auto raw = spool->next_to_send()) {
      EXPECT_TRUE(spool->read(*raw).is_ok()) << where;
      here.insert(raw->pointer.sha256);
      ASSERT_TRUE(spool->sent(*raw).is_ok());
    }
    for (const std::string& hash : taken) EXPECT_EQ(here.count(hash), 1U) << where << ": lost";
  };
  EXPECT_GT(cut_everywhere(work, check), 40);
}

}  // namespace
}  // namespace purlin::fleet
