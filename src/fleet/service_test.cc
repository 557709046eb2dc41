// SPDX-License-Identifier: Apache-2.0
#include "fleet/service.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-service").value();
    api_.emplace(CacheApi::open({root_, 0}).value());
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void open(const std::string& tokens) {
    ServiceOptions options;
    if (!tokens.empty()) options.tokens = Tokens::parse(tokens, "t").value();
    service_.emplace(std::move(options), *api_, log_, clock_);
  }
  // The status of the refusal, or of the answer.
  int ask(const std::string& method, const std::string& target, const std::string& token = "",
          const std::string& host = "127.0.0.1:8717") {
    HttpHead head{method, target};
    head.headers = {{"host", host}, {"if-none-match", "*"}};
    if (!token.empty()) head.headers.emplace_back("authorization", "Bearer " + token);
    last_ = service_->refuse(head).value_or(HttpAnswer{});
    if (last_.body.empty()) last_ = service_->answer(head, "a");
    return last_.status;
  }
  static constexpr char kObject[] = "/v1/caches/team/objects/probe-1";

  std::string root_;
  Log log_{Level::kSilent};
  FakeClock clock_;
  std::optional<CacheApi> api_;
  std::optional<Service> service_;
  HttpAnswer last_;
};

TEST_F(ServiceTest, TokensDecideBeforeAnythingIsRead) {
  open("write 0123456789abcdef ci\nread fedcba9876543210 fleet\n");
  for (const char* none : {"", "0123456789abcdeX"}) {
    EXPECT_EQ(ask("GET", kObject, none), 401) << none;
    EXPECT_EQ(last_.headers.at(0).first, "WWW-Authenticate");
    EXPECT_EQ(ask("PUT", kObject, none), 401);
    EXPECT_EQ(ask("GET", "/metrics", none), 401);
    EXPECT_EQ(ask("GET", "/no/such/path", none), 401) << "nor is it told what paths there are";
  }
  EXPECT_EQ(ask("GET", "/healthz"), 200);
  EXPECT_EQ(ask("PUT", kObject, "fedcba9876543210"), 403);
  EXPECT_NE(last_.body.find("'fleet' may read, not write"), std::string::npos);
  EXPECT_EQ(ask("DELETE", kObject, "fedcba9876543210"), 403);
  EXPECT_EQ(ask("PUT", kObject, "0123456789abcdef"), 201);
  EXPECT_EQ(ask("GET", kObject, "fedcba9876543210"), 200);
  EXPECT_EQ(last_.body, "a");
  EXPECT_EQ(ask("GET", "/no/such/path", "fedcba9876543210"), 404);
  EXPECT_EQ(ask("DELETE", kObject, "0123456789abcdef"), 200);
}

// A page in a browser that calls this machine by a name of its own must not get in.
TEST_F(ServiceTest, WithoutTokensItIsAskedForByItsAddress) {
  open("");
  for (const char* host :
       {"127.0.0.1:8717", "127.0.0.1", "localhost:8717", "localhost", "[::1]:8717"})
    EXPECT_EQ(ask("GET", "/v1/caches", "", host), 200) << host;
  for (const char* host : {"evil.example:8717", "evil.example", "127.0.0.1.evil.example", ""})
    EXPECT_EQ(ask("GET", "/v1/caches", "", host), 421) << host;
  open("read fedcba9876543210 fleet\n");
  EXPECT_EQ(ask("GET", "/v1/caches", "fedcba9876543210", "build7.corp:8717"), 200);
}

TEST_F(ServiceTest, MetricsCountWhatWasAsked) {
  open("");
  service_->watch([] {
    HttpServerCounts counts;
    counts.open = 3;
    return counts;
  });
  ask("PUT", kObject);
  ask("PUT", kObject);
  ask("GET", "/nowhere");
  EXPECT_EQ(ask("GET", "/metrics"), 200);
  for (const char* line : {"purlin_http_requests_total{kind=\"put_object\",status=\"201\"} 1\n",
                           "purlin_http_requests_total{kind=\"put_object\",status=\"412\"} 1\n",
                           "purlin_http_requests_total{kind=\"refused\",status=\"404\"} 1\n",
                           "purlin_http_connections 3\n", "purlin_cache_stored_bytes 0\n"})
    EXPECT_NE(last_.body.find(line), std::string::npos) << line << last_.body;
}

}  // namespace
}  // namespace purlin::fleet
