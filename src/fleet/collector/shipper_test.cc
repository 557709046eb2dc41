// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/shipper.h"

#include "base/files.h"
#include "base/text.h"
#include "fleet/collector/testing.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

class ShipperTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-ship").value();
    spool_ = BatchSpool::open({root_}, "boot").value();
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void commit(int batches) {
    for (int i = 0; i < batches; ++i) {
      store::Batch batch;
      batch.node = "n";
      batch.begin_ns = batch.end_ns = batch.sent_ns = 1'700'000'000'000'000'000 + ++made_;
      ASSERT_TRUE(spool_->commit({batch}, {}).is_ok());
    }
  }
  Shipper& shipper(std::vector<blobs::HttpResponse> answers) {
    answers_ = {answers.begin(), answers.end()};
    shipper_ = std::make_unique<Shipper>(
        ShipperOptions{"http://server", [] { return std::string("token-0123456789"); }},
        std::make_unique<ScriptedHttp>([this](const blobs::HttpRequest& request) {
          sent_.push_back(request);
          bodies_.emplace_back(request.body);
          if (answers_.empty())
            return Result<blobs::HttpResponse>(error(Code::kUnavailable, "cut"));
          const blobs::HttpResponse answer = answers_.front();
          answers_.pop_front();
          return Result<blobs::HttpResponse>(answer);
        }),
        *spool_, clock_, log_, 1);
    return *shipper_;
  }
  static blobs::HttpResponse status(int code, blobs::HttpHeaders headers = {}) {
    return {code, std::move(headers), ""};
  }

  std::string root_;
  std::int64_t made_ = 0;
  FakeClock clock_;
  KeptLog log_;
  std::unique_ptr<BatchSpool> spool_;
  std::unique_ptr<Shipper> shipper_;
  std::deque<blobs::HttpResponse> answers_;
  std::vector<blobs::HttpRequest> sent_;
  std::vector<std::string> bodies_;
};

TEST_F(ShipperTest, SendsTheOldestFirstAndForgetsWhatTheServerHas) {
  commit(3);
  Shipper& ship =
      shipper({status(204), status(204, {{"x-purlin-duplicate", "true"}}), status(204)});
  EXPECT_EQ(ship.step(), 1) << "nothing is left";
  EXPECT_EQ(spool_->totals().waiting, 0U);
  EXPECT_EQ(ship.counts().sent, 3U);
  EXPECT_EQ(ship.counts().duplicates, 1U);
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_EQ(sent_[0].url, "http://server/v1/batches");
  std::string names;
  for (const auto& [name, value] : sent_[0].headers) names += name + " ";
  EXPECT_EQ(names, "Authorization Content-Type X-Purlin-Batch X-Purlin-Sent ");
}

TEST_F(ShipperTest, PausesGrowAndAreDrawn) {
  commit(1);
  Shipper& ship = shipper({});
  double before = 0;
  for (int i = 0; i < 12; ++i) {
    const double pause = ship.step(), longest = std::min(120.0, std::exp2(i));
    EXPECT_GE(pause, longest / 2);
    EXPECT_LE(pause, longest);
    EXPECT_NE(pause, before);
    before = pause;
  }
  EXPECT_EQ(spool_->totals().waiting, 1U);
  EXPECT_EQ(log_.lines.size(), 1U) << "a reason is said once";
}

TEST_F(ShipperTest, WaitsAsLongAsTheServerSays) {
  commit(1);
  EXPECT_GE(shipper({status(429, {{"retry-after", "40"}})}).step(), 40);
  EXPECT_GE(shipper({status(503, {{"retry-after", "99999999"}})}).step(), 3600);
  EXPECT_EQ(spool_->totals().waiting, 1U);
}

TEST_F(ShipperTest, OnlyWhatIsRefusedForGoodIsBuried) {
  for (const int code : {401, 403, 404, 408, 412, 421, 429, 500, 501, 503, 507}) {
    commit(1);
    shipper({status(code)}).step();
    EXPECT_EQ(spool_->totals().waiting, 1U) << code;
    shipper({status(204)}).step();
    EXPECT_EQ(spool_->totals().waiting, 0U) << code;
  }
  std::uint64_t dead = 0;
  for (const int code : {400, 413, 422}) {
    commit(2);
    blobs::HttpResponse of_a_proxy = status(code);
    of_a_proxy.body = "<html>Request Entity Too Large</html>";
    shipper({of_a_proxy}).step();
    EXPECT_EQ(spool_->totals().waiting, 2U) << code << " of a proxy, which can be mended";
    blobs::HttpResponse refusal = status(code);
    refusal.body = R"({"schema": "purlin.error/1", "error": {"message": "no"}})";
    shipper({refusal, status(204)}).step();
    EXPECT_EQ(spool_->totals().waiting, 0U) << code;
    EXPECT_EQ(spool_->totals().dead, ++dead);
  }
}

TEST_F(ShipperTest, LearnsTheServersClock) {
  commit(1);
  clock_.now_ns = 1'000'000'000'000;
  Shipper& ship = shipper({status(204, {{"x-purlin-time", "4600000000000"}})});
  ship.step();
  EXPECT_EQ(ship.counts().clock_offset_ns, 3'600'000'000'000);
}

}  // namespace
}  // namespace purlin::fleet
