// SPDX-License-Identifier: Apache-2.0
#include "blobs/curl_http.h"

#include "base/files.h"
#include "base/os/library.h"
#include "base/text.h"

#define CURL_DISABLE_TYPECHECK  // its macros would get in the way of function pointers
#include <algorithm>
#include <cctype>
#include <curl/curl.h>

namespace purlin::blobs {
namespace {

constexpr long kConnectTimeoutMs = 10'000;
constexpr long kStalledBytesPerSecond = 64, kStalledAfterSeconds = 20;
constexpr std::size_t kMaxHeaders = 200;

struct CurlApi {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;

  bool bind(const Library& library) {
    return library.bind(global_init, "curl_global_init") &&
           library.bind(easy_init, "curl_easy_init") &&
           library.bind(easy_cleanup, "curl_easy_cleanup") &&
           library.bind(easy_reset, "curl_easy_reset") &&
           library.bind(easy_setopt, "curl_easy_setopt") &&
           library.bind(easy_getinfo, "curl_easy_getinfo") &&
           library.bind(easy_perform, "curl_easy_perform") &&
           library.bind(easy_strerror, "curl_easy_strerror") &&
           library.bind(slist_append, "curl_slist_append") &&
           library.bind(slist_free_all, "curl_slist_free_all");
  }
};

struct Answer {
  HttpResponse response;
  std::size_t max_bytes = 0;
  bool too_large = false;
};

// Returning another count than was given makes libcurl stop.
std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto* answer = static_cast<Answer*>(user);
  answer->too_large = size > answer->max_bytes - answer->response.body.size();
  if (answer->too_large) return 0;
  answer->response.body.append(data, size);
  return size;
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  HttpHeaders& headers = static_cast<Answer*>(user)->response.headers;
  const std::string_view line(data, size);
  if (starts_with(line, "HTTP/")) headers.clear();  // those before were of an interim answer
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || headers.size() == kMaxHeaders) return size;
  std::string name(trim(line.substr(0, colon)));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  headers.emplace_back(std::move(name), trim(line.substr(colon + 1)));
  return size;
}

class CurlHttp : public HttpClient {
 public:
  CurlHttp(const CurlApi& api, CURL* handle) : api_(api), handle_(handle) {}
  ~CurlHttp() override { api_.easy_cleanup(handle_); }
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;

  Result<HttpResponse> send(const HttpRequest& request) override {
    api_.easy_reset(handle_);  // the connections stay
    Answer answer;
    answer.max_bytes = request.max_bytes;
    char reason[CURL_ERROR_SIZE] = "";
    curl_slist* headers = nullptr;
    const auto add = [&](const std::string& line) {
      if (curl_slist* longer = api_.slist_append(headers, line.c_str()); longer != nullptr)
        headers = longer;
    };
    for (const auto& [name, value] : request.headers) add(name + ": " + value);
    add("Expect:");  // no round trip to ask whether the body is welcome

    const auto set = [&](CURLoption option, auto value) {
      api_.easy_setopt(handle_, option, value);
    };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
    if (request.method == "PUT" || request.method == "POST") {
      set(CURLOPT_POSTFIELDS, request.body.data() == nullptr ? "" : request.body.data());
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(reason));
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &answer);
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &answer);
    set(CURLOPT_NOSIGNAL, 1L);
    if (request.direct) set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_PATH_AS_IS, 1L);  // what was signed is what is sent
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_s * 1000));
    if (!authorities_.empty()) set(CURLOPT_CAINFO, authorities_.c_str());
    set(CURLOPT_LOW_SPEED_LIMIT, kStalledBytesPerSecond);
    set(CURLOPT_LOW_SPEED_TIME, kStalledAfterSeconds);
    const CURLcode code = api_.easy_perform(handle_);
    api_.slist_free_all(headers);
    if (code != CURLE_OK) return failure(code, reason, request, answer.too_large);
    long status = 0;
    api_.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    answer.response.status = static_cast<int>(status);
    return std::move(answer.response);
  }

 private:
  Status failure(CURLcode code, const char* reason, const HttpRequest& request,
                 bool too_large) const {
    if (too_large)
      return error(Code::kInvalid, "the answer to {} {} is over the limit of {} bytes",
                   request.method, request.url, request.max_bytes);
    const std::string text = *reason != '\0' ? reason : api_.easy_strerror(code);
    const Code kind = code == CURLE_OPERATION_TIMEDOUT ? Code::kTimeout
                      : code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
                              code == CURLE_PEER_FAILED_VERIFICATION
                          ? Code::kInvalid
                          : Code::kUnavailable;
    return error(kind, "{} {}: {}", request.method, request.url, text);
  }

  const CurlApi api_;
  CURL* const handle_;
  const std::string authorities_ = environment_variable("PURLIN_SERVER_CA");
};

}  // namespace

Result<std::unique_ptr<HttpClient>> make_curl_http() {
  Result<Library> library =
      Library::open({"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"});
  if (!library.is_ok())
    return error(
        Code::kUnavailable,
        "s3:// and http:// need libcurl, which is not installed (apt-get install libcurl4): {}",
        library.status().message());
  CurlApi api{};
  if (!api.bind(*library))
    return error(Code::kUnavailable, "'{}' is not a usable libcurl; install libcurl4",
                 library->name());
  // libcurl counts its initialisations; it is never unloaded, so neither is this one undone.
  if (api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return error(Code::kUnavailable, "libcurl does not start");
  CURL* handle = api.easy_init();
  if (handle == nullptr) return error(Code::kUnavailable, "libcurl does not start");
  return std::unique_ptr<HttpClient>(std::make_unique<CurlHttp>(api, handle));
}

}  // namespace purlin::blobs
