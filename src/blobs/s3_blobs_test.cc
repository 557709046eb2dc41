// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_blobs.h"

#include "blobs/s3_xml.h"
#include "blobs/testing.h"

#include <gtest/gtest.h>

namespace purlin::blobs {
namespace {

HttpResponse failure(int status, const std::string& code) {
  return answer(status, "<?xml version=\"1.0\"?><Error><Code>" + code +
                            "</Code><Message>a &lt;reason&gt;</Message></Error>");
}

class S3Blobs : public testing::Test {
 protected:
  S3Blobs() {
    S3Config config = parse_s3_target("s3://bucket/team").value();
    config.endpoint = "http://127.0.0.1:9";
    config.access_key = "A";
    config.secret_key = "S";
    store_ = make_s3_blobs(config, std::make_unique<ScriptedHttp>(script_), clock_, 1);
  }
  Script script_;
  FakeClock clock_;
  std::unique_ptr<BlobStore> store_;
};

TEST_F(S3Blobs, ReadsAndWritesUnderConditions) {
  script_.answers = {answer(200, "bytes", {{"etag", "\"7\""}}),
                     answer(200),
                     answer(200),
                     failure(412, "PreconditionFailed"),
                     failure(404, "NoSuchKey"),
                     failure(404, "NoSuchKey")};
  const Blob blob = store_->get("a/b", 100).value();
  EXPECT_EQ(blob.bytes, "bytes");
  EXPECT_EQ(blob.tag, "\"7\"");
  EXPECT_EQ(script_.asked[0], "GET http://127.0.0.1:9/bucket/team/a/b");
  EXPECT_EQ(store_->put_if_absent("a", "x").value(), Put::kStored);
  EXPECT_EQ(script_.header(1, "If-None-Match"), "*");
  EXPECT_NE(script_.header(1, "Authorization").find("if-none-match"), std::string::npos)
      << "not signed";
  EXPECT_EQ(store_->put_if_match("a", "x", "\"7\"").value(), Put::kStored);
  EXPECT_EQ(script_.header(2, "If-Match"), "\"7\"");
  EXPECT_EQ(store_->put_if_match("a", "x", "\"7\"").value(), Put::kConflict);
  EXPECT_EQ(store_->put_if_match("a", "x", "\"7\"").value(), Put::kConflict) << "it is gone";
  EXPECT_EQ(store_->get("a", 100).status().code(), Code::kNotFound);
}

TEST_F(S3Blobs, RetriesWhatPassesWithPauses) {
  script_.answers = {error(Code::kUnavailable, "reset"), failure(503, "SlowDown"),
                     failure(409, "ConditionalRequestConflict"), error(Code::kTimeout, "late"),
                     answer(200, "bytes", {{"etag", "\"7\""}})};
  const std::int64_t before = clock_.now_ns;
  EXPECT_EQ(store_->get("a", 100)->bytes, "bytes");
  EXPECT_EQ(script_.asked.size(), 5u);
  EXPECT_GT(clock_.now_ns - before, 1'000'000'000);
  EXPECT_LT(clock_.now_ns - before, 10'000'000'000);
}

TEST_F(S3Blobs, GivesUpInTheEnd) {
  const Status silent = store_->get("a", 100).status();
  EXPECT_EQ(silent.code(), Code::kUnavailable);
  EXPECT_NE(silent.message().find("6 attempts"), std::string::npos) << silent.message();
  script_.answers.assign(6, failure(500, "InternalError"));
  const Status broken = store_->put_if_absent("a", "x").status();
  EXPECT_EQ(broken.code(), Code::kUnavailable);
  EXPECT_NE(broken.message().find("InternalError a <reason>"), std::string::npos);
}

TEST_F(S3Blobs, SaysWhatToDo) {
  script_.answers = {failure(403, "SignatureDoesNotMatch"), failure(404, "NoSuchBucket"),
                     failure(403, "RequestTimeTooSkewed"),
                     answer(301, "", {{"x-amz-bucket-region", "eu-west-1"}}),
                     error(Code::kInvalid, "over the limit")};
  for (const char* text : {"the credentials in use are those of 'A'", "create the bucket",
                           "clock is wrong", "set AWS_REGION", "over the limit"}) {
    const Status status = store_->get("a", 100).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  }
  EXPECT_EQ(script_.asked.size(), 5u) << "none of them is worth a retry";
}

TEST_F(S3Blobs, ListsEveryPage) {
  const std::string first =
      "<ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>a&amp;b</NextContinuationToken>"
      "<Contents><Key>team/s/2</Key><LastModified>2026-11-20T00:00:01.000Z</LastModified>"
      "<Size>5</Size></Contents><Contents><Key>team/s/deep/1</Key></Contents></ListBucketResult>";
  const std::string last =
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>team/s/1</Key>"
      "<Size>7</Size></Contents><Contents><Key>elsewhere</Key></Contents></ListBucketResult>";
  script_.answers = {answer(200, first), answer(200, last)};
  const auto listed = store_->list("s/").value();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].key, "s/1");
  EXPECT_EQ(listed[1].key, "s/2");
  EXPECT_EQ(listed[1].size, 5u);
  EXPECT_EQ(listed[1].modified_ns, 1795132801'000'000'000);
  EXPECT_EQ(script_.asked[0], "GET http://127.0.0.1:9/bucket?list-type=2&prefix=team%2Fs%2F");
  EXPECT_NE(script_.asked[1].find("continuation-token=a%26b"), std::string::npos);
  script_.answers = {answer(200, "<html>"),
                     answer(200,
                            "<ListBucketResult><IsTruncated>true</IsTruncated>"
                            "</ListBucketResult>")};
  EXPECT_EQ(store_->list("s/").status().code(), Code::kInvalid);
  EXPECT_EQ(store_->list("s/").status().code(), Code::kInvalid);
}

TEST_F(S3Blobs, ReckonsTimesByThisMachinesClock) {
  constexpr std::int64_t kMinute = 60'000'000'000;
  const std::string page =
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>team/s/1</Key>"
      "<LastModified>2026-11-20T00:00:00.000Z</LastModified></Contents></ListBucketResult>";
  clock_.now_ns = 1795132800'000'000'000 - 50 * kMinute;  // it goes an hour slow
  script_.answers = {answer(200, page, {{"date", "Fri, 20 Nov 2026 00:10:00 GMT"}}),
                     answer(200, page, {{"date", "yesterday"}})};
  EXPECT_EQ(store_->list("s/").value()[0].modified_ns, clock_.now_ns - 10 * kMinute);
  EXPECT_EQ(store_->list("s/").value()[0].modified_ns, 1795132800'000'000'000);
}

TEST_F(S3Blobs, AnObjectWithoutATagIsRefused) {
  script_.answers = {answer(200, "bytes")};
  const Status status = store_->get("index.json", 100).status();
  EXPECT_EQ(status.code(), Code::kInvalid) << "it would be taken for no object";
  EXPECT_NE(status.message().find("without an ETag"), std::string::npos) << status.message();
}

TEST_F(S3Blobs, Removes) {
  script_.answers = {answer(204), failure(404, "NoSuchKey"), failure(403, "AccessDenied")};
  EXPECT_TRUE(store_->remove("a").is_ok());
  EXPECT_TRUE(store_->remove("a").is_ok());
  EXPECT_EQ(store_->remove("a").code(), Code::kInvalid);
}

TEST(S3Xml, IsBoundedAndLenient) {
  EXPECT_TRUE(parse_list_page("<ListBucketResult></ListBucketResult>")->blobs.empty());
  EXPECT_TRUE(parse_list_page("<ListBucketResult></ListBucketResult>")->next.empty());
  EXPECT_FALSE(parse_list_page("").is_ok());
  EXPECT_FALSE(parse_list_page("<ListBucketResult>").is_ok());
  std::string many = "<ListBucketResult>";
  for (int i = 0; i < 10'001; ++i) many += "<Contents></Contents>";
  EXPECT_FALSE(parse_list_page(many + "</ListBucketResult>").is_ok());
  for (const char* year : {"0000", "1677", "2263", "9999"})
    EXPECT_EQ(
        parse_list_page(fmt::format("<ListBucketResult><Contents><LastModified>{}-01-01T00:00:00Z"
                                    "</LastModified></Contents></ListBucketResult>",
                                    year))
            ->blobs[0]
            .modified_ns,
        0)
        << year;
  EXPECT_EQ(parse_s3_error("no xml").code, "");
  EXPECT_EQ(parse_s3_error("<Error><Code/><Message>m</Message></Error>").message, "m");
}

}  // namespace
}  // namespace purlin::blobs
