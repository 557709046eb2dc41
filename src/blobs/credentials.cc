// SPDX-License-Identifier: Apache-2.0
#include "blobs/credentials.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "blobs/s3_signature.h"
#include "blobs/s3_xml.h"

#include <algorithm>

namespace purlin::blobs {
namespace {

constexpr std::int64_t kRenewBeforeNs = std::int64_t{5} * 60 * 1'000'000'000;
constexpr std::size_t kMaxKeyAnswer = std::size_t{1} << 20;
constexpr double kTokenServiceTimeoutS = 20;
// A machine outside of the cloud has no metadata service: nothing answers there.
constexpr double kMetadataTimeoutS = 1;
// A service that is there, on a host that may be busy.
constexpr double kAnsweringTimeoutS = 5;
constexpr int kMetadataAttempts = 2;
constexpr std::string_view kContainerHost = "http://169.254.170.2";

std::string credential_variable(const char* name) { return environment_variable(name); }

// The first line of a small file, such as a token.
Result<std::string> token_in(const std::string& path) {
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxKeyAnswer));
  return std::string(trim(text));
}

// The documents of containers and instances have the same members.
Result<Credentials> from_document(std::string_view text, std::string_view who) {
  const Result<Json> json = Json::parse(text);
  if (!json.is_ok()) return json.status().with_context(std::string(who));
  if (const std::string& code = (*json)["Code"].as_string(); !code.empty() && code != "Success")
    return error(Code::kInvalid, "{}: {} {}", who, code, (*json)["Message"].as_string());
  Result<Credentials> found =
      checked_credentials({(*json)["AccessKeyId"].as_string(),
                           (*json)["SecretAccessKey"].as_string(), (*json)["Token"].as_string()},
                          (*json)["Expiration"].as_string());
  return found.is_ok() ? found : found.status().with_context(std::string(who));
}

// Keys go over plain HTTP to this machine and to the addresses of the cloud's own agents alone.
bool is_trusted_container_url(std::string_view url) {
  if (starts_with(url, "https://")) return true;
  if (!starts_with(url, "http://")) return false;
  std::string_view host = url.substr(7);
  host = host.substr(0, host.find('/'));
  const std::size_t port = host.rfind(':');
  if (port != host.npos && host.find(']', port) == host.npos) host = host.substr(0, port);
  constexpr std::string_view kTrusted[] = {"127.0.0.1",     "localhost",      "[::1]",
                                           "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
  return std::find(std::begin(kTrusted), std::end(kTrusted), host) != std::end(kTrusted);
}

}  // namespace

Result<Credentials> checked_credentials(Credentials credentials, std::string_view expiration) {
  if (credentials.access_key.empty() || credentials.secret_key.empty())
    return error(Code::kInvalid, "the answer holds no keys");
  if (const std::optional<std::int64_t> end = parse_rfc3339(expiration))
    credentials.expires_ns = *end;
  return credentials;
}

bool has_web_identity() {
  return !credential_variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty() &&
         !credential_variable("AWS_ROLE_ARN").empty();
}

Ambient machine_credentials() {
  if (!credential_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
      !credential_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty())
    return Ambient::kContainer;
  return credential_variable("AWS_EC2_METADATA_DISABLED") == "true" ? Ambient::kNone
                                                                    : Ambient::kInstance;
}

CredentialSource::CredentialSource(Ambient ambient, std::string region,
                                   std::unique_ptr<HttpClient> http, Clock& clock)
    : ambient_(ambient), region_(std::move(region)), http_(std::move(http)), clock_(clock) {}

Result<Credentials> CredentialSource::current() {
  const std::int64_t now = clock_.wall_ns();
  if (kept_ && (kept_->expires_ns == 0 || now < kept_->expires_ns - kRenewBeforeNs)) return *kept_;
  Result<Credentials> found = fetch();
  if (found.is_ok()) {
    kept_ = *found;
  } else if (kept_ && now < kept_->expires_ns) {
    return *kept_;
  }
  return found;
}

Result<Credentials> CredentialSource::fetch() {
  switch (ambient_) {
    case Ambient::kWebIdentity:
      return from_web_identity();
    case Ambient::kContainer:
      return from_container();
    case Ambient::kInstance:
      return from_instance();
    case Ambient::kNone:
      break;
  }
  return error(Code::kUnavailable, "no place for credentials");
}

Result<std::string> CredentialSource::ask(HttpRequest request, std::string_view who) {
  request.max_bytes = kMaxKeyAnswer;
  request.direct =
      ambient_ != Ambient::kWebIdentity;  // the others are in this machine's own network
  PURLIN_ASSIGN(HttpResponse answer, http_->send(request));
  if (answer.status == 200) return std::move(answer.body);
  const S3Error reason = parse_s3_error(answer.body);
  return error(answer.status >= 500 ? Code::kUnavailable : Code::kInvalid, "{}: HTTP {} {} {}", who,
               answer.status, reason.code, reason.message.substr(0, 300));
}

Result<Credentials> CredentialSource::from_web_identity() {
  PURLIN_ASSIGN(const std::string token,
                token_in(credential_variable("AWS_WEB_IDENTITY_TOKEN_FILE")));
  std::string endpoint = credential_variable("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) endpoint = fmt::format("https://sts.{}.amazonaws.com", region_);
  while (ends_with(endpoint, "/")) endpoint.pop_back();
  // Not signed: the token proves who asks. It is in the body, so that no log of URLs holds it.
  const std::string body =
      encoded_query({{"Action", "AssumeRoleWithWebIdentity"},
                     {"Version", "2011-06-15"},
                     {"RoleArn", credential_variable("AWS_ROLE_ARN")},
                     {"RoleSessionName", environment_variable("AWS_ROLE_SESSION_NAME", "purlin")},
                     {"WebIdentityToken", token}});
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint + "/";
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  request.body = body;
  request.timeout_s = kTokenServiceTimeoutS;
  PURLIN_ASSIGN(const std::string answer, ask(request, "the token service"));
  Result<Credentials> found = parse_assumed_role(answer);
  return found.is_ok() ? found : found.status().with_context("the token service");
}

Result<Credentials> CredentialSource::from_container() {
  HttpRequest request;
  request.method = "GET";
  request.url = credential_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = credential_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
      !path.empty())
    request.url = std::string(kContainerHost) + path;
  if (!is_trusted_container_url(request.url))
    return error(Code::kInvalid,
                 "AWS_CONTAINER_CREDENTIALS_FULL_URI is '{}': give an https URL, or one of this "
                 "machine or of the container's agent",
                 request.url);
  std::string token = credential_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = credential_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !file.empty()) {
    PURLIN_ASSIGN(token, token_in(file));
  }
  if (token.find_first_of("\r\n") != token.npos)
    return error(Code::kInvalid, "the container's authorization token has more than one line");
  if (!token.empty()) request.headers.emplace_back("Authorization", token);
  request.timeout_s = kAnsweringTimeoutS;
  PURLIN_ASSIGN(const std::string answer, ask(request, "the container's credentials"));
  return from_document(answer, "the container's credentials");
}

Result<Credentials> CredentialSource::from_instance() {
  constexpr std::string_view kWho = "the instance's metadata service";
  std::string endpoint =
      environment_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254");
  while (ends_with(endpoint, "/")) endpoint.pop_back();
  HttpRequest request;
  request.timeout_s = kMetadataTimeoutS;
  const auto asked = [&](const char* method, std::string_view path, HttpHeaders headers) {
    request.method = method;
    request.url = endpoint + std::string(path);
    request.headers = std::move(headers);
    return ask(request, kWho);
  };
  const auto token_of_session = [&] {
    return asked("PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "300"}});
  };
  Result<std::string> token = token_of_session();
  for (int attempt = 1; !token.is_ok() && attempt < kMetadataAttempts; ++attempt)
    token = token_of_session();
  if (!token.is_ok()) return token.status();
  request.timeout_s = kAnsweringTimeoutS;
  const HttpHeaders with_token = {{"X-aws-ec2-metadata-token", std::string(trim(*token))}};
  constexpr std::string_view kRoles = "/latest/meta-data/iam/security-credentials/";
  PURLIN_ASSIGN(const std::string roles, asked("GET", kRoles, with_token));
  const std::string role(trim(roles.substr(0, roles.find('\n'))));
  if (role.empty()) return error(Code::kInvalid, "{}: the instance has no role", kWho);
  PURLIN_ASSIGN(const std::string answer,
                asked("GET", std::string(kRoles) + encoded_path(role), with_token));
  return from_document(answer, kWho);
}

}  // namespace purlin::blobs
