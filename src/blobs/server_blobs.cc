// SPDX-License-Identifier: Apache-2.0
#include "blobs/server_blobs.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "blobs/patient_http.h"
#include "blobs/store_clock.h"

#include <algorithm>
#include <cstdlib>
#include <span>

namespace purlin::blobs {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{16} << 20;
constexpr int kMaxServerPages = 1000;

class ServerBlobs : public BlobStore {
 public:
  ServerBlobs(ServerConfig config, std::unique_ptr<HttpClient> http, Clock& clock,
              std::uint64_t seed)
      : config_(std::move(config)),
        root_(config_.server + "/v1/caches/" + config_.cache + "/objects"),
        clock_(clock),
        http_(std::move(http), clock, seed) {}

  Result<Blob> get(const std::string& key, std::size_t max_bytes) override {
    PURLIN_TRY(check_key(key));
    PURLIN_ASSIGN(HttpResponse answer, ask("GET", "/" + key, {}, {}, max_bytes));
    if (answer.status != 200) return failure("read", "/" + key, answer);
    // An answer without an ETag is not from a Purlin server: it can be a proxy's login page.
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
      if ((*page)["now_ns"].is_int())
        to_local_clock(std::span(found).subspan(before), (*page)["now_ns"].as_int(),
                       clock_.wall_ns());
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
    std::string reason =
        ours ? (*json)["error"]["message"].as_string().substr(0, 500) : of_a_proxy(answer.status);
    if (!ours && reason.empty() && answer.status < 500) return stranger(answer);
    if (answer.status == 404) return error(Code::kNotFound, "'{}{}' does not exist", root_, path);
    if (answer.status == 401 || answer.status == 403) reason += about_token();
    return error(is_passing_status(answer.status) ? Code::kUnavailable : Code::kInvalid,
                 "cannot {} '{}{}': HTTP {}{}{}", verb, root_, path, answer.status,
                 reason.empty() ? "" : ": ", reason);
  }

  // What proxies answer for themselves before any server is asked; "" for other statuses.
  static std::string of_a_proxy(int status) {
    if (status == 407)
      return "a proxy between here and the server wants credentials; put them into the proxy's "
             "address (https_proxy), or name the server in no_proxy";
    if (status == 408 || status == 429) return "a proxy before the server is busy; try again later";
    if (status == 413)
      return "a proxy before the server refuses bodies of that size; let it take 64 MiB (nginx: "
             "client_max_body_size 64m)";
    if (status == 502 || status == 503 || status == 504)
      return "a proxy before the server gets no answer from it; is `purlin serve` running there?";
    return "";
  }

  std::string about_token() const {
    if (!config_.token.empty())
      return "; the token in use is that of PURLIN_SERVER_TOKEN or its file";
    if (!config_.token_is_for.empty())
      return fmt::format("; no token was sent, for yours is for PURLIN_SERVER, '{}'",
                         config_.token_is_for);
    return "; set PURLIN_SERVER_TOKEN, or PURLIN_SERVER_TOKEN_FILE to a file with it";
  }

  Status stranger(const HttpResponse& answer) const {
    return error(Code::kInvalid,
                 "'{}' does not answer as a Purlin server does (HTTP {}, {}); is the address that "
                 "of `purlin serve`?",
                 config_.server, answer.status, answer.header("content-type"));
  }

  const ServerConfig config_;
  const std::string root_;
  Clock& clock_;
  PatientHttp http_;
};

bool is_token(std::string_view text, std::size_t max_bytes = kMaxToken) {
  return !text.empty() && text.size() <= max_bytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<std::string> token_of_environment() {
  if (const char* token = ::secure_getenv("PURLIN_SERVER_TOKEN");
      token != nullptr && *token != '\0')
    return std::string(trim(token));
  if (const char* file = ::secure_getenv("PURLIN_SERVER_TOKEN_FILE");
      file != nullptr && *file != '\0') {
    const Result<std::string> text = read_file(file, kMaxToken + 1);
    if (!text.is_ok()) return text.status().with_context("PURLIN_SERVER_TOKEN_FILE");
    return std::string(trim(*text));
  }
  return std::string();
}

// "http://build7:8717/tools" of an address, so that equal addresses are equal texts. Scheme and
// host are in lower case, without the scheme's default port and without a '/' at the end. "" for a
// text that is no address, and where the path could lead elsewhere ("..").
std::string plain_address(std::string text) {
  while (ends_with(text, "/")) text.pop_back();
  const std::size_t scheme = text.find("://");
  if (scheme == std::string::npos) return "";
  const std::size_t host = scheme + 3, path = std::min(text.find('/', host), text.size());
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < '\x7f' &&
           std::string_view("@?#%\\\"<>{}|^`").find(c) == std::string_view::npos;
  });
  if (!plain || path == host) return "";
  if (path != text.size())
    for (const std::string& part : split(text.substr(path + 1), '/'))
      if (part.empty() || part == "." || part == "..") return "";
  std::string origin = text.substr(0, path);
  for (char& c : origin) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::string_view scheme_name = std::string_view(origin).substr(0, scheme);
  if (scheme_name != "http" && scheme_name != "https") return "";
  const std::string_view own_port = scheme_name == "http" ? ":80" : ":443";
  if (ends_with(origin, own_port)) origin.resize(origin.size() - own_port.size());
  return origin + text.substr(path);
}

}  // namespace

Result<ServerConfig> parse_server_target(const std::string& target) {
  const std::string text = plain_address(target);
  const std::size_t slash = text.rfind('/');
  ServerConfig config;
  if (slash != std::string::npos && slash > text.find("://") + 2) {
    config.server = text.substr(0, slash);
    config.cache = text.substr(slash + 1);
  }
  if (config.cache.empty() || !check_key(config.cache).is_ok())
    return error(Code::kInvalid,
                 "'{}' is not http://HOST:PORT/NAME; NAME is that of a cache on the server, which "
                 "the first push makes (a token belongs in PURLIN_SERVER_TOKEN)",
                 target);
  return config;
}

Result<std::string> parse_server_address(const std::string& text) {
  std::string address = plain_address(text);
  if (!address.empty()) return address;
  return error(Code::kInvalid,
               "'{}' is not the address of a server: http://HOST:PORT or https://HOST", text);
}

Result<std::string> read_token(const std::string& file, std::size_t max_bytes) {
  PURLIN_ASSIGN(const std::string text, read_file(file, max_bytes + 64));
  std::string token(trim(text));
  if (is_token(token, max_bytes)) return token;
  return error(Code::kInvalid, "'{}' holds no token: one word of up to {} characters", file,
               max_bytes);
}

Result<ServerConfig> load_server_config(const std::string& target) {
  PURLIN_ASSIGN(ServerConfig config, parse_server_target(target));
  PURLIN_ASSIGN(std::string token, token_of_environment());
  if (!token.empty() && !is_token(token))
    return error(Code::kInvalid,
                 "PURLIN_SERVER_TOKEN, or the file of PURLIN_SERVER_TOKEN_FILE, is no token: one "
                 "word of up to {} characters",
                 kMaxToken);
  if (const char* only = ::secure_getenv("PURLIN_SERVER"); only != nullptr && *only != '\0') {
    const std::string server = plain_address(only);
    if (server.empty())
      return error(Code::kInvalid,
                   "PURLIN_SERVER, '{}', is not http://HOST:PORT, or https://HOST/PATH before a "
                   "cache's name",
                   only);
    if (config.server != server && !starts_with(config.server, server + "/")) {
      if (!token.empty()) config.token_is_for = server;
      token.clear();
    }
  }
  config.token = std::move(token);
  return config;
}

std::unique_ptr<BlobStore> make_server_blobs(ServerConfig config, std::unique_ptr<HttpClient> http,
                                             Clock& clock, std::uint64_t seed) {
  return std::make_unique<ServerBlobs>(std::move(config), std::move(http), clock, seed);
}

}  // namespace purlin::blobs
