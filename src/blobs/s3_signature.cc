// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_signature.h"

#include "base/sha256.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <map>

namespace purlin::blobs {
namespace {

std::string percent_encoded(std::string_view text, bool keep_slash) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 128 && std::isalnum(byte) != 0) || c == '-' || c == '_' ||
                       c == '.' || c == '~' || (keep_slash && c == '/');
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string utc(std::int64_t now_s, const char* format) {
  const auto seconds = static_cast<std::time_t>(now_s);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

}  // namespace

std::string encoded_path(std::string_view path) { return percent_encoded(path, true); }

std::string encoded_query(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) {
    name = percent_encoded(name, false);
    value = percent_encoded(value, false);
  }
  std::sort(query.begin(), query.end());
  std::vector<std::string> parts;
  for (const auto& [name, value] : query) parts.push_back(name + "=" + value);
  return join(parts, "&");
}

HttpHeaders sign_s3(const S3Request& request, const S3Config& config, std::int64_t now_s) {
  const std::string day = utc(now_s, "%Y%m%d"), moment = utc(now_s, "%Y%m%dT%H%M%SZ");
  const std::string body_hash = sha256_hex(request.body);
  HttpHeaders headers = request.headers;
  headers.emplace_back("x-amz-content-sha256", body_hash);
  headers.emplace_back("x-amz-date", moment);
  if (!config.session_token.empty())
    headers.emplace_back("x-amz-security-token", config.session_token);

  std::map<std::string, std::string> canonical = {{"host", request.host}};
  for (const auto& [name, value] : headers) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    canonical[lower] = trim(value);
  }
  std::string header_lines, header_names;
  for (const auto& [name, value] : canonical) {
    header_lines += name + ":" + value + "\n";
    header_names += (header_names.empty() ? "" : ";") + name;
  }
  const std::string canonical_request = request.method + "\n" + encoded_path(request.path) + "\n" +
                                        encoded_query(request.query) + "\n" + header_lines + "\n" +
                                        header_names + "\n" + body_hash;
  const std::string scope = day + "/" + config.region + "/s3/aws4_request";
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + moment + "\n" + scope + "\n" + sha256_hex(canonical_request);

  Digest key = hmac_sha256("AWS4" + config.secret_key, day);
  for (const std::string_view part :
       {std::string_view(config.region), std::string_view("s3"), std::string_view("aws4_request")})
    key = hmac_sha256(as_text(key), part);
  headers.emplace_back(
      "Authorization",
      fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, "
                  "Signature={}",
                  config.access_key, scope, header_names, hex(hmac_sha256(as_text(key), to_sign))));
  return headers;
}

}  // namespace purlin::blobs
