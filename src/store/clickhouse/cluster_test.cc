// SPDX-License-Identifier: Apache-2.0
// A ClickHouse store over two servers: batches of a node are on one of them; a server that is gone
// fails questions and batches, and loses nothing. With two replicas, the other one answers.
#include "base/files.h"
#include "store/clickhouse/server_testing.h"
#include "store/testing.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <unistd.h>

namespace purlin::store {
namespace {

class ClickhouseCluster : public testing::Test {
 protected:
  void SetUp() override {
    second_ = std::make_unique<ClickhouseServer>(ClickhouseServer::Settings{0, ""});
    if (second_->is_missing()) GTEST_SKIP() << second_->why();
    ASSERT_TRUE(second_->is_running()) << second_->why();
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

// ZooKeeper of Debian's package, on loopback, for as long as the object lives.
class ZooKeeper {
 public:
  ZooKeeper() : root_(make_temporary_directory("purlin-zookeeper").value()), port_(free_port()) {
    EXPECT_TRUE(write_atomic(root_ + "/zoo.cfg",
                             fmt::format("tickTime=500\ndataDir={}\nclientPort={}\n"
                                         "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n",
                                         root_, port_))
                    .is_ok());
    Process::Options options;
    options.argv = {"java",
                    "-Xmx128m",
                    "-cp",
                    "/usr/share/java/zookeeper.jar",
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    root_ + "/zoo.cfg"};
    options.out = options.err = Process::Stream::kNull;
    Result<Process> process = Process::start(options);
    if (process.is_ok()) process_.emplace(std::move(process).value());
  }
  ~ZooKeeper() {
    if (process_) {
      process_->kill(SIGKILL);
      process_->wait(60);
    }
    (void)remove_tree(root_).is_ok();
  }
  int port() const { return port_; }

 private:
  const std::string root_;
  const int port_;
  std::optional<Process> process_;
};

// One shard with two replicas. Slow: with PURLIN_TEST_REPLICAS=1 and the package zookeeper.
class ClickhouseReplicas : public testing::Test {
 protected:
  void SetUp() override {
    if (environment_variable("PURLIN_TEST_REPLICAS") != "1" ||
        !file_exists("/usr/share/java/zookeeper.jar"))
      GTEST_SKIP() << "PURLIN_TEST_REPLICAS=1 and the package zookeeper";
    zookeeper_ = std::make_unique<ZooKeeper>();
    const int ports[] = {free_port(), free_port()};
    std::string replicas;
    for (const int port : ports)
      replicas += fmt::format("<replica><host>127.0.0.1</host><port>{}</port></replica>", port);
    for (int i = 0; i < 2; ++i) {
      servers_[i] = std::make_unique<ClickhouseServer>(ClickhouseServer::Settings{
          ports[i],
          fmt::format("<interserver_http_port>{}</interserver_http_port><interserver_http_host>"
                      "127.0.0.1</interserver_http_host><zookeeper><node><host>127.0.0.1</host>"
                      "<port>{}</port></node></zookeeper><macros><shard>1</shard><replica>r{}"
                      "</replica></macros><remote_servers><fleet><shard><internal_replication>true"
                      "</internal_replication>{}</shard></fleet></remote_servers>",
                      free_port(), zookeeper_->port(), i, replicas)});
      if (servers_[i]->is_missing()) GTEST_SKIP() << servers_[i]->why();
      ASSERT_TRUE(servers_[i]->is_running()) << servers_[i]->why();
      Status made;  // ZooKeeper takes some seconds to start
      EXPECT_TRUE(wait_for([&] { return (made = init_store(target(i))).is_ok(); }))
          << made.message();
    }
  }
  std::string target(int i) const { return servers_[i]->database("fleet") + "?cluster=fleet"; }
  static double launches_at(const std::string& target) {
    const Result<std::unique_ptr<Reader>> reader = open_reader(target);
    const Result<TopKernels> top =
        reader.is_ok() ? (*reader)->top({}, 1) : Result<TopKernels>(reader.status());
    return top.is_ok() ? top->launches : -1;
  }
  double rows_of(int i) {
    Client client =
        Client::connect(parse_clickhouse_target(servers_[i]->database("fleet"), {}).value())
            .value();
    return static_cast<double>(
        client.integer("SELECT toInt64(count()) FROM {db}.hours_local WHERE kernel > 1").value());
  }
  template <class Done>
  static bool wait_for(Done done) {
    for (int i = 0; i < 600; ++i, ::usleep(100'000))
      if (done()) return true;
    return false;
  }
  std::unique_ptr<ZooKeeper> zookeeper_;
  std::unique_ptr<ClickhouseServer> servers_[2];
};

TEST_F(ClickhouseReplicas, OneThatIsLostIsReplacedAndCatchesUp) {
  MadeUpFleet fleet;
  const double batch = 8 * 3 * 2 * 5;
  std::vector<HashedBatch> batches;
  for (std::uint64_t i = 0; i < 12; ++i)
    batches.push_back(hashed(fleet.batch(fmt::format("n{}", i % 3), i, kMadeUpDayNs)));
  const auto send = [&](int server, std::size_t from, std::size_t to, Ingest wanted) {
    const std::unique_ptr<Store> store = open_store(target(server)).value();
    for (std::size_t i = from; i < to; ++i) {
      const Result<Ingest> result = store->ingest(batches[i].hash, batches[i].batch);
      ASSERT_TRUE(result.is_ok()) << result.status().message();
      EXPECT_EQ(*result, wanted);
    }
  };
  send(0, 0, 6, Ingest::kStored);
  EXPECT_TRUE(wait_for([&] { return rows_of(0) == rows_of(1) && rows_of(1) > 0; }));
  ASSERT_TRUE(wait_for([&] { return launches_at(target(1)) == 6 * batch; }))
      << open_reader(target(1)).status().message();
  servers_[0]->stop(SIGKILL);
  EXPECT_EQ(launches_at(target(1)), 6 * batch) << "the other replica has all of it";
  send(1, 4, 6, Ingest::kDuplicate);
  send(1, 6, 12, Ingest::kStored);
  EXPECT_EQ(launches_at(target(1)), 12 * batch);
  servers_[0]->start();
  ASSERT_TRUE(servers_[0]->is_running()) << servers_[0]->why();
  EXPECT_TRUE(wait_for([&] { return launches_at(target(0)) == 12 * batch; }));
  EXPECT_TRUE(wait_for([&] { return rows_of(0) == rows_of(1); }));
  send(0, 0, 12, Ingest::kDuplicate);
  const std::unique_ptr<Store> store = open_store(target(0)).value();
  ASSERT_TRUE(store->compact().is_ok());
  EXPECT_EQ(store->cells({}, {}, Step::kDay).value()[0].duration.count(), 12 * batch);
  EXPECT_FALSE(store->check()->damaged());
}

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
  const Status half = store_->top({}, 1).status();
  EXPECT_EQ(half.code(), Code::kUnavailable) << "half of it is no answer";
  EXPECT_NE(half.message().find("a shard of the cluster is missing"), std::string::npos)
      << half.message();
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
