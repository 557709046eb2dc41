// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_config.h"

#include "base/files.h"
#include "base/text.h"
#include "blobs/blob_store.h"

#include <algorithm>

namespace purlin::blobs {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

bool is_bucket_name(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
         });
}

// {} where there is no such file; one that cannot be read is not worth more than a missing one.
std::map<std::string, std::string> settings_of(const char* variable, std::string_view fallback,
                                               std::string_view profile) {
  const std::string path = environment_variable(
      variable,
      join_path(environment_variable("HOME", "/"), std::string(".aws/").append(fallback)));
  const Result<std::string> text = read_file(path, kMaxFileBytes);
  return text.is_ok() ? profile_settings(*text, profile) : std::map<std::string, std::string>();
}

std::string first_of(std::initializer_list<std::string> values) {
  for (const std::string& value : values)
    if (!value.empty()) return value;
  return "";
}

}  // namespace

std::string S3Config::base_url() const {
  if (!endpoint.empty()) return endpoint + "/" + bucket;
  if (bucket.find('.') != std::string::npos)
    return fmt::format("https://s3.{}.amazonaws.com/{}", region, bucket);
  return fmt::format("https://{}.s3.{}.amazonaws.com", bucket, region);
}

Result<S3Config> parse_s3_target(std::string_view target) {
  std::string_view rest = target;
  rest.remove_prefix(std::min<std::size_t>(rest.size(), 5));  // "s3://"
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  S3Config config;
  config.bucket = rest.substr(0, slash);
  rest.remove_prefix(slash);
  while (starts_with(rest, "/")) rest.remove_prefix(1);
  while (ends_with(rest, "/")) rest.remove_suffix(1);
  if (!starts_with(target, "s3://") || !is_bucket_name(config.bucket) ||
      (!rest.empty() && !check_key(rest).is_ok()))
    return error(Code::kInvalid,
                 "'{}' is not s3://BUCKET/PREFIX (a bucket's name has 3 to 63 lower-case letters, "
                 "digits and .-; a prefix is of letters, digits and ._-/)",
                 target);
  if (!rest.empty()) config.prefix = std::string(rest) + "/";
  return config;
}

std::map<std::string, std::string> profile_settings(std::string_view file,
                                                    std::string_view profile) {
  std::map<std::string, std::string> settings;
  bool inside = false;
  for (const std::string& raw : split(file, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      std::string_view section = trim(line.substr(1, std::min(line.find(']'), line.size()) - 1));
      if (starts_with(section, "profile ")) section = trim(section.substr(8));
      inside = section == profile;
      continue;
    }
    const std::size_t equals = line.find('=');
    const bool nested = raw[0] == ' ' || raw[0] == '\t';  // of a block such as "s3 ="
    if (!inside || nested || equals == std::string_view::npos) continue;
    settings.insert_or_assign(std::string(trim(line.substr(0, equals))),
                              std::string(trim(line.substr(equals + 1))));
  }
  return settings;
}

Result<S3Config> load_s3_config(std::string_view target) {
  PURLIN_ASSIGN(S3Config config, parse_s3_target(target));
  const std::string profile = environment_variable("AWS_PROFILE", "default");
  auto credentials = settings_of("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile);
  auto settings = settings_of("AWS_CONFIG_FILE", "config", profile);
  const auto variable = [](const char* name) { return environment_variable(name); };

  // The parts of one identity are never mixed from several places.
  config.access_key = variable("AWS_ACCESS_KEY_ID");
  config.secret_key = variable("AWS_SECRET_ACCESS_KEY");
  config.session_token = variable("AWS_SESSION_TOKEN");
  const auto complete = [&] { return !config.access_key.empty() && !config.secret_key.empty(); };
  if (!complete() && has_web_identity()) config.ambient = Ambient::kWebIdentity;
  for (auto* place : {&credentials, &settings})
    if (!complete() && config.ambient == Ambient::kNone) {
      config.access_key = (*place)["aws_access_key_id"];
      config.secret_key = (*place)["aws_secret_access_key"];
      config.session_token = (*place)["aws_session_token"];
    }
  if (!complete() && config.ambient == Ambient::kNone) config.ambient = machine_credentials();
  if (!complete() && config.ambient == Ambient::kNone)
    return error(
        Code::kUnavailable,
        "no credentials for '{}': set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give "
        "profile '{}' both in ~/.aws/credentials",
        target, profile);
  config.region = first_of(
      {variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), settings["region"], config.region});
  config.endpoint = first_of(
      {variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL"), settings["endpoint_url"]});
  while (ends_with(config.endpoint, "/")) config.endpoint.pop_back();
  const bool http =
      starts_with(config.endpoint, "http://") || starts_with(config.endpoint, "https://");
  const std::size_t host = config.endpoint.find("://") + 3;
  if (!config.endpoint.empty() &&
      (!http || config.endpoint.find_first_of("/?#@ ", host) != std::string::npos))
    // What stands before an @ may be a password.
    return error(
        Code::kInvalid, "the endpoint '{}' is not http(s)://HOST[:PORT]",
        config.endpoint.find('@') == std::string::npos ? config.endpoint : std::string("…@…"));
  return config;
}

}  // namespace purlin::blobs
