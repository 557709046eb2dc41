// SPDX-License-Identifier: Apache-2.0
// AWS Signature Version 4 for S3. Our own because libcurl's changed from version to version in how
// it treats queries and the payload's hash. Pure functions.
#pragma once

#include "blobs/http.h"
#include "blobs/s3_config.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::blobs {

struct S3Request {
  std::string method;
  std::string host;                                        // as in the Host header
  std::string path;                                        // "/bucket/key", not encoded
  std::vector<std::pair<std::string, std::string>> query;  // not encoded
  HttpHeaders headers;                                     // further ones, signed as well
  std::string_view body;
};

// The headers to send with it, its own among them; `now_s` in seconds since 1970.
HttpHeaders sign_s3(const S3Request& request, const S3Config& config, std::int64_t now_s);

// As signed, and so as to be sent: "/a%20b/c" and "list-type=2&prefix=x%2F".
std::string encoded_path(std::string_view path);
std::string encoded_query(std::vector<std::pair<std::string, std::string>> query);

}  // namespace purlin::blobs
