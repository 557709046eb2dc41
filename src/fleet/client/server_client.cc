// SPDX-License-Identifier: Apache-2.0
#include "fleet/client/server_client.h"

#include "blobs/curl_http.h"
#include "blobs/server_blobs.h"

#include <unistd.h>

namespace purlin::fleet {

ServerClient::ServerClient(std::string server, std::string token,
                           std::unique_ptr<blobs::HttpClient> http, Clock& clock)
    : server_(std::move(server)),
      token_(std::move(token)),
      http_(std::move(http), clock,
            static_cast<std::uint64_t>(clock.wall_ns()) ^ static_cast<unsigned>(::getpid())) {}

Result<std::unique_ptr<ServerClient>> ServerClient::open(const std::string& url,
                                                         std::unique_ptr<blobs::HttpClient> http,
                                                         Clock& clock) {
  PURLIN_TRY(blobs::parse_server_address(url).status());
  // Finds the token, as for a cache of that server.
  PURLIN_ASSIGN(
      blobs::ServerConfig config,
      blobs::load_server_config(url.substr(0, url.find_last_not_of('/') + 1) + "/server"));
  return std::unique_ptr<ServerClient>(
      new ServerClient(std::move(config.server), std::move(config.token), std::move(http), clock));
}

Result<std::unique_ptr<ServerClient>> ServerClient::open(const std::string& url, Clock& clock) {
  PURLIN_ASSIGN(std::unique_ptr<blobs::HttpClient> http, blobs::make_curl_http());
  return open(url, std::move(http), clock);
}

Result<Json> ServerClient::post(std::string_view path, const Json& document) {
  return json("POST", path, document.dump());
}

Result<Json> ServerClient::post(std::string_view path) { return json("POST", path, ""); }

Result<Json> ServerClient::get(std::string_view path) { return json("GET", path, ""); }

Result<std::string> ServerClient::bytes(std::string_view path) {
  PURLIN_ASSIGN(blobs::HttpResponse answer, send("GET", path, ""));
  return std::move(answer.body);
}

Result<Json> ServerClient::json(std::string_view method, std::string_view path,
                                const std::string& body) {
  PURLIN_ASSIGN(const blobs::HttpResponse answer, send(method, path, body));
  Result<Json> json = Json::parse(answer.body);
  if (json.is_ok()) return json;
  return error(Code::kUnavailable, "{}: the answer is no JSON: {}", server_,
               json.status().message());
}

Result<blobs::HttpResponse> ServerClient::send(std::string_view method, std::string_view path,
                                               const std::string& body) {
  PURLIN_ASSIGN(blobs::HttpResponse answer, http_.send(server_, [&] {
    blobs::HttpRequest request;
    request.method = std::string(method);
    request.url = server_ + std::string(path);
    if (!body.empty()) request.headers = {{"Content-Type", "application/json"}};
    if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
    request.body = body;
    request.timeout_s = 30;
    request.max_bytes = std::size_t{64} << 20;
    return request;
  }));
  if (answer.status / 100 == 2) return answer;
  const Result<Json> json = Json::parse(answer.body);
  const std::string why = json.is_ok() ? (*json)["error"]["message"].as_string() : "";
  const Code code = answer.status == 410       ? Code::kCancelled
                    : answer.status / 100 == 4 ? Code::kInvalid
                                               : Code::kUnavailable;
  return error(code, "{}: HTTP status {}{}{}", server_, answer.status, why.empty() ? "" : ": ",
               why);
}

}  // namespace purlin::fleet
