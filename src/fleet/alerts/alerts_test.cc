// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "fleet/alerts/courier.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

// A receiver with planned answers, which keeps the bodies.
struct FakeReceiver {
  std::vector<int> statuses;  // of the next requests; 200 after them
  std::vector<std::string> urls, bodies;
};
class FakeReceiverHttp : public blobs::HttpClient {
 public:
  explicit FakeReceiverHttp(FakeReceiver& receiver) : receiver_(receiver) {}
  Result<blobs::HttpResponse> send(const blobs::HttpRequest& request) override {
    blobs::HttpResponse response;
    response.status = 200;
    if (!receiver_.statuses.empty()) {
      response.status = receiver_.statuses.front();
      receiver_.statuses.erase(receiver_.statuses.begin());
    }
    if (response.status == 0) return Status(Code::kUnavailable, "no connection");
    if (response.status == 200) {
      receiver_.urls.push_back(request.url);
      receiver_.bodies.emplace_back(request.body);
    }
    return response;
  }

 private:
  FakeReceiver& receiver_;
};

Finding slower_of(const std::string& kernel) {
  analysis::Slower slower;
  slower.kernels.resize(2);
  slower.kernels[0].key = {kernel, "NVIDIA H200"};
  slower.kernels[0].alarm = true;
  slower.kernels[0].ratio = 1.052;
  slower.kernels[0].lost_gpu_s = 100;
  slower.kernels[0].marks = {{"build", "v1", "v2", 1, 1}};
  slower.kernels[1].key = {"suspect", "NVIDIA H200"};
  const auto findings = findings_of(slower, {}, {}, "https://purlin.example/", 0);
  EXPECT_EQ(findings.size(), 1u) << "a suspect is no finding";
  return findings.front();
}

class CourierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_directory("courier");
    clock_.now_ns = 1'790'000'000'000'000'000;
    hooks_.resize(1);
    hooks_[0].name = "ops", hooks_[0].url = "http://receiver/hook";
  }
  void TearDown() override { static_cast<void>(remove_tree(folder_)); }
  Courier open() {
    return Courier::open(join_path(folder_, "state.json"),
                         std::make_unique<FakeReceiverHttp>(receiver_), clock_, log_)
        .value();
  }
  std::string folder_;
  FakeClock clock_;
  Log log_{Level::kSilent};
  FakeReceiver receiver_;
  std::vector<Webhook> hooks_;
};

TEST_F(CourierTest, AFindingIsDeliveredOnceAlsoAfterARestart) {
  const std::vector<Finding> findings = {slower_of("gemm"), slower_of("softmax")};
  {
    Courier courier = open();
    ASSERT_TRUE(courier.deliver(hooks_, findings).is_ok());
    ASSERT_TRUE(courier.deliver(hooks_, findings).is_ok());
  }
  Courier courier = open();
  ASSERT_TRUE(courier.deliver(hooks_, findings).is_ok());
  EXPECT_EQ(receiver_.bodies.size(), 2u);
  // The estimate moves: the same finding.
  std::vector<Finding> moved = findings;
  moved[0].at_ns += 1'000'000'000'000, moved[0].ratio = 1.06;
  ASSERT_TRUE(courier.deliver(hooks_, moved).is_ok());
  EXPECT_EQ(receiver_.bodies.size(), 2u);
}

TEST_F(CourierTest, AFindingThatReturnsAfterADayIsNew) {
  Courier courier = open();
  ASSERT_TRUE(courier.deliver(hooks_, {slower_of("gemm")}).is_ok());
  clock_.now_ns += 25LL * 3600 * 1'000'000'000;
  ASSERT_TRUE(courier.deliver(hooks_, {}).is_ok());
  ASSERT_TRUE(courier.deliver(hooks_, {slower_of("gemm")}).is_ok());
  EXPECT_EQ(receiver_.bodies.size(), 2u);
}

TEST_F(CourierTest, ABusyReceiverIsAskedAgainAndARefusalStaysOpen) {
  Courier courier = open();
  receiver_.statuses = {503, 0, 429};
  ASSERT_TRUE(courier.deliver(hooks_, {slower_of("gemm")}).is_ok());
  EXPECT_EQ(receiver_.bodies.size(), 1u);
  receiver_.statuses = {400};
  ASSERT_TRUE(courier.deliver(hooks_, {slower_of("softmax")}).is_ok());
  EXPECT_EQ(receiver_.bodies.size(), 1u);
  EXPECT_EQ(courier.counts().failed, 1u);
  ASSERT_TRUE(courier.deliver(hooks_, {slower_of("softmax")}).is_ok());
  EXPECT_EQ(receiver_.bodies.size(), 2u);
}

TEST_F(CourierTest, AWebhookTakesWhatItWants) {
  hooks_[0].kinds = {"straggler"};
  Courier courier = open();
  ASSERT_TRUE(courier.deliver(hooks_, {slower_of("gemm")}).is_ok());
  hooks_[0].kinds = {};
  hooks_[0].min_lost_gpu_s = 1000;
  ASSERT_TRUE(courier.deliver(hooks_, {slower_of("gemm")}).is_ok());
  EXPECT_TRUE(receiver_.bodies.empty());
}

TEST(Webhook, BodiesHaveTheLinkAndTheCommand) {
  const Finding finding = slower_of("gemm<128, 64>");
  const Json generic = *Json::parse(webhook_body(WebhookKind::kGeneric, finding, 0));
  EXPECT_EQ(generic["schema"].as_string(), "purlin.alert/1");
  EXPECT_EQ(generic["command"].as_string(), "purlin guard bisect v1 v2 --suite SUITE");
  EXPECT_EQ(generic["link"].as_string(),
            "https://purlin.example/#1/kernels?begin=-30d&kernel=gemm%3C128%2C%2064%3E&model="
            "NVIDIA%20H200")
      << "the page, not the JSON";
  const Json slack = *Json::parse(webhook_body(WebhookKind::kSlack, finding, 0));
  EXPECT_NE(slack["text"].as_string().find("gemm&lt;128, 64&gt; is 5.2 % slower"),
            std::string::npos);
  const Json alerts = *Json::parse(webhook_body(WebhookKind::kAlertmanager, finding, 0));
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_EQ(alerts.items()[0]["labels"]["alertname"].as_string(), "PurlinKernelSlower");
  EXPECT_EQ(alerts.items()[0]["labels"]["kernel"].as_string(), "gemm<128, 64>");
}

TEST(Webhook, SlackObeysNoHostileName) {
  const std::string body =
      webhook_body(WebhookKind::kSlack, slower_of("<!channel> `x`\n*bold*|evil>"), 0);
  const std::string text = (*Json::parse(body))["text"].as_string();
  EXPECT_EQ(text.find("<!channel>"), std::string::npos);
  EXPECT_EQ(text.find("|evil>"), std::string::npos);
}

TEST(AlertConfig, IsReadAndFaultsAreNamed) {
  const Result<AlertConfig> config = parse_alerts(R"(
schema = "purlin.alerts/1"
url = "https://purlin.example"
every = "5m"
otlp_url = "http://otel:4318/v1/metrics"
[[webhooks]]
name = "team"
kind = "slack"
url = "https://hooks.slack.example/x"
findings = ["slower"]
min_lost_gpu_s = 3600.0
)",
                                                  "alerts.toml");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(config->every_s, 300);
  ASSERT_EQ(config->webhooks.size(), 1u);
  EXPECT_EQ(config->webhooks[0].kind, WebhookKind::kSlack);
  const auto complains = [](const std::string& text, const std::string& about) {
    const Result<AlertConfig> wrong = parse_alerts(text, "alerts.toml");
    ASSERT_FALSE(wrong.is_ok()) << text;
    EXPECT_NE(wrong.status().message().find(about), std::string::npos) << wrong.status().message();
  };
  const std::string head = "schema = \"purlin.alerts/1\"\nurl = \"http://h\"\n";
  complains("schema = \"purlin.alerts/2\"\nurl = \"http://h\"\n", "alerts.toml");
  complains(head + "evry = \"5m\"\n", "evry");
  complains(head + "[[webhooks]]\nname = \"a\"\nurl = \"ftp://h\"\n", "http://");
  complains(head + "[[webhooks]]\nname = \"a\"\nurl = \"http://h\"\nkind = \"irc\"\n", "irc");
}

TEST(Verdicts, AreMetricsWithoutNamesOfKernels) {
  Verdicts verdicts;
  verdicts.alarms = 2;
  const std::string text = verdict_metrics(verdicts);
  EXPECT_NE(text.find("purlin_slower_kernels{certainty=\"alarm\"} 2\n"), std::string::npos);
  const Json otlp = *Json::parse(otlp_metrics(verdicts, {slower_of("gemm")}, 5));
  const Json& metrics = otlp["resourceMetrics"].items()[0]["scopeMetrics"].items()[0]["metrics"];
  EXPECT_EQ(metrics.items()[0]["gauge"]["dataPoints"].items()[0]["asDouble"].as_double(), 2);
  EXPECT_EQ(metrics.items().back()["name"].as_string(), "purlin.slowdown");
}

}  // namespace
}  // namespace purlin::fleet
