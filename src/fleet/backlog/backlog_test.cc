// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "base/toml.h"
#include "fleet/api/backlog_api.h"
#include "fleet/backlog/fleet_tasks.h"
#include "fleet/backlog/lease_source.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

// A server without a network: each request goes to the endpoint that matches it.
class DirectHttp : public blobs::HttpClient {
 public:
  explicit DirectHttp(std::vector<Endpoint> all) { endpoints_.add(std::move(all)); }
  Result<blobs::HttpResponse> send(const blobs::HttpRequest& request) override {
    const std::string target = request.url.substr(request.url.find("/v1/"));
    const HttpHead head{request.method, target};
    const std::string body(request.body);
    PURLIN_ASSIGN(const Endpoints::Match match, endpoints_.find(request.method, target));
    if (match.endpoint == nullptr) return error(Code::kNotFound, "no {}", target);
    const HttpAnswer answer = match.endpoint->handle({head, body, match.path});
    blobs::HttpResponse response;
    response.status = answer.status;
    response.body = answer.body;
    return response;
  }

 private:
  Endpoints endpoints_;
};

class SharedBacklogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_directory("backlog");
    clock_.now_ns = 1'790'000'000'000'000'000;
    backlog::Leases leases = backlog::Leases::open(join_path(folder_, "leases.db")).value();
    std::vector<analysis::TuneTask> tasks(2);
    tasks[0].kernel = "gemm", tasks[0].shape = "M=1", tasks[0].gpu = "H100";
    tasks[0].launches = 100, tasks[0].gpu_s = 50, tasks[0].headroom = 0.4;
    tasks[1] = tasks[0];
    tasks[1].kernel = "softmax", tasks[1].gpu_s = 5, tasks[1].stale = true;
    ASSERT_TRUE(leases.put(fleet_tasks(tasks, "12.8", "580"), clock_.now_ns).is_ok());
    leases_ = std::make_unique<backlog::Leases>(std::move(leases));
    auto http = std::make_unique<DirectHttp>(backlog_endpoints(*leases_, clock_));
    source_ = open_lease_server(
                  ServerClient::open("http://127.0.0.1:1/", std::move(http), clock_).value())
                  .value();
  }
  void TearDown() override { static_cast<void>(remove_tree(folder_)); }

  std::string folder_;
  FakeClock clock_;
  std::unique_ptr<backlog::Leases> leases_;
  std::unique_ptr<LeaseSource> source_;
};

TEST_F(SharedBacklogTest, AWorkerTakesKeepsAndEndsATaskOverHttp) {
  const auto stale = source_->take("w", {"H100"}, 60);
  ASSERT_TRUE(stale.is_ok()) << stale.status().message();
  ASSERT_TRUE(stale->has_value());
  EXPECT_EQ((*stale)->ranked.task.key.kernel, "softmax");
  EXPECT_EQ((*stale)->ranked.task.key.kind, "retune");
  const std::string id = (*stale)->ranked.task.id();
  EXPECT_TRUE(source_->heartbeat(id, (*stale)->token, 60).is_ok());
  EXPECT_TRUE(source_->end(id, (*stale)->token, TaskEnd::kDone, "1.2x", 3).is_ok());
  const auto next = source_->take("w", {"H100"}, 60);
  ASSERT_TRUE(next.is_ok() && next->has_value());
  EXPECT_EQ((*next)->ranked.task.key.kernel, "gemm");
  EXPECT_NEAR((*next)->ranked.gpu_time_ns, 50e9, 1);
  EXPECT_FALSE(source_->take("w", {"H100"}, 60)->has_value());
  const std::string metrics = backlog_metrics(*leases_, clock_.now_ns);
  EXPECT_NE(metrics.find("purlin_backlog_tasks{state=\"done\"} 1\n"), std::string::npos);
  EXPECT_NE(metrics.find("purlin_tuning_gpu_seconds_today 3\n"), std::string::npos);
}

TEST_F(SharedBacklogTest, ALateResultIsRefusedOverHttp) {
  const auto dead = source_->take("dead", {}, 60);
  ASSERT_TRUE(dead.is_ok() && dead->has_value());
  clock_.now_ns += 61'000'000'000;
  ASSERT_TRUE(source_->take("alive", {}, 60)->has_value());
  const std::string id = (*dead)->ranked.task.id();
  EXPECT_EQ(source_->heartbeat(id, (*dead)->token, 60).code(), Code::kCancelled);
  EXPECT_EQ(source_->end(id, (*dead)->token, TaskEnd::kDone, "late", 1).code(), Code::kCancelled);
}

TEST(SuggestedSuite, QuotesNamesOfOtherMachines) {
  const std::string text = suggested_suite(
      "fleet", "2026-11-19",
      {{"kernels/gemm.toml", "M=512,N=512", "gemm\n[[items]]\nspec = \"/etc/passwd\"", 0.2},
       {"", "M=1", "other", 0.1, "no spec computes it\nspec = 1"}});
  const Result<Toml> toml = Toml::parse(text, "suite.toml");
  ASSERT_TRUE(toml.is_ok()) << toml.status().message();
  ASSERT_NE(toml->find("items"), nullptr);
  EXPECT_EQ(toml->find("items")->array()->size(), 1u);
}

}  // namespace
}  // namespace purlin::fleet
