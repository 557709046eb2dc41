// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_signature.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::blobs {
namespace {

// The worked examples of "Authenticating Requests: Using the Authorization Header" in Amazon S3's
// API reference.
constexpr std::int64_t kMay24of2013 = 1369353600;

S3Config example() {
  S3Config config;
  config.access_key = "AKIAIOSFODNN7EXAMPLE";
  config.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  return config;
}

std::string authorization(const S3Request& request) {
  for (const auto& [name, value] : sign_s3(request, example(), kMay24of2013))
    if (name == "Authorization") return value;
  return "";
}

TEST(SignS3, GetsAnObject) {
  S3Request request;
  request.method = "GET";
  request.host = "examplebucket.s3.amazonaws.com";
  request.path = "/test.txt";
  request.headers = {{"Range", "bytes=0-9"}};
  EXPECT_EQ(authorization(request),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SignS3, PutsAnObjectWhosePathNeedsEncoding) {
  S3Request request;
  request.method = "PUT";
  request.host = "examplebucket.s3.amazonaws.com";
  request.path = "/test$file.text";
  request.headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                     {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  request.body = "Welcome to Amazon S3.";
  EXPECT_NE(authorization(request).find(
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
            std::string::npos);
}

TEST(SignS3, ListsWithAQuery) {
  S3Request request;
  request.method = "GET";
  request.host = "examplebucket.s3.amazonaws.com";
  request.path = "/";
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_NE(authorization(request).find(
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
            std::string::npos);
}

TEST(SignS3, EncodesAsS3Does) {
  EXPECT_EQ(encoded_path("/a b/c+d~é"), "/a%20b/c%2Bd~%C3%A9");
  EXPECT_EQ(encoded_query({{"prefix", "a/b c"}, {"list-type", "2"}}),
            "list-type=2&prefix=a%2Fb%20c");
  EXPECT_EQ(encoded_query({}), "");
}

TEST(SignS3, SendsTheSessionToken) {
  S3Config config = example();
  config.session_token = "token";
  const HttpHeaders headers = sign_s3({"GET", "h", "/", {}, {}, {}}, config, kMay24of2013);
  EXPECT_NE(std::find(headers.begin(), headers.end(),
                      std::pair<std::string, std::string>("x-amz-security-token", "token")),
            headers.end());
}

}  // namespace
}  // namespace purlin::blobs
