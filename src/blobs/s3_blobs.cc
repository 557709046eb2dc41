// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_blobs.h"

#include "base/text.h"
#include "blobs/patient_http.h"
#include "blobs/s3_signature.h"
#include "blobs/s3_xml.h"
#include "blobs/store_clock.h"

#include <algorithm>

namespace purlin::blobs {
namespace {

constexpr int kMaxPages = 1000;
constexpr std::size_t kMaxListing = std::size_t{16} << 20;

class S3Blobs : public BlobStore {
 public:
  S3Blobs(S3Config config, std::unique_ptr<HttpClient> http, Clock& clock, std::uint64_t seed,
          std::unique_ptr<CredentialSource> credentials)
      : config_(std::move(config)),
        clock_(clock),
        http_(std::move(http), clock, seed),
        credentials_(std::move(credentials)) {
    const std::string base = config_.base_url();
    const std::size_t host = base.find("://") + 3,
                      slash = std::min(base.find('/', host), base.size());
    origin_ = base.substr(0, slash);
    host_ = base.substr(host, slash - host);
    root_ = base.substr(slash);
  }

  Result<Blob> get(const std::string& key, std::size_t max_bytes) override {
    PURLIN_TRY(check_key(key));
    PURLIN_ASSIGN(HttpResponse answer, ask("GET", key, {}, {}, {}, max_bytes));
    if (answer.status != 200) return failure("read", key, answer);
    // Without an ETag, a later write could not be distinguished from the write of another client.
    if (answer.header("etag").empty())
      return error(Code::kInvalid,
                   "'{}/{}' came without an ETag; a proxy that takes it away, or a service without "
                   "conditional writes, cannot hold a shared cache",
                   name(), key);
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
    std::vector<std::pair<std::string, std::string>> query = {{"list-type", "2"},
                                                              {"prefix", config_.prefix + folder}};
    std::string next;
    for (int pages = 0; pages < kMaxPages; ++pages) {
      auto page_query = query;
      if (!next.empty()) page_query.emplace_back("continuation-token", next);
      PURLIN_ASSIGN(const HttpResponse answer, ask("GET", "", page_query, {}, {}, kMaxListing));
      if (answer.status != 200) return failure("list", folder, answer);
      Result<ListPage> page = parse_list_page(answer.body);
      if (!page.is_ok()) return page.status().with_context(name());
      if (const std::optional<std::int64_t> now = parse_http_date(answer.header("date")))
        to_local_clock(page->blobs, *now, clock_.wall_ns());
      for (BlobInfo& blob : page->blobs) {
        if (!starts_with(blob.key, config_.prefix + folder)) continue;
        blob.key.erase(0, config_.prefix.size());
        if (blob.key.find('/', folder.size()) == std::string::npos)
          found.push_back(std::move(blob));
      }
      next = page->next;
      if (next.empty()) {
        std::sort(found.begin(), found.end(),
                  [](const BlobInfo& a, const BlobInfo& b) { return a.key < b.key; });
        return found;
      }
    }
    return error(Code::kInvalid, "'{}' lists without end", name());
  }

  Status remove(const std::string& key) override {
    PURLIN_TRY(check_key(key));
    PURLIN_ASSIGN(const HttpResponse answer, ask("DELETE", key, {}, {}, {}, kMaxListing));
    if (answer.status == 200 || answer.status == 204 || answer.status == 404) return Status::ok();
    return failure("remove", key, answer);
  }

  std::string name() const override {
    std::string text = "s3://" + config_.bucket;
    if (!config_.prefix.empty()) text += "/" + config_.prefix.substr(0, config_.prefix.size() - 1);
    return text;
  }

 private:
  Result<Put> put(const std::string& key, std::string_view bytes,
                  std::pair<std::string, std::string> condition) {
    PURLIN_TRY(check_key(key));
    PURLIN_ASSIGN(
        const HttpResponse answer,
        ask("PUT", key, {}, {std::move(condition), {"Content-Type", "application/octet-stream"}},
            bytes, kMaxListing));
    if (answer.status == 200) return Put::kStored;
    // If-Match on an object that is gone is answered with 404.
    if (answer.status == 412) return Put::kConflict;
    if (answer.status == 404 && parse_s3_error(answer.body).code == "NoSuchKey")
      return Put::kConflict;
    return failure("write", key, answer);
  }

  Result<HttpResponse> ask(const std::string& method, const std::string& key,
                           std::vector<std::pair<std::string, std::string>> query,
                           HttpHeaders headers, std::string_view body, std::size_t max_bytes) {
    S3Request request;
    request.method = method;
    request.host = host_;
    request.path = key.empty() ? root_.empty() ? "/" : root_ : root_ + "/" + config_.prefix + key;
    request.query = std::move(query);
    request.headers = std::move(headers);
    request.body = body;
    HttpRequest http;
    http.method = method;
    http.url = origin_ + encoded_path(request.path);
    if (!request.query.empty()) http.url += "?" + encoded_query(request.query);
    http.body = body;
    http.max_bytes = max_bytes;
    const auto send = [&]() -> Result<HttpResponse> {
      PURLIN_TRY(renew_keys());
      return http_.send(name(), [&] {
        http.headers = sign_s3(request, config_, clock_.wall_ns() / 1'000'000'000);
        return http;
      });
    };
    Result<HttpResponse> answer = send();
    if (!credentials_ || !answer.is_ok() || (answer->status != 400 && answer->status != 403))
      return answer;
    // Keys may end early: the role was changed, or this machine's clock is behind.
    const std::string code = parse_s3_error(answer->body).code;
    if (code != "ExpiredToken" && code != "InvalidToken") return answer;
    credentials_->forget();
    return send();
  }

  Status renew_keys() {
    if (!credentials_) return Status::ok();
    Result<Credentials> current = credentials_->current();
    if (!current.is_ok())
      return error(Code::kUnavailable,
                   "no credentials for '{}': {}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                   "or give the machine a role",
                   name(), current.status().message());
    config_.access_key = std::move(current->access_key);
    config_.secret_key = std::move(current->secret_key);
    config_.session_token = std::move(current->session_token);
    return Status::ok();
  }

  Status failure(std::string_view verb, const std::string& key, const HttpResponse& answer) const {
    const S3Error reason = parse_s3_error(answer.body);
    const std::string where = name() + "/" + key;
    if (answer.status == 404 && reason.code != "NoSuchBucket")
      return error(Code::kNotFound, "'{}' does not exist", where);
    std::string advice;
    if (reason.code == "NoSuchBucket") advice = "; create the bucket first";
    if (reason.code == "RequestTimeTooSkewed") advice = "; this machine's clock is wrong";
    if (const std::string region = answer.header("x-amz-bucket-region");
        !region.empty() && region != config_.region)
      advice = fmt::format("; the bucket is in region '{}': set AWS_REGION", region);
    else if (answer.status == 401 || answer.status == 403)
      advice += fmt::format("; the credentials in use are those of '{}'", config_.access_key);
    return error(is_passing_status(answer.status) ? Code::kUnavailable : Code::kInvalid,
                 "cannot {} '{}': HTTP {} {} {}{}", verb, where, answer.status, reason.code,
                 reason.message.substr(0, 300), advice);
  }

  S3Config config_;
  Clock& clock_;
  PatientHttp http_;
  const std::unique_ptr<CredentialSource> credentials_;
  std::string origin_, host_, root_;  // "http://h:1", "h:1", "/bucket" or ""
};

}  // namespace

std::unique_ptr<BlobStore> make_s3_blobs(S3Config config, std::unique_ptr<HttpClient> http,
                                         Clock& clock, std::uint64_t seed,
                                         std::unique_ptr<CredentialSource> credentials) {
  return std::make_unique<S3Blobs>(std::move(config), std::move(http), clock, seed,
                                   std::move(credentials));
}

}  // namespace purlin::blobs
