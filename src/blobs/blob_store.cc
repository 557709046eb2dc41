// SPDX-License-Identifier: Apache-2.0
#include "blobs/blob_store.h"

#include "base/text.h"
#include "blobs/curl_http.h"
#include "blobs/directory_blobs.h"
#include "blobs/s3_blobs.h"
#include "blobs/s3_config.h"
#include "blobs/server_blobs.h"

#include <algorithm>
#include <unistd.h>

namespace purlin::blobs {

namespace {

constexpr double kLongestWaitS = 30;  // for another's swap; disks of others' load take seconds

}  // namespace

Result<std::unique_ptr<BlobStore>> open_blobs(const std::string& target) {
  const std::size_t scheme = target.find("://");
  if (scheme == std::string::npos) {
    if (target.empty()) return error(Code::kInvalid, "the target's name is empty");
    return make_directory_blobs(target, kLongestWaitS);
  }
  const auto seed = static_cast<std::uint64_t>(system_clock().wall_ns()) ^
                    (static_cast<std::uint64_t>(::getpid()) << 32);
  if (starts_with(target, "s3://")) {
    PURLIN_ASSIGN(S3Config config, load_s3_config(target));
    PURLIN_ASSIGN(std::unique_ptr<HttpClient> http, make_curl_http());
    std::unique_ptr<CredentialSource> credentials;
    if (config.ambient != Ambient::kNone) {
      PURLIN_ASSIGN(std::unique_ptr<HttpClient> asking, make_curl_http());
      credentials = std::make_unique<CredentialSource>(config.ambient, config.region,
                                                       std::move(asking), system_clock());
    }
    return make_s3_blobs(std::move(config), std::move(http), system_clock(), seed,
                         std::move(credentials));
  }
  if (starts_with(target, "http://") || starts_with(target, "https://")) {
    PURLIN_ASSIGN(ServerConfig config, load_server_config(target));
    PURLIN_ASSIGN(std::unique_ptr<HttpClient> http, make_curl_http());
    return make_server_blobs(std::move(config), std::move(http), system_clock(), seed);
  }
  return error(Code::kInvalid,
               "'{}': '{}' is not supported; give a directory, s3://BUCKET/PREFIX or "
               "http://HOST:PORT/NAME of a Purlin server",
               target, target.substr(0, scheme + 3));
}

Status check_key(std::string_view key) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  bool ok = !key.empty() && key.size() <= 512;
  for (const std::string& part : split(key, '/'))
    // A file system's names have 255 bytes, of which a writer's temporary takes some.
    ok = ok && !part.empty() && part != "." && part != ".." && part.size() <= 200 &&
         std::all_of(part.begin(), part.end(), plain);
  return ok ? Status::ok() : error(Code::kInvalid, "'{}' is not a key of a shared object", key);
}

}  // namespace purlin::blobs
