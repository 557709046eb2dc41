// SPDX-License-Identifier: Apache-2.0
// One suite for both engines.
#include "store/store.h"

#include "base/files.h"
#include "store/clickhouse/client.h"
#include "store/clickhouse/server_testing.h"
#include "store/sqlite/database.h"
#include "store/sqlite/folder.h"
#include "store/testing.h"

#include <gtest/gtest.h>

#include <map>

namespace purlin::store {
namespace {

enum class Engine { kSqlite, kClickhouse };

class StoreTest : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (GetParam() == Engine::kSqlite) {
      root_ = make_temporary_directory("purlin-store").value();
      target_ = root_ + "/store";
    } else {
      ClickhouseServer& server = ClickhouseServer::shared();
      if (server.is_missing()) GTEST_SKIP() << server.why();
      ASSERT_TRUE(server.is_running()) << server.why();
      target_ = server.new_database();
    }
    const Status made = init_store(target_);
    ASSERT_TRUE(made.is_ok()) << made.message();
    open();
  }
  void TearDown() override {
    store_.reset();
    ASSERT_TRUE(root_.empty() || remove_tree(root_).is_ok());
  }
  void open() {
    store_.reset();
    Result<std::unique_ptr<Store>> opened = open_store(target_);
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    store_ = std::move(*opened);
  }
  Ingest put(const HashedBatch& batch) {
    const std::vector<Result<Ingest>> results = store_->ingest_many({batch});
    EXPECT_TRUE(results[0].is_ok()) << results[0].status().message();
    return results[0].is_ok() ? *results[0] : Ingest::kTooOld;
  }
  // And keeps what it says, as the direct sketch.
  void put_and_count(const Batch& batch) {
    EXPECT_EQ(put(hashed(batch)), Ingest::kStored);
    for (const BatchRow& row : batch.rows) {
      direct_[row.kernel].merge(row.duration);
      all_.merge(row.duration);
    }
  }
  bool is_sqlite() const { return GetParam() == Engine::kSqlite; }

  std::string root_, target_;
  std::unique_ptr<Store> store_;
  MadeUpFleet fleet_;
  std::map<std::string, Sketch> direct_;
  Sketch all_;
};

void expect_same(const Sketch& read, Sketch direct) {
  direct.reduce_to(read.scale());
  EXPECT_EQ(read.count(), direct.count());
  EXPECT_EQ(read.total_ns(), direct.total_ns());
  EXPECT_EQ(read.first_bucket(), direct.first_bucket());
  EXPECT_EQ(read.buckets(), direct.buckets());
  const double error = 2.1 * Sketch::relative_error(read.scale());
  EXPECT_NEAR(read.min_ns(), direct.min_ns(), error * direct.min_ns());
  EXPECT_NEAR(read.max_ns(), direct.max_ns(), error * direct.max_ns());
}

TEST_P(StoreTest, AnswersWithWhatWasSent) {
  for (std::uint64_t i = 0; i < 5; ++i)
    for (const char* node : {"n1", "n2"})
      put_and_count(fleet_.batch(node, i, kMadeUpDayNs + static_cast<std::int64_t>(i) * kHourNs));
  const std::vector<Cell> one = store_->cells({}, {}).value();
  ASSERT_EQ(one.size(), 1U);
  expect_same(one[0].duration, all_);
  EXPECT_EQ(one[0].recorded, all_.count());
  const std::vector<Cell> kernels = store_->cells({}, {Dimension::kKernel}).value();
  ASSERT_EQ(kernels.size(), direct_.size());
  for (const Cell& cell : kernels) expect_same(cell.duration, direct_[cell.values[0]]);

  const TopKernels top = store_->top({}, 3).value();
  EXPECT_EQ(top.kernels_in_all, direct_.size());
  EXPECT_EQ(top.sum_ns, all_.total_ns());
  EXPECT_EQ(top.launches, all_.count());
  ASSERT_EQ(top.kernels.size(), 3U);
  EXPECT_EQ(top.kernels[0].kernel, "gemm_7<float>");
  EXPECT_EQ(top.kernels[0].raw_kernel, "_Z6gemm_7IfEvv");
  EXPECT_EQ(top.kernels[0].role, "mlp");
  const Sketch& direct = direct_["gemm_7<float>"];
  EXPECT_EQ(top.kernels[0].sum_ns, direct.total_ns());
  EXPECT_NEAR(top.kernels[0].p50_ns, direct.quantile(0.5), 0.006 * direct.quantile(0.5));
  EXPECT_NEAR(top.kernels[0].share, direct.total_ns() / all_.total_ns(), 1e-12);
}

TEST_P(StoreTest, ANewerSchemaIsRefusedAndKeptUnchanged) {
  put_and_count(fleet_.batch("n1", 1, kMadeUpDayNs));
  if (!is_sqlite()) {
    store_.reset();
    Client client = Client::connect(parse_clickhouse_target(target_, {}).value()).value();
    ASSERT_TRUE(client.execute("INSERT INTO {db}.meta VALUES ('schema', 99, 99)").is_ok());
    const Status opened = open_store(target_).status();
    EXPECT_EQ(opened.code(), Code::kCorrupt);
    EXPECT_NE(opened.message().find("newer Purlin"), std::string::npos) << opened.message();
    EXPECT_FALSE(migrate_store(target_).is_ok());
    EXPECT_FALSE(init_store(target_).is_ok());
    return;
  }
  // One day of a newer Purlin: the others go on, and no question leaves it out.
  put_and_count(fleet_.batch("n1", 2, kMadeUpDayNs + kDayNs));
  const std::string day = Folder(target_).path(Level::kHours, kMadeUpDayNs);
  const auto set_version = [](const std::string& path) {
    Database database = Database::open(path, Database::Mode::kWrite).value();
    ASSERT_TRUE(database.execute("PRAGMA user_version = 99").is_ok());
  };
  store_.reset();
  set_version(day);
  open();
  Filter other;
  other.begin_ns = kMadeUpDayNs + kDayNs;
  EXPECT_EQ(store_->top(other, 1)->launches, all_.count() / 2);
  for (const Status& status :
       {store_->top({}, 1).status(),
        store_->ingest_many({hashed(fleet_.batch("n1", 3, kMadeUpDayNs))})[0].status()}) {
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_NE(status.message().find(day + ": its schema has version 99, written by a newer"),
              std::string::npos)
        << status.message();
  }
  EXPECT_EQ(put(hashed(fleet_.batch("n1", 4, kMadeUpDayNs + kDayNs))), Ingest::kStored);
  EXPECT_TRUE(store_->check()->damaged());
  store_.reset();
  EXPECT_FALSE(migrate_store(target_).is_ok());
  set_version(Folder(target_).catalog());
  const Status opened = open_store(target_).status();
  EXPECT_NE(opened.message().find("newer Purlin; update this one"), std::string::npos)
      << opened.message();
}

TEST_P(StoreTest, CountsABatchOnce) {
  const HashedBatch batch = hashed(fleet_.batch("n1", 1, kMadeUpDayNs));
  EXPECT_EQ(put(batch), Ingest::kStored);
  EXPECT_EQ(put(batch), Ingest::kDuplicate);
  open();
  EXPECT_EQ(put(batch), Ingest::kDuplicate);
  const std::vector<Result<Ingest>> twice =
      store_->ingest_many({hashed(fleet_.batch("n1", 2, kMadeUpDayNs)), batch,
                           hashed(fleet_.batch("n2", 1, kMadeUpDayNs)), batch});
  EXPECT_EQ(*twice[0], Ingest::kStored);
  EXPECT_EQ(*twice[1], Ingest::kDuplicate);
  EXPECT_EQ(*twice[2], Ingest::kStored);
  const double rows = 8 * 3 * 2;
  EXPECT_EQ(store_->top({}, 1)->launches, 3 * rows * 5);
  const HashedBatch again = hashed(fleet_.batch("n3", 1, kMadeUpDayNs));
  const std::vector<Result<Ingest>> pair = store_->ingest_many({again, again});
  EXPECT_EQ(*pair[0], Ingest::kStored);
  EXPECT_EQ(*pair[1], Ingest::kDuplicate) << "twice in one group";
  EXPECT_EQ(store_->top({}, 1)->launches, 4 * rows * 5);
}

TEST_P(StoreTest, FiltersByEveryDimension) {
  put_and_count(fleet_.batch("n1", 1, kMadeUpDayNs));
  fleet_.build = "b2", fleet_.driver = "590.2", fleet_.model = "AMD Instinct MI300X",
  fleet_.job = "12";
  put_and_count(fleet_.batch("n2", 1, kMadeUpDayNs + kHourNs));
  const auto launches = [&](const Filter& filter) { return store_->top(filter, 1)->launches; };
  const double of_batch = 8 * 3 * 2 * 5;
  const std::pair<Dimension, std::pair<const char*, double>> asked[] = {
      {Dimension::kKernel, {"gemm_3<float>", of_batch / 4}},
      {Dimension::kRaw, {"_Z6gemm_3IfEvv", of_batch / 4}},
      {Dimension::kRole, {"attention", of_batch}},
      {Dimension::kOp, {"gemm", 2 * of_batch}},
      {Dimension::kShape, {"m=2,n=64,k=32", 2 * of_batch / 3}},
      {Dimension::kDtype, {"bf16", 2 * of_batch}},
      {Dimension::kModel, {"NVIDIA H200", of_batch}},
      {Dimension::kMig, {"", 2 * of_batch}},
      {Dimension::kDriver, {"590.2", of_batch}},
      {Dimension::kRuntime, {"CUDA 13.0", 2 * of_batch}},
      {Dimension::kBuild, {"b2", of_batch}},
      {Dimension::kJob, {"slurm 4711", of_batch}},
      {Dimension::kNode, {"n2", of_batch}},
      {Dimension::kGpu, {"GPU-n2-1", of_batch / 2}},
      {Dimension::kBuild, {"b3' OR '1'='1", 0}},
  };
  for (const auto& [dimension, want] : asked) {
    Filter filter;
    filter[dimension] = want.first;
    EXPECT_EQ(launches(filter), want.second) << name_of(dimension) << " " << want.first;
  }
  Filter later;
  later.begin_ns = kMadeUpDayNs + kHourNs;
  EXPECT_EQ(launches(later), of_batch);
  Filter before;
  before.end_ns = kMadeUpDayNs + kHourNs;
  EXPECT_EQ(launches(before), of_batch);
  before[Dimension::kBuild] = "b2";
  EXPECT_EQ(launches(before), 0);
  EXPECT_EQ(store_->values(Dimension::kModel, {}).value(),
            (std::vector<std::string>{"AMD Instinct MI300X", "NVIDIA H200"}));
  EXPECT_EQ(store_->values(Dimension::kJob, later).value(), std::vector<std::string>{"slurm 12"});
  EXPECT_EQ(store_->values(Dimension::kGpu, {})->size(), 4U);
  const std::vector<Cell> cells =
      store_->cells({}, {Dimension::kBuild, Dimension::kDriver}, Step::kHour).value();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[1].values, (std::vector<std::string>{"b2", "590.2"}));
  EXPECT_EQ(cells[1].begin_ns, kMadeUpDayNs + kHourNs);
}

TEST_P(StoreTest, DaysAndMonthsEqualDirectSketches) {
  std::map<std::int64_t, Sketch> days, months;
  const auto put_at = [&](std::int64_t begin, std::uint64_t sequence) {
    const Batch batch = fleet_.batch("n1", sequence, begin);
    put_and_count(batch);
    for (const BatchRow& row : batch.rows) {
      days[begin / kDayNs].merge(row.duration);
      months[begin < kMadeUpDayNs + 10 * kDayNs ? 0 : 1].merge(row.duration);
    }
  };
  std::uint64_t sequence = 0;
  for (const int day : {0, 1, 10, 11, 12})
    for (const int hour : {0, 5, 23})
      put_at(kMadeUpDayNs + day * kDayNs + hour * kHourNs, ++sequence);
  const auto check = [&](const std::string& when) {
    const std::vector<Cell> by_day = store_->cells({}, {}, Step::kDay).value();
    ASSERT_EQ(by_day.size(), days.size()) << when;
    for (const Cell& cell : by_day) {
      EXPECT_EQ(cell.duration.scale(), 6) << when;
      expect_same(cell.duration, days[cell.begin_ns / kDayNs]);
    }
    const std::vector<Cell> by_month = store_->cells({}, {}, Step::kMonth).value();
    ASSERT_EQ(by_month.size(), 2U) << when;
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(by_month[i].duration.scale(), 5) << when;
      expect_same(by_month[i].duration, months[static_cast<std::int64_t>(i)]);
    }
    const std::vector<Cell> all = store_->cells({}, {}).value();
    ASSERT_EQ(all.size(), 1U) << when;
    expect_same(all[0].duration, all_);
  };
  check("before compact");
  ASSERT_TRUE(store_->compact().is_ok());
  check("after compact");
  put_at(kMadeUpDayNs + kDayNs + 7 * kHourNs, ++sequence);
  check("with a late batch");
  ASSERT_TRUE(store_->compact().is_ok());
  ASSERT_TRUE(store_->compact().is_ok());
  check("compacted again");
  const Status expired = store_->expire(kMadeUpDayNs + 11 * kDayNs + 5 * kHourNs);
  ASSERT_TRUE(expired.is_ok()) << expired.message();
  check("with hours removed");
  EXPECT_EQ(put(hashed(fleet_.batch("n1", 99, kMadeUpDayNs + kDayNs))), Ingest::kTooOld);
  const std::vector<Cell> hours = store_->cells({}, {}, Step::kHour).value();
  EXPECT_EQ(hours.size(), 6U);
  open();
  check("opened again");
  const StoreCheck checked = store_->check().value();
  EXPECT_FALSE(checked.damaged());
}

TEST_P(StoreTest, ABatchMaySpanMidnight) {
  Batch batch = fleet_.batch("n1", 1, kMadeUpDayNs + kDayNs - 5'000'000'000);
  const std::size_t rows = batch.rows.size();
  for (std::size_t i = 0; i < rows / 2; ++i) batch.rows[i].hour_ns = kMadeUpDayNs + kDayNs;
  put_and_count(batch);
  EXPECT_EQ(put(hashed(batch)), Ingest::kDuplicate);
  expect_same(store_->cells({}, {}).value()[0].duration, all_);
  EXPECT_EQ(store_->cells({}, {}, Step::kDay)->size(), 2U);
  const std::vector<NodeState> nodes = store_->nodes().value();
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].batches, 1U);
}

TEST_P(StoreTest, KnowsItsNodes) {
  for (const std::uint64_t sequence : {5, 6, 9}) {
    Batch batch = fleet_.batch("n1", sequence,
                               kMadeUpDayNs + static_cast<std::int64_t>(sequence) * 10'000'000'000);
    batch.skew_ns = 1000;
    batch.shed = {{"spool_full", sequence, 0, 7}};
    batch.spool = {sequence << 20, 256 << 20};
    EXPECT_EQ(put(hashed(batch)), Ingest::kStored);
  }
  const std::vector<NodeState> nodes = store_->nodes().value();
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].node, "n1");
  EXPECT_EQ(nodes[0].boot, "boot-n1");
  EXPECT_EQ(nodes[0].first_sequence, 5U);
  EXPECT_EQ(nodes[0].last_sequence, 9U);
  EXPECT_EQ(nodes[0].batches, 3U);
  EXPECT_EQ(nodes[0].missing, 2U);
  EXPECT_EQ(nodes[0].skew_ns, 1000);
  EXPECT_EQ(nodes[0].tool_version, "0.1.0");
  EXPECT_EQ(nodes[0].collector_rss_bytes, std::uint64_t{30} << 20);
  EXPECT_EQ(nodes[0].collector_cpu_ns, 3e6);
  ASSERT_EQ(nodes[0].shed.size(), 1U);
  EXPECT_EQ(nodes[0].shed[0], (BatchShed{"spool_full", 9, 0, 7}));
  EXPECT_EQ(nodes[0].spool, (SpoolFill{9 << 20, 256 << 20}));
  // An older collector does not state it.
  Batch batch = fleet_.batch("n2", 1, kMadeUpDayNs);
  EXPECT_EQ(put(hashed(batch)), Ingest::kStored);
  EXPECT_EQ(store_->nodes().value().at(1).spool, SpoolFill());
}

TEST_P(StoreTest, KeepsBatchesOfAWrongClockApart) {
  const Batch good = fleet_.batch("n1", 1, kMadeUpDayNs + 10 * kHourNs);
  put_and_count(good);
  Batch skewed = fleet_.batch("n2", 1, kMadeUpDayNs + 7 * kHourNs);
  const HashedBatch sent = [&] {
    HashedBatch batch = hashed(skewed);
    batch.batch.skew_ns = 3 * kHourNs + 5'000'000'000;
    return batch;
  }();
  EXPECT_EQ(put(sent), Ingest::kQuarantined);
  EXPECT_EQ(put(sent), Ingest::kDuplicate);
  EXPECT_EQ(store_->top({}, 1)->launches, all_.count());
  const std::vector<NodeState> nodes = store_->nodes().value();
  EXPECT_EQ(nodes.size(), 2U);
  for (const NodeState& node : nodes) {
    EXPECT_EQ(node.quarantined, node.node == "n2" ? 1U : 0U);
  }
  EXPECT_EQ(store_->release("n1").value(), 0U);
  EXPECT_EQ(store_->release("n2").value(), 1U);
  EXPECT_EQ(store_->release("").value(), 0U);
  EXPECT_EQ(store_->top({}, 1)->launches, 2 * all_.count());
  EXPECT_EQ(store_->cells({}, {}, Step::kHour)->size(), 1U) << "its hour was put right";
}

TEST_P(StoreTest, AddsUpCoverage) {
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(put(hashed(fleet_.batch(
                  "n1", i, kMadeUpDayNs + static_cast<std::int64_t>(i) * 10'000'000'000))),
              Ingest::kStored);
  for (const Step step : {Step::kHour, Step::kAll}) {
    const std::vector<CoverageCell> cells = store_->coverage({}, step).value();
    ASSERT_EQ(cells.size(), 2U);
    EXPECT_EQ(cells[0].gpu, "GPU-n1-0");
    EXPECT_EQ(cells[0].node, "n1");
    EXPECT_EQ(cells[0].model, "NVIDIA H200");
    EXPECT_EQ(cells[0].busy_ns, 24e9);
    EXPECT_EQ(cells[0].seen_ns, 27e9);
    EXPECT_EQ(cells[0].launches_seen, 300);
    EXPECT_EQ(cells[0].launches_lost, 3);
    EXPECT_EQ(cells[0].launches_sampled_out, 6);
    EXPECT_EQ(cells[0].overhead_ns, 3e6);
    EXPECT_EQ(cells[0].why, "");
    EXPECT_EQ(cells[1].why, "stood_aside");
  }
  ASSERT_TRUE(store_->compact().is_ok());
  const std::vector<CoverageCell> days = store_->coverage({}, Step::kDay).value();
  ASSERT_EQ(days.size(), 2U);
  EXPECT_EQ(days[0].busy_ns, 24e9);
  EXPECT_EQ(days[0].gpu, "");
  Filter other;
  other[Dimension::kGpu] = "GPU-n1-1";
  EXPECT_EQ(store_->coverage(other, Step::kAll)->size(), 1U);
}

TEST_P(StoreTest, KeepsRawPointersAndGuardResults) {
  Batch batch = fleet_.batch("n1", 1, kMadeUpDayNs);
  batch.raws = {{std::string(64, 'a'), 10, batch.begin_ns, batch.end_ns, "profile", 0, ""},
                {std::string(64, 'b'), 20, batch.begin_ns + 5, batch.end_ns, "exemplar", 0, "k"}};
  EXPECT_EQ(put(hashed(batch)), Ingest::kStored);
  const std::vector<RawInfo> raws = store_->raws({}).value();
  ASSERT_EQ(raws.size(), 2U);
  EXPECT_EQ(raws[0].pointer, batch.raws[1]);
  EXPECT_EQ(raws[0].node, "n1");
  EXPECT_EQ(raws[0].job, "slurm 4711");
  EXPECT_TRUE(store_->keep_raw(std::string(64, 'b'), 77, "hour").is_ok());
  EXPECT_EQ(store_->raws({}).value()[0].keep_until_ns, 77);
  EXPECT_EQ(store_->raws({}).value()[0].kept_for, "hour");
  EXPECT_EQ(store_->keep_raw(std::string(64, 'c'), 77, "hour").code(), Code::kNotFound);
  EXPECT_TRUE(store_->forget_raw(std::string(64, 'a')).is_ok());
  EXPECT_EQ(store_->raws({})->size(), 1U);

  const GuardResult result = {"id1",        5,
                              "suite",      "regression",
                              "b1",         "NVIDIA H200",
                              {"k1", "k2"}, R"({"schema": "purlin.guard/1"})"};
  EXPECT_TRUE(store_->put_guard(result).is_ok());
  EXPECT_TRUE(store_->put_guard(result).is_ok());
  GuardResult later = result;
  later.id = "id2", later.time_ns = 6, later.kernels = {"k2"};
  EXPECT_TRUE(store_->put_guard(later).is_ok());
  EXPECT_EQ(store_->guard_history("k1", 10)->size(), 1U);
  const std::vector<GuardResult> both = store_->guard_history("k2", 10).value();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].id, "id2");
  EXPECT_EQ(both[1].document, result.document);
  EXPECT_EQ(both[1].kernels, result.kernels);
  EXPECT_EQ(store_->guard_history("", 1)->size(), 1U);
}

TEST_P(StoreTest, HostileNamesComeBackAsTheyAre) {
  Batch batch = fleet_.batch("n1", 1, kMadeUpDayNs);
  batch.rows.resize(4);
  const std::string names[] = {"a\tb", "a'; DROP TABLE dict; --", "\\x \\t \n",
                               std::string("n\0l\xff", 4)};
  for (std::size_t i = 0; i < 4; ++i) batch.rows[i].kernel = names[i];
  EXPECT_EQ(put(hashed(batch)), Ingest::kStored);
  EXPECT_EQ(store_->values(Dimension::kKernel, {})->size(), 4U);
  for (const std::string& name : names) {
    Filter filter;
    filter[Dimension::kKernel] = name;
    const TopKernels top = store_->top(filter, 5).value();
    ASSERT_EQ(top.kernels.size(), 1U) << name;
    EXPECT_EQ(top.kernels[0].kernel, name);
  }
}

TEST_P(StoreTest, ReadersSeeWhatIsStored) {
  const std::unique_ptr<Reader> reader = store_->reader().value();
  EXPECT_EQ(reader->top({}, 1)->launches, 0);
  put_and_count(fleet_.batch("n1", 1, kMadeUpDayNs));
  EXPECT_EQ(reader->top({}, 1)->launches, all_.count());
  fleet_.kernels = 12;
  put_and_count(fleet_.batch("n1", 2, kMadeUpDayNs));
  EXPECT_EQ(reader->top({}, 1)->launches, all_.count());
  EXPECT_TRUE(!is_sqlite() || open_store(target_).status().code() == Code::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreTest, testing::Values(Engine::kSqlite, Engine::kClickhouse),
                         [](const auto& engine) {
                           return engine.param == Engine::kSqlite ? "Sqlite" : "Clickhouse";
                         });

TEST(OpenStore, SaysWhatIsMissing) {
  for (const char* target : {"s3://bucket/x", "file:///tmp/x", "://"}) {
    EXPECT_EQ(init_store(target).code(), Code::kInvalid) << target;
    EXPECT_EQ(open_store(target).status().code(), Code::kInvalid) << target;
  }
  const Status status = open_store("/nonexistent/store").status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("purlin store init"), std::string::npos);
}

}  // namespace
}  // namespace purlin::store
