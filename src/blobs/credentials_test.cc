// SPDX-License-Identifier: Apache-2.0
#include "blobs/credentials.h"

#include "base/files.h"
#include "blobs/s3_blobs.h"
#include "blobs/s3_xml.h"
#include "blobs/testing.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::blobs {
namespace {

constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;

std::string document(const std::string& key, std::int64_t expires_ns) {
  return fmt::format(
      R"({{"Code": "Success", "AccessKeyId": "{}", "SecretAccessKey": "S", "Token": "T",
           "Expiration": "{}"}})",
      key, format_rfc3339(expires_ns));
}

std::string assumed(const std::string& key, std::int64_t expires_ns) {
  return fmt::format(
      "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
      "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{}</AccessKeyId>"
      "<SecretAccessKey>S&amp;1</SecretAccessKey><SessionToken>T</SessionToken>"
      "<Expiration>{}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
      "</AssumeRoleWithWebIdentityResponse>",
      key, format_rfc3339(expires_ns));
}

class CredentialSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("purlin-credentials").value();
    clock_.now_ns = 1000 * kHourNs;
  }
  void TearDown() override {
    for (const char* name :
         {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
          "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_ENDPOINT_URL_STS"})
      ::unsetenv(name);
    ASSERT_TRUE(remove_tree(folder_).is_ok());
  }
  CredentialSource source(Ambient ambient) {
    return {ambient, "eu-west-1", std::make_unique<ScriptedHttp>(script_), clock_};
  }
  std::int64_t in_an_hour() { return clock_.wall_ns() + kHourNs; }

  std::string folder_;
  Script script_;
  FakeClock clock_;
};

TEST_F(CredentialSourceTest, AnInstancesRoleNeedsASession) {
  script_.answers = {answer(200, "session\n"), answer(200, "my role\nother"),
                     answer(200, document("A", in_an_hour()))};
  CredentialSource instance = source(Ambient::kInstance);
  const Credentials found = instance.current().value();
  EXPECT_EQ(found.access_key, "A");
  EXPECT_EQ(found.session_token, "T");
  ASSERT_EQ(script_.asked.size(), 3u);
  EXPECT_EQ(script_.asked[0], "PUT http://169.254.169.254/latest/api/token");
  EXPECT_EQ(script_.header(1, "X-aws-ec2-metadata-token"), "session");
  EXPECT_EQ(script_.asked[2],
            "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/my%20role");
  EXPECT_LT(script_.timeouts_s[0], script_.timeouts_s[1]) << "the session shows that it is there";
  EXPECT_EQ(script_.timeouts_s[1], script_.timeouts_s[2]);
  EXPECT_EQ(instance.current()->access_key, "A");
  EXPECT_EQ(script_.asked.size(), 3u) << "kept";
}

TEST_F(CredentialSourceTest, AreRenewedBeforeTheyEnd) {
  ::setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/role", 1);
  script_.answers = {answer(200, document("A", in_an_hour())),
                     answer(200, document("B", in_an_hour() + kHourNs)),
                     error(Code::kTimeout, "late"), error(Code::kTimeout, "late")};
  CredentialSource container = source(Ambient::kContainer);
  EXPECT_EQ(container.current()->access_key, "A");
  EXPECT_EQ(script_.asked[0], "GET http://169.254.170.2/v2/role");
  clock_.now_ns += kHourNs - kHourNs / 60;  // a minute before the end
  EXPECT_EQ(container.current()->access_key, "B");
  clock_.now_ns += kHourNs - kHourNs / 60 + kHourNs / 120;
  EXPECT_EQ(container.current()->access_key, "B") << "they serve to their end";
  clock_.now_ns += kHourNs;
  EXPECT_EQ(container.current().status().code(), Code::kTimeout);
}

TEST_F(CredentialSourceTest, AContainersTokenGoesToTrustedHostsAlone) {
  ASSERT_TRUE(write_atomic(folder_ + "/token", "secret\n").is_ok());
  ::setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", (folder_ + "/token").c_str(), 1);
  for (const char* good : {"https://any.host/x", "http://127.0.0.1:9/x", "http://[::1]:9/x",
                           "http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/x"}) {
    ::setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", good, 1);
    script_ = {};
    script_.answers = {answer(200, document("A", in_an_hour()))};
    EXPECT_TRUE(source(Ambient::kContainer).current().is_ok()) << good;
    EXPECT_EQ(script_.header(0, "Authorization"), "secret");
  }
  for (const char* bad : {"http://evil.example/x", "http://127.0.0.1.evil/x", "ftp://127.0.0.1/x",
                          "http://evil@127.0.0.1/x", "127.0.0.1"}) {
    ::setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", bad, 1);
    script_ = {};
    EXPECT_EQ(source(Ambient::kContainer).current().status().code(), Code::kInvalid) << bad;
    EXPECT_TRUE(script_.asked.empty()) << bad;
  }
  ASSERT_TRUE(write_atomic(folder_ + "/token", "a\r\nX-Other: b").is_ok());
  ::setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/x", 1);
  EXPECT_EQ(source(Ambient::kContainer).current().status().code(), Code::kInvalid);
}

TEST_F(CredentialSourceTest, AWebIdentityIsExchanged) {
  ASSERT_TRUE(write_atomic(folder_ + "/token", "eyJ.a+b/c").is_ok());
  ::setenv("AWS_WEB_IDENTITY_TOKEN_FILE", (folder_ + "/token").c_str(), 1);
  ::setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
  script_.answers = {answer(200, assumed("A", in_an_hour())),
                     answer(403,
                            "<ErrorResponse><Error><Code>ExpiredTokenException</Code>"
                            "<Message>too old</Message></Error></ErrorResponse>"),
                     answer(200, "<html>")};
  CredentialSource identity = source(Ambient::kWebIdentity);
  const Credentials found = identity.current().value();
  EXPECT_EQ(found.secret_key, "S&1");
  EXPECT_EQ(found.expires_ns, in_an_hour());
  EXPECT_EQ(script_.asked[0], "POST https://sts.eu-west-1.amazonaws.com/");
  identity.forget();
  const Status refused = identity.current().status();
  EXPECT_NE(refused.message().find("ExpiredTokenException"), std::string::npos);
  EXPECT_EQ(refused.message().find("eyJ"), std::string::npos) << "the token";
  EXPECT_EQ(identity.current().status().code(), Code::kInvalid);
  ::setenv("AWS_WEB_IDENTITY_TOKEN_FILE", (folder_ + "/absent").c_str(), 1);
  EXPECT_FALSE(identity.current().is_ok());
}

TEST_F(CredentialSourceTest, WhatIsNoAnswerIsAnError) {
  script_.answers = {answer(200, "session"), answer(200, "")};
  EXPECT_NE(source(Ambient::kInstance).current().status().message().find("no role"),
            std::string::npos);
  for (const char* bad :
       {"", "{}", "[", R"({"Code": "Failed", "Message": "gone"})", R"({"AccessKeyId": "A"})"}) {
    script_.answers = {answer(200, "session"), answer(200, "role"), answer(200, bad)};
    EXPECT_FALSE(source(Ambient::kInstance).current().is_ok()) << bad;
  }
  script_.answers = {};
  EXPECT_EQ(source(Ambient::kInstance).current().status().code(), Code::kUnavailable);
}

TEST_F(CredentialSourceTest, AStoreSignsWithThoseInForce) {
  ::setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/x", 1);
  Script keys;
  keys.answers = {answer(200, document("A", in_an_hour())),
                  answer(200, document("B", in_an_hour() + kHourNs))};
  script_.answers = {answer(200, "1", {{"etag", "\"1\""}}),
                     answer(400, "<Error><Code>ExpiredToken</Code></Error>"),
                     answer(200, "2", {{"etag", "\"2\""}}),
                     answer(403, "<Error><Code>AccessDenied</Code></Error>")};
  S3Config config = parse_s3_target("s3://bucket").value();
  config.endpoint = "http://127.0.0.1:9";
  const auto store = make_s3_blobs(
      config, std::make_unique<ScriptedHttp>(script_), clock_, 1,
      std::make_unique<CredentialSource>(Ambient::kContainer, "eu-west-1",
                                         std::make_unique<ScriptedHttp>(keys), clock_));
  EXPECT_EQ(store->get("a", 10)->bytes, "1");
  EXPECT_NE(script_.header(0, "Authorization").find("Credential=A/"), std::string::npos);
  EXPECT_EQ(script_.header(0, "x-amz-security-token"), "T");
  EXPECT_EQ(store->get("a", 10)->bytes, "2") << "asked again after they ended early";
  EXPECT_NE(script_.header(2, "Authorization").find("Credential=B/"), std::string::npos);
  EXPECT_FALSE(store->get("a", 10).is_ok());
  EXPECT_EQ(script_.asked.size(), 4u) << "another refusal is final";
}

TEST(S3Xml, DeclaredEntitiesAreNotExpanded) {
  const std::string bomb =
      "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]>"
      "<Error><Code>&c;</Code><Message>&amp;&#x41;</Message></Error>";
  EXPECT_EQ(parse_s3_error(bomb).code.find("bb"), std::string::npos);
  EXPECT_EQ(parse_s3_error(bomb).message, "&A");
  // Deep nesting takes no stack.
  std::string deep;
  for (int i = 0; i < 300'000; ++i) deep += "<a>";
  EXPECT_EQ(parse_s3_error(deep).code, "");
}

}  // namespace
}  // namespace purlin::blobs
