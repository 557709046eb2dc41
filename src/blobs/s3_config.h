// SPDX-License-Identifier: Apache-2.0
// Where a bucket is and who we are there, found as other S3 tools find it. First AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL(_S3), AWS_PROFILE, a web
// identity, then ~/.aws/credentials and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE,
// AWS_CONFIG_FILE), then what the machine gives (credentials.h). Value types. Failure: kInvalid for
// the target or an endpoint, kUnavailable without credentials.
#pragma once

#include "base/status.h"
#include "blobs/credentials.h"

#include <map>
#include <string>
#include <string_view>

namespace purlin::blobs {

struct S3Config {
  std::string bucket, prefix;  // prefix: "" or "a/b/"
  std::string region = "us-east-1";
  std::string endpoint;  // "http://127.0.0.1:9000"; "" = Amazon's of the region
  std::string access_key, secret_key, session_token;  // empty where `ambient` is a place
  Ambient ambient = Ambient::kNone;

  // "https://bucket.s3.eu-west-1.amazonaws.com" or, at an endpoint and for a bucket whose name a
  // certificate does not cover, "ENDPOINT/bucket".
  std::string base_url() const;
};

Result<S3Config> load_s3_config(std::string_view target);

// "s3://bucket/some/prefix" -> bucket and prefix.
Result<S3Config> parse_s3_target(std::string_view target);
// The settings of one profile in a credentials or config file. Lines that are no setting are
// skipped.
std::map<std::string, std::string> profile_settings(std::string_view file,
                                                    std::string_view profile);

}  // namespace purlin::blobs
