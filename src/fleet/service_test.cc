// SPDX-License-Identifier: Apache-2.0
#include "fleet/service.h"

#include "base/files.h"
#include "fleet/answers.h"
#include "fleet/cache_api.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-service").value();
    api_ = CacheApi::open({root_, 0}, clock_).value();
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void open(const std::string& tokens) {
    ServiceOptions options;
    if (!tokens.empty()) options.tokens = Tokens::parse(tokens, "t").value();
    service_.emplace(std::move(options), cache_endpoints(*api_), log_, nullptr, clock_);
    service_->add_metrics([this] { return cache_metrics(*api_); });
  }
  // The status of the refusal, or of the answer.
  int ask(const std::string& method, const std::string& target, const std::string& token = "",
          const std::string& host = "127.0.0.1:8717") {
    HttpHead head{method, target};
    head.headers = {{"host", host}, {"if-none-match", "*"}};
    if (!token.empty()) head.headers.emplace_back("authorization", "Bearer " + token);
    if (method == "PUT") head.body_bytes = body_bytes_;
    const std::optional<HttpAnswer> early = service_->early(head);
    early_ = early.has_value();
    last_ = early ? *early : service_->answer(head, "a");
    service_->answered(head, last_, early_ ? std::nullopt : std::optional<double>(0.002));
    return last_.status;
  }
  static constexpr char kObject[] = "/v1/caches/team/objects/probe-1";

  std::string root_;
  class Lines : public Log {
   public:
    std::vector<std::string> lines;

   private:
    void emit(Level, std::string_view text) override { lines.emplace_back(text); }
  };
  Lines log_;
  FakeClock clock_;
  std::unique_ptr<CacheApi> api_;
  std::optional<Service> service_;
  HttpAnswer last_;
  bool early_ = false;
  std::uint64_t body_bytes_ = 1;
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

TEST_F(ServiceTest, ATokenMayBeForSomeCachesAlone) {
  open(
      "write 0123456789abcdef ci team other\n"
      "read 0123456789abcdef ci third\n"
      "read fedcba9876543210 fleet\n");
  EXPECT_EQ(ask("PUT", kObject, "0123456789abcdef"), 201);
  EXPECT_EQ(ask("GET", "/v1/caches/third/objects/index.json", "0123456789abcdef"), 404);
  EXPECT_EQ(ask("PUT", "/v1/caches/third/objects/probe-1", "0123456789abcdef"), 403);
  EXPECT_NE(last_.body.find("'ci' may read, not write"), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/caches/fourth/objects/index.json", "0123456789abcdef"), 403);
  EXPECT_NE(last_.body.find("'ci' is not for 'fourth'"), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/caches", "0123456789abcdef"), 403);
  EXPECT_EQ(ask("GET", "/metrics", "0123456789abcdef"), 403);
  EXPECT_EQ(ask("GET", "/v1/caches", "fedcba9876543210"), 200);
}

TEST_F(ServiceTest, TokensMayChangeWhileItRuns) {
  open("read 0123456789abcdef a\n");
  EXPECT_EQ(ask("GET", "/v1/caches", "0123456789abcdef"), 200);
  service_->replace_tokens(Tokens::parse("read fedcba9876543210 b\n", "t").value());
  EXPECT_EQ(ask("GET", "/v1/caches", "0123456789abcdef"), 401);
  EXPECT_EQ(ask("GET", "/v1/caches", "fedcba9876543210"), 200);
  service_->replace_tokens(Tokens());
  EXPECT_EQ(ask("GET", "/v1/caches"), 401) << "none would let everyone in";
}

// It is answered while every handler waits for a disk, and the client cannot make the server hold a
// body.
TEST_F(ServiceTest, HealthIsSaidAtOnceAndTakesNoBody) {
  open("write 0123456789abcdef ci\n");
  EXPECT_EQ(ask("GET", "/healthz"), 200);
  EXPECT_TRUE(early_);
  EXPECT_EQ(ask("HEAD", "/healthz"), 200);
  HttpHead head{"GET", "/healthz"};
  head.body_bytes = 1;
  EXPECT_EQ(service_->early(head).value_or(HttpAnswer{}).status, 413);
}

TEST_F(ServiceTest, ABodyIsTakenForWhatItMayBeAlone) {
  open("");
  const struct {
    const char* key;
    std::uint64_t most;
  } cases[] = {{"probe-1", 64}, {"index.json", 16 << 20}};
  for (const auto& c : cases) {
    const std::string target = std::string("/v1/caches/team/objects/") + c.key;
    body_bytes_ = c.most + 1;
    EXPECT_EQ(ask("PUT", target), 413) << c.key;
    EXPECT_TRUE(early_);
    body_bytes_ = c.most;
    EXPECT_NE(ask("PUT", target), 413) << c.key;
  }
  EXPECT_EQ(ask("PUT", "/v1/caches/team/objects/notes.txt"), 400);
  EXPECT_TRUE(early_);
  HttpHead head{"GET", kObject, {{"host", "localhost"}}};
  head.body_bytes = 1;
  EXPECT_EQ(service_->early(head).value_or(HttpAnswer{}).status, 413);
}

TEST_F(ServiceTest, AnotherMethodIsToldWhichThereAre) {
  open("");
  EXPECT_EQ(ask("POST", "/v1/caches"), 405);
  EXPECT_EQ(last_.headers.at(0), std::make_pair(std::string("Allow"), std::string("GET, HEAD")));
  EXPECT_EQ(ask("POST", kObject), 405);
  EXPECT_EQ(last_.headers.at(0).second, "GET, HEAD, PUT, DELETE");
  EXPECT_EQ(ask("POST", "/nowhere"), 404);
}

// A page in a browser that calls this machine by the page's own name must not get in.
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

// A browser sends such a POST at once, without a question before it.
TEST_F(ServiceTest, WithoutTokensNoPageOfAnotherSiteChangesAnything) {
  open("");
  const auto status = [&](const std::string& method, const std::string& origin) {
    HttpHead head{method, kObject};
    head.headers = {{"host", "127.0.0.1:8717"}, {"origin", origin}, {"if-none-match", "*"}};
    const std::optional<HttpAnswer> early = service_->early(head);
    return early ? early->status : service_->answer(head, "a").status;
  };
  EXPECT_EQ(status("PUT", "http://127.0.0.1:8717"), 201);
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:8718",
                             "http://127.0.0.1:8717.evil.example", "127.0.0.1:8717"}) {
    EXPECT_EQ(status("DELETE", origin), 403) << origin;
    EXPECT_EQ(status("GET", origin), 200) << origin;
  }
  EXPECT_EQ(status("DELETE", "http://127.0.0.1:8717"), 200);
}

TEST_F(ServiceTest, ATokenLearnsWhatItMay) {
  const auto scopes = [&](const std::string& token) {
    EXPECT_EQ(ask("GET", "/v1/access", token), 200);
    const Json answer = Json::parse(last_.body).value();
    std::string all;
    for (const Json& scope : answer["scopes"].items()) all += scope.as_string() + " ";
    return all;
  };
  open("");
  EXPECT_EQ(scopes(""), "ingest read write admin ");
  open("write 0123456789abcdef ci\nread fedcba9876543210 fleet\n");
  EXPECT_EQ(scopes("0123456789abcdef"), "read write ");
  EXPECT_EQ(scopes("fedcba9876543210"), "read ");
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
                           "purlin_http_request_seconds_count{kind=\"put_object\"} 2\n",
                           "purlin_http_connections 3\n", "purlin_cache_stored_bytes 1\n"})
    EXPECT_NE(last_.body.find(line), std::string::npos) << line << last_.body;
  EXPECT_EQ(last_.body.find("seconds_count{kind=\"refused\"}"), std::string::npos)
      << "what took no time says nothing of the others";
}

// What the server says instead of the answer that was given, too.
TEST_F(ServiceTest, WhatIsSentIsCountedAndAFailureLogged) {
  open("write 0123456789abcdef ci\n");
  HttpHead head{"GET", kObject, {{"authorization", "Bearer 0123456789abcdef"}}};
  head.peer = "10.0.0.7";
  HttpAnswer answer;
  answer.status = 503;
  answer.body = "holds as much as it may\n";
  service_->answered(head, answer, 0.002);
  service_->answered(head, answer, std::nullopt);  // by its head alone
  HttpHead none;
  none.peer = "10.0.0.8";
  service_->answered(none, error_answer(400, "no request"), std::nullopt);
  EXPECT_EQ(log_.lines, (std::vector<std::string>(2, "10.0.0.7 (ci) GET " + std::string(kObject) +
                                                         ": 503 holds as much as it may")));
  head.method = "HEAD";
  answer.status = 200;
  service_->answered(head, answer, 0.002);
  ASSERT_EQ(ask("GET", "/metrics", "0123456789abcdef"), 200);
  for (const char* line : {"purlin_http_requests_total{kind=\"get_object\",status=\"503\"} 1\n",
                           "purlin_http_requests_total{kind=\"refused\",status=\"503\"} 1\n",
                           "purlin_http_requests_total{kind=\"refused\",status=\"400\"} 1\n"})
    EXPECT_NE(last_.body.find(line), std::string::npos) << line << last_.body;
  const std::size_t sent = 2 * answer.body.size() + error_answer(400, "no request").body.size();
  EXPECT_NE(last_.body.find(fmt::format("sent_bytes_total {}\n", sent)), std::string::npos)
      << last_.body;
}

}  // namespace
}  // namespace purlin::fleet
