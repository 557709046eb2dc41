// SPDX-License-Identifier: Apache-2.0
#include "fleet/alerts/courier.h"

#include "base/files.h"
#include "base/text.h"
#include "blobs/curl_http.h"

namespace purlin::fleet {
namespace {

constexpr std::int64_t kForgottenNs = 24LL * 3600 * 1'000'000'000;
constexpr std::string_view kCourierSchema = "purlin.alerts-delivered/1";

}  // namespace

Courier::Courier(std::string path, std::unique_ptr<blobs::PatientHttp> http, Clock& clock, Log& log)
    : path_(std::move(path)), http_(std::move(http)), clock_(&clock), log_(&log) {}
Courier::Courier(Courier&&) noexcept = default;
Courier& Courier::operator=(Courier&&) noexcept = default;
Courier::~Courier() = default;

Result<Courier> Courier::open(const std::string& state_path,
                              std::unique_ptr<blobs::HttpClient> http, Clock& clock, Log& log) {
  auto patient = std::make_unique<blobs::PatientHttp>(std::move(http), clock,
                                                      static_cast<std::uint64_t>(clock.wall_ns()));
  Courier courier(state_path, std::move(patient), clock, log);
  PURLIN_TRY(courier.load());
  return courier;
}

Status Courier::load() {
  if (!file_exists(path_)) return Status::ok();
  PURLIN_ASSIGN(const std::string text, read_file(path_, std::size_t{16} << 20));
  const Result<Json> json = Json::parse(text);
  if (!json.is_ok() || (*json)["schema"].as_string() != kCourierSchema)
    return error(Code::kCorrupt,
                 "'{}' is no {} document; remove it, and every open finding is sent again", path_,
                 kCourierSchema);
  for (const Json::Member& member : (*json)["delivered"].members())
    seen_[member.key] = {member.value["delivered_ns"].as_int(), member.value["last_ns"].as_int()};
  return Status::ok();
}

Status Courier::save() const {
  Json delivered = Json::object();
  for (const auto& [key, seen] : seen_)
    delivered.set(key,
                  Json::object({{"delivered_ns", seen.delivered_ns}, {"last_ns", seen.last_ns}}));
  Json json = Json::object({{"schema", kCourierSchema}, {"delivered", std::move(delivered)}});
  return write_atomic(path_, json.dump(1) + "\n");
}

Status Courier::post(const std::string& name, const std::string& url,
                     const std::string& bearer_file, const std::string& body) {
  std::string token;
  if (!bearer_file.empty()) {
    PURLIN_ASSIGN(token, read_file(bearer_file, 4096));
    token = std::string(trim(token));
  }
  PURLIN_ASSIGN(const blobs::HttpResponse answer, http_->send(name, [&] {
    blobs::HttpRequest request;
    request.method = "POST";
    request.url = url;
    request.headers = {{"Content-Type", "application/json"}};
    if (!token.empty()) request.headers.emplace_back("Authorization", "Bearer " + token);
    request.body = body;
    request.timeout_s = 20;
    request.max_bytes = std::size_t{1} << 20;
    return request;
  }));
  if (answer.status / 100 == 2) return Status::ok();
  return error(Code::kUnavailable, "webhook '{}' answered {}", name, answer.status);
}

Status Courier::deliver(const std::vector<Webhook>& webhooks,
                        const std::vector<Finding>& findings) {
  const std::int64_t now_ns = clock_->wall_ns();
  std::erase_if(seen_, [&](const auto& one) { return now_ns - one.second.last_ns > kForgottenNs; });
  for (const Webhook& hook : webhooks) {
    for (const Finding& finding : findings) {
      if (!hook.wants(finding)) continue;
      const std::string key = hook.name + "/" + finding.id();
      if (const auto seen = seen_.find(key); seen != seen_.end()) {
        seen->second.last_ns = now_ns;
        continue;
      }
      const Status sent =
          post(hook.name, hook.url, hook.bearer_file, webhook_body(hook.kind, finding, now_ns));
      if (!sent.is_ok()) {
        ++counts_.failed;
        log_->warn("{}; the finding is sent again at the next round", sent.message());
        break;  // the others of this receiver would fail, too
      }
      ++counts_.delivered;
      seen_[key] = {now_ns, now_ns};
      PURLIN_TRY(save());  // a crash after this sends nothing twice
    }
  }
  return save();
}

Status Courier::send_metrics(const std::string& otlp_url, const std::string& body) {
  return post("otlp", otlp_url, "", body);
}

Result<Courier> open_courier(const std::string& state_path, Clock& clock, Log& log) {
  PURLIN_ASSIGN(std::unique_ptr<blobs::HttpClient> http, blobs::make_curl_http());
  return Courier::open(state_path, std::move(http), clock, log);
}

}  // namespace purlin::fleet
