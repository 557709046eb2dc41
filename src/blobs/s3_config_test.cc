// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_config.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::blobs {
namespace {

TEST(S3Target, IsABucketAndAPrefix) {
  const S3Config plain = parse_s3_target("s3://bucket").value();
  EXPECT_EQ(plain.bucket, "bucket");
  EXPECT_EQ(plain.prefix, "");
  EXPECT_EQ(parse_s3_target("s3://my.bucket/a/b/")->prefix, "a/b/");
  for (const char* bad : {"s3://", "s3:///a", "s3://UPPER/a", "s3://b/a", "s3://bucket/a b",
                          "s3://bucket/../x", "s3://bucket/a//b", "s3:/bucket", "bucket"})
    EXPECT_EQ(parse_s3_target(bad).status().code(), Code::kInvalid) << bad;
}

TEST(S3Target, HasAnAddress) {
  S3Config config = parse_s3_target("s3://bucket/a").value();
  config.region = "eu-west-1";
  EXPECT_EQ(config.base_url(), "https://bucket.s3.eu-west-1.amazonaws.com");
  config.bucket = "my.bucket";
  EXPECT_EQ(config.base_url(), "https://s3.eu-west-1.amazonaws.com/my.bucket");
  config.endpoint = "http://127.0.0.1:9000";
  EXPECT_EQ(config.base_url(), "http://127.0.0.1:9000/my.bucket");
}

TEST(Profiles, AreReadByName) {
  const std::string file =
      "# comment\nregion = nowhere\n[default]\naws_access_key_id=A1\naws_secret_access_key = S=1\n"
      "[profile  team ]\nregion = eu-west-1\ns3 =\n  endpoint_url = nested\n"
      "endpoint_url = http://minio:9000\nbroken line\n[other]\nregion = x";
  EXPECT_EQ(profile_settings(file, "default"),
            (std::map<std::string, std::string>{{"aws_access_key_id", "A1"},
                                                {"aws_secret_access_key", "S=1"}}));
  EXPECT_EQ(profile_settings(file, "team").at("endpoint_url"), "http://minio:9000");
  EXPECT_EQ(profile_settings(file, "team").at("region"), "eu-west-1");
  EXPECT_TRUE(profile_settings(file, "absent").empty());
  EXPECT_TRUE(profile_settings("[", "").empty());
}

// The environment is the test's own: ctest runs each test in a process.
class LoadS3Config : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("purlin-s3").value();
    for (const char* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION",
          "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE",
          "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI"})
      ::unsetenv(name);
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    ::setenv("AWS_SHARED_CREDENTIALS_FILE", (folder_ + "/credentials").c_str(), 1);
    ::setenv("AWS_CONFIG_FILE", (folder_ + "/config").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    ::unsetenv("AWS_CONFIG_FILE");
    ASSERT_TRUE(remove_tree(folder_).is_ok());
  }
  std::string folder_;
};

TEST_F(LoadS3Config, SaysHowToGiveCredentials) {
  const Status status = load_s3_config("s3://bucket").status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("AWS_ACCESS_KEY_ID"), std::string::npos);
}

TEST_F(LoadS3Config, AsksTheMachineLast) {
  ::unsetenv("AWS_EC2_METADATA_DISABLED");
  EXPECT_EQ(load_s3_config("s3://bucket")->ambient, Ambient::kInstance);
  ::setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role", 1);
  EXPECT_EQ(load_s3_config("s3://bucket")->ambient, Ambient::kContainer);
  ASSERT_TRUE(write_atomic(folder_ + "/credentials",
                           "[default]\naws_access_key_id=A\naws_secret_access_key=S\n")
                  .is_ok());
  EXPECT_EQ(load_s3_config("s3://bucket")->ambient, Ambient::kNone);
  EXPECT_EQ(load_s3_config("s3://bucket")->access_key, "A");
  // A web identity comes before the files, as in Amazon's tools.
  ::setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/t", 1);
  EXPECT_EQ(load_s3_config("s3://bucket")->access_key, "A") << "without a role";
  ::setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
  EXPECT_EQ(load_s3_config("s3://bucket")->ambient, Ambient::kWebIdentity);
  EXPECT_EQ(load_s3_config("s3://bucket")->access_key, "");
  ::setenv("AWS_ACCESS_KEY_ID", "B", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "R", 1);
  EXPECT_EQ(load_s3_config("s3://bucket")->ambient, Ambient::kNone);
}

TEST_F(LoadS3Config, TakesFilesThenTheEnvironment) {
  ASSERT_TRUE(write_atomic(folder_ + "/credentials",
                           "[default]\naws_access_key_id=A\naws_secret_access_key=S\n"
                           "aws_session_token=T\n")
                  .is_ok());
  ASSERT_TRUE(write_atomic(folder_ + "/config", "[default]\nregion=eu-west-1\n").is_ok());
  const S3Config file = load_s3_config("s3://bucket").value();
  EXPECT_EQ(file.access_key, "A");
  EXPECT_EQ(file.session_token, "T");
  EXPECT_EQ(file.region, "eu-west-1");
  ::setenv("AWS_ACCESS_KEY_ID", "B", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "R", 1);
  ::setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/", 1);
  const S3Config environment = load_s3_config("s3://bucket").value();
  EXPECT_EQ(environment.access_key, "B");
  EXPECT_EQ(environment.session_token, "") << "another identity's token";
  EXPECT_EQ(environment.endpoint, "http://127.0.0.1:9000");
  for (const char* bad : {"127.0.0.1:9000", "http://host/path", "http://user:pass@host"}) {
    ::setenv("AWS_ENDPOINT_URL", bad, 1);
    const Status status = load_s3_config("s3://bucket").status();
    EXPECT_EQ(status.code(), Code::kInvalid) << bad;
    EXPECT_EQ(status.message().find("pass"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace purlin::blobs
