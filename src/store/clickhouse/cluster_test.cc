// SPDX-License-Identifier: Apache-2.0
// A ClickHouse store over two servers: batches of a node are on one of them; a server that is gone
// fails questions and batches, and loses nothing.
#include "base/files.h"
#include "store/clickhouse/server_testing.h"
#include "store/testing.h"

#include <gtest/gtest.h>

#include <csignal>

namespace purlin::store {
namespace {

class ClickhouseCluster : public testing::Test {
 protected:
  void SetUp() override {
    second_ = std::make_unique<ClickhouseServer>(ClickhouseServer::Settings{0, ""});
    if (!second_->is_running()) GTEST_SKIP() << second_->why();
    if (second_->tcp_port() == 0) GTEST_SKIP() << "the server is another's";
    const int port = free_port();
    first_ = std::make_unique<ClickhouseServer>(ClickhouseServer::Settings{
        port, fmt::format("<remote_servers><fleet><shard><replica><host>127.0.0.1</host><port>{}"
                          "</port></replica></shard><shard><replica><host>127.0.0.1</host><port>{}"
                          "</port></replica></shard></fleet></remote_servers>",
                          port, second_->tcp_port())});
    ASSERT_TRUE(first_->is_running()) << first_->why();
    target_ = first_->database("fleet") + "?cluster=fleet";
    ASSERT_TRUE(init_store(target_).is_ok());
    // The second holds rows only: no store opens it.
    const Status made = init_store(second_->database("fleet"), StoreOptions());
    ASSERT_TRUE(made.is_ok()) << made.message();
    rename_tables();
    store_ = open_store(target_).value();
  }
  // Without the cluster's configuration the second server has tables under their plain names.
  void rename_tables() {
    Client client =
        Client::connect(parse_clickhouse_target(second_->database("fleet"), {}).value()).value();
    for (const char* table : {"dict", "hours", "days", "months", "folds", "source", "raw", "guard",
                              "quarantine", "too_old", "meta"}) {
      const Status renamed =
          client.execute(fmt::format("RENAME TABLE {{db}}.{0} TO {{db}}.{0}_local", table));
      ASSERT_TRUE(renamed.is_ok()) << renamed.message();
    }
  }
  double rows_of(ClickhouseServer& server) {
    Client client =
        Client::connect(parse_clickhouse_target(server.database("fleet"), {}).value()).value();
    return static_cast<double>(
        client.integer("SELECT toInt64(count()) FROM {db}.hours_local WHERE kernel > 1").value());
  }

  std::unique_ptr<ClickhouseServer> first_, second_;
  std::string target_;
  std::unique_ptr<Store> store_;
};

TEST_F(ClickhouseCluster, AShardThatIsLostAndReturnsLosesAndDoublesNothing) {
  MadeUpFleet fleet;
  double launches = 0;
  const auto send = [&](int node, std::uint64_t sequence) {
    fleet.random.seed(sequence);
    const HashedBatch one = hashed(fleet.batch(fmt::format("n{}", node), sequence, kMadeUpDayNs));
    const Result<Ingest> result = store_->ingest(one.hash, one.batch);
    if (result.is_ok() && *result == Ingest::kStored) launches += 8 * 3 * 2 * 5;
    return result;
  };
  for (int node = 0; node < 8; ++node) ASSERT_TRUE(send(node, 1).is_ok());
  EXPECT_EQ(store_->top({}, 1)->launches, launches);
  EXPECT_GT(rows_of(*first_), 0);
  EXPECT_GT(rows_of(*second_), 0);
  EXPECT_EQ(store_->nodes()->size(), 8U);
  ASSERT_TRUE(store_->compact().is_ok());
  EXPECT_EQ(store_->cells({}, {}, Step::kDay).value()[0].duration.count(), launches);

  second_->stop(SIGKILL);
  EXPECT_EQ(store_->top({}, 1).status().code(), Code::kUnavailable) << "half of it is no answer";
  int refused = 0;
  for (int node = 0; node < 8; ++node) refused += send(node, 2).is_ok() ? 0 : 1;
  EXPECT_GT(refused, 0);
  second_->start();
  ASSERT_TRUE(second_->is_running()) << second_->why();
  for (int node = 0; node < 8; ++node) {
    ASSERT_TRUE(send(node, 1).is_ok());
    ASSERT_TRUE(send(node, 2).is_ok());
  }
  EXPECT_EQ(store_->top({}, 1)->launches, 2 * 8 * 8 * 3 * 2 * 5);
  EXPECT_FALSE(store_->check()->damaged());
}

}  // namespace
}  // namespace purlin::store
