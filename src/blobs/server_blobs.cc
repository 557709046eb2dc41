// SPDX-License-Identifier: Apache-2.0
#include "blobs/server_blobs.h"

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "blobs/patient_http.h"

#include <algorithm>
#include <cstdlib>

namespace purlin::blobs {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{16} << 20, kMaxToken = 512;
constexpr int kMaxServerPages = 1000;

class ServerBlobs : public BlobStore {
 public:
  ServerBlobs(ServerConfig config, std::unique_ptr<HttpClient> http, Clock& clock,
              std::uint64_t seed)
      : config_(std::move(config)),
        root_(config_.server + "/v1/caches/" + config_.cache + "/objects"),
        http_(std::move(http), clock, seed) {}

  Result<Blob> get(const std::string& key, std::size_t max_bytes) override {
    PURLIN_TRY(check_key(key));
    PURLIN_ASSIGN(HttpResponse answer, ask("GET", "/" + key, {}, {}, max_bytes));
    if (answer.status != 200) return failure("read", "/" + key, answer);
    // Whatever answers without one is no Purlin server, a login page of a proxy, say.
    if (answer.header("etag").empty()) return stranger(answer);
    return Blob{std::move(answer.body), answer.header("etag")};
  }

  Result<Put> put_if_absent(const std::string& key, std::string_view bytes) override {
    return put(key, bytes, {"If-None-Match", "*"});
  }
  Result<Put> put_if_match(const std::string& key, std::string_view bytes,
                           const std::string& tag) override {
    return put(key, bytes, {"If-Match", tag});
  }

  Result<std::vector<BlobInfo>> list(const std::string& folder) override {
    std::vector<BlobInfo> found;
    for (int pages = 0; pages < kMaxServerPages; ++pages) {
      std::string query = "?folder=" + folder;
      if (!found.empty()) query += "&after=" + found.back().key;
      PURLIN_ASSIGN(const HttpResponse answer, ask("GET", query, {}, {}, kMaxAnswer));
      if (answer.status != 200) return failure("list", query, answer);
      const Result<Json> page = Json::parse(answer.body);
      if (!page.is_ok() || (*page)["schema"].as_string() != "purlin.objects/1")
        return stranger(answer);
      const std::size_t before = found.size();
      for (const Json& object : (*page)["objects"].items()) {
        const std::string& key = object["key"].as_string();
        if (!check_key(key).is_ok() || !starts_with(key, folder)) return stranger(answer);
        found.push_back(
            {key, static_cast<std::uint64_t>(std::max<std::int64_t>(object["bytes"].as_int(), 0)),
             object["modified_ns"].as_int()});
      }
      if (!(*page)["more"].as_bool()) return found;
      if (found.size() == before) break;
    }
    return error(Code::kInvalid, "'{}' lists without end", name());
  }

  Status remove(const std::string& key) override {
    PURLIN_TRY(check_key(key));
    PURLIN_ASSIGN(const HttpResponse answer, ask("DELETE", "/" + key, {}, {}, kMaxAnswer));
    return answer.status == 200 || answer.status == 404 ? Status::ok()
                                                        : failure("remove", "/" + key, answer);
  }

  std::string name() const override { return config_.server + "/" + config_.cache; }

 private:
  Result<Put> put(const std::string& key, std::string_view bytes,
                  std::pair<std::string, std::string> condition) {
    PURLIN_TRY(check_key(key));
    PURLIN_ASSIGN(
        const HttpResponse answer,
        ask("PUT", "/" + key, {std::move(condition), {"Content-Type", "application/octet-stream"}},
            bytes, kMaxAnswer));
    if (answer.status == 201) return Put::kStored;
    if (answer.status == 412) return Put::kConflict;
    return failure("write", "/" + key, answer);
  }

  Result<HttpResponse> ask(const std::string& method, const std::string& path, HttpHeaders headers,
                           std::string_view body, std::size_t max_bytes) {
    HttpRequest request;
    request.method = method;
    request.url = root_ + path;
    request.headers = std::move(headers);
    if (!config_.token.empty())
      request.headers.emplace_back("Authorization", "Bearer " + config_.token);
    request.body = body;
    request.max_bytes = max_bytes;
    return http_.send(name(), [&] { return request; });
  }

  Status failure(std::string_view verb, const std::string& path, const HttpResponse& answer) const {
    const Result<Json> json = Json::parse(answer.body);
    const bool ours = json.is_ok() && (*json)["schema"].as_string() == "purlin.error/1";
    if (!ours && answer.status < 500) return stranger(answer);
    if (answer.status == 404) return error(Code::kNotFound, "'{}{}' does not exist", root_, path);
    std::string reason = ours ? (*json)["error"]["message"].as_string().substr(0, 500) : "";
    if (answer.status == 401 || answer.status == 403)
      reason += config_.token.empty()
                    ? "; set PURLIN_SERVER_TOKEN, or PURLIN_SERVER_TOKEN_FILE to a file with it"
                    : "; the token in use is that of PURLIN_SERVER_TOKEN or its file";
    return error(is_passing_status(answer.status) ? Code::kUnavailable : Code::kInvalid,
                 "cannot {} '{}{}': HTTP {}{}{}", verb, root_, path, answer.status,
                 reason.empty() ? "" : ": ", reason);
  }

  Status stranger(const HttpResponse& answer) const {
    return error(Code::kInvalid,
                 "'{}' does not answer as a Purlin server does (HTTP {}, {}); is the address that "
                 "of `purlin serve`?",
                 config_.server, answer.status, answer.header("content-type"));
  }

  const ServerConfig config_;
  const std::string root_;
  PatientHttp http_;
};

Result<std::string> token_of_environment() {
  if (const char* token = std::getenv("PURLIN_SERVER_TOKEN"); token != nullptr && *token != '\0')
    return std::string(trim(token));
  if (const char* file = std::getenv("PURLIN_SERVER_TOKEN_FILE");
      file != nullptr && *file != '\0') {
    const Result<std::string> text = read_file(file, kMaxToken + 1);
    if (!text.is_ok()) return text.status().with_context("PURLIN_SERVER_TOKEN_FILE");
    return std::string(trim(*text));
  }
  return std::string();
}

}  // namespace

Result<ServerConfig> parse_server_target(const std::string& target) {
  const std::size_t host = target.find("://") + 3;
  const bool plain = std::all_of(target.begin(), target.end(), [](char c) {
    return c > ' ' && c < '\x7f' &&
           std::string_view("@?#%\\\"<>{}|^`").find(c) == std::string_view::npos;
  });
  std::string text = target;
  while (ends_with(text, "/")) text.pop_back();
  const std::size_t slash = text.rfind('/');
  ServerConfig config;
  if (slash != std::string::npos && slash > host) {
    config.server = text.substr(0, slash);
    config.cache = text.substr(slash + 1);
  }
  if (!plain || config.cache.empty() || !check_key(config.cache).is_ok())
    return error(Code::kInvalid,
                 "'{}' is not http://HOST:PORT/NAME; NAME is that of a cache on the server, which "
                 "the first push makes (a token belongs in PURLIN_SERVER_TOKEN)",
                 target);
  return config;
}

Result<ServerConfig> load_server_config(const std::string& target) {
  PURLIN_ASSIGN(ServerConfig config, parse_server_target(target));
  PURLIN_ASSIGN(config.token, token_of_environment());
  if (config.token.size() > kMaxToken || !std::all_of(config.token.begin(), config.token.end(),
                                                      [](char c) { return c > ' ' && c < '\x7f'; }))
    return error(Code::kInvalid,
                 "PURLIN_SERVER_TOKEN, or the file of PURLIN_SERVER_TOKEN_FILE, is no token: one "
                 "word of up to {} characters",
                 kMaxToken);
  return config;
}

std::unique_ptr<BlobStore> make_server_blobs(ServerConfig config, std::unique_ptr<HttpClient> http,
                                             Clock& clock, std::uint64_t seed) {
  return std::make_unique<ServerBlobs>(std::move(config), std::move(http), clock, seed);
}

}  // namespace purlin::blobs
