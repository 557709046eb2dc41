// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/shipper.h"

#include "base/json/json.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>

namespace purlin::fleet {
namespace {

constexpr double kFirstPauseS = 1, kLongestPauseS = 120, kLongestRetryAfterS = 3600, kIdleS = 1;
constexpr int kMaxInOneStep = 64;
constexpr double kRequestTimeoutS = 30;
constexpr double kWindowPauseS = 10, kNoWindowsPauseS = 600;

// What the server will say again however often it is asked. A proxy that refuses can be mended.
bool is_final_refusal(const blobs::HttpResponse& answer) {
  if (answer.status != 400 && answer.status != 413 && answer.status != 422) return false;
  const Result<Json> body = Json::parse(answer.body);
  return body.is_ok() && starts_with((*body)["schema"].as_string(), "purlin.error/");
}

}  // namespace

Shipper::Shipper(ShipperOptions options, std::unique_ptr<blobs::HttpClient> http, BatchSpool& spool,
                 Clock& clock, Log& log, std::uint64_t seed)
    : options_(std::move(options)),
      http_(std::move(http)),
      spool_(spool),
      clock_(clock),
      log_(log),
      random_(seed) {}

double Shipper::step() {
  for (int i = 0; i < kMaxInOneStep; ++i) {
    const std::optional<WaitingBatch> batch = spool_.next_to_send();
    if (!batch) {
      exchange_windows();
      send_raw();
      return kIdleS;
    }
    if (send(*batch) == Outcome::kLater) return pause_s_;
  }
  return 0;
}

Shipper::Outcome Shipper::send(const WaitingBatch& batch) {
  const Result<std::string> bytes = spool_.read(batch);
  if (!bytes.is_ok()) {
    log_.warn("a batch is put aside: {}", bytes.status().message());
    refused_.fetch_add(1);
    return spool_.bury(batch).is_ok() ? Outcome::kGone : fail("the dead letter folder fails", 1);
  }
  const std::int64_t before_ns = clock_.wall_ns();
  blobs::HttpRequest request{"POST", options_.server + "/v1/batches", {}, *bytes, kRequestTimeoutS};
  request.max_bytes = 64 << 10;
  request.headers = headers();
  request.headers.emplace_back("Content-Type", "application/zstd");
  request.headers.emplace_back("X-Purlin-Batch", batch.hash);
  request.headers.emplace_back("X-Purlin-Sent", std::to_string(before_ns));
  const Result<blobs::HttpResponse> response = http_->send(request);
  last_status_.store(response.is_ok() ? response->status : 0);
  if (!response.is_ok()) return fail(response.status().message(), 0);
  learn_clock(*response, before_ns, clock_.wall_ns());
  return settle(batch, *response);
}

blobs::HttpHeaders Shipper::headers() const {
  const std::string token = options_.token ? options_.token() : "";
  return token.empty() ? blobs::HttpHeaders()
                       : blobs::HttpHeaders{{"Authorization", "Bearer " + token}};
}

// One between two looks for batches.
void Shipper::send_raw() {
  if (options_.raws == nullptr || clock_.monotonic_ns() < raws_after_ns_) return;
  const std::optional<RawCapture> raw = options_.raws->next_to_send();
  if (!raw) return;
  const Result<std::string> bytes = options_.raws->read(*raw);
  if (!bytes.is_ok()) return options_.raws->give_up(*raw, "raw_damaged");
  blobs::HttpRequest request{
      "PUT", options_.server + "/v1/raw/" + raw->pointer.sha256, {}, *bytes, kRequestTimeoutS};
  request.max_bytes = 64 << 10;
  request.headers = headers();
  request.headers.emplace_back("Content-Type", "application/octet-stream");
  const Result<blobs::HttpResponse> response = http_->send(request);
  if (!response.is_ok()) return put_off_raws(response.status().message());
  // An older server has no place for them (404, 405).
  if (is_final_refusal(*response) || response->status == 404 || response->status == 405)
    return options_.raws->give_up(*raw, "raw_refused");
  if (response->status != 204 && response->status != 200)
    return put_off_raws(fmt::format("it answers {} {}", response->status, trim(response->body)));
  if (const Status sent = options_.raws->sent(*raw); !sent.is_ok())
    return put_off_raws(sent.message());
  raw_failures_in_row_ = 0;
}

// A server that knows no windows has not said that one is wanted, unless it is an earlier one now.
void Shipper::exchange_windows() {
  if (options_.windows == nullptr || clock_.monotonic_ns() < windows_after_ns_) return;
  if (!window_wanted_ && !options_.windows->has_reports()) return;
  const auto pause = [this](double most_s) {
    windows_after_ns_ =
        clock_.monotonic_ns() + static_cast<std::int64_t>(most_s * random_.uniform(0.5, 1) * 1e9);
  };
  const Json sent = options_.windows->exchange();
  const std::string body = sent.dump();
  blobs::HttpRequest request{
      "POST", options_.server + "/v1/windows/exchange", {}, body, kRequestTimeoutS};
  request.max_bytes = 64 << 10;
  request.headers = headers();
  request.headers.emplace_back("Content-Type", "application/json");
  const Result<blobs::HttpResponse> response = http_->send(request);
  if (!response.is_ok() || response->status != 200)
    return pause(response.is_ok() && response->status / 100 == 4 && response->status != 429
                     ? kNoWindowsPauseS
                     : kWindowPauseS);
  const Result<Json> answer = Json::parse(response->body);
  const Status settled = answer.is_ok() ? options_.windows->settle(sent, *answer) : answer.status();
  if (!settled.is_ok()) {
    log_.warn("a requested window waits: {}", settled.message());
    return pause(kWindowPauseS);
  }
  window_wanted_ = false;
}

void Shipper::put_off_raws(std::string_view reason) {
  if (raw_failures_in_row_ == 0)
    log_.warn("{} does not take a raw profile: {}", options_.server, reason);
  raw_failures_in_row_ = std::min(raw_failures_in_row_ + 1, 20);
  const double pause_s = std::min(kLongestPauseS, std::exp2(raw_failures_in_row_));
  raws_after_ns_ =
      clock_.monotonic_ns() + static_cast<std::int64_t>(pause_s * random_.uniform(0.5, 1) * 1e9);
}

Shipper::Outcome Shipper::settle(const WaitingBatch& batch, const blobs::HttpResponse& response) {
  if (response.status == 204 || response.status == 200) {
    if (const Status removed = spool_.sent(batch); !removed.is_ok())
      return fail(removed.message(), 1);  // it is sent again, and counts once
    sent_.fetch_add(1);
    if (!response.header("x-purlin-duplicate").empty()) duplicates_.fetch_add(1);
    if (!response.header("x-purlin-windows").empty()) window_wanted_ = true;
    last_sent_ns_.store(clock_.wall_ns());
    if (std::exchange(failures_in_row_, 0) > 0)
      log_.info("{} takes batches again", options_.server);
    said_.clear();
    return Outcome::kGone;
  }
  if (is_final_refusal(response)) {
    log_.warn("{} refuses batch {}: {} {}", options_.server, batch.hash, response.status,
              trim(response.body));
    if (const Status buried = spool_.bury(batch); !buried.is_ok()) return fail(buried.message(), 1);
    refused_.fetch_add(1);
    return Outcome::kGone;
  }
  const double asked_s = parse_double(response.header("retry-after")).value_or(0);
  return fail(fmt::format("it answers {} {}", response.status, trim(response.body)),
              std::clamp(asked_s, 0.0, kLongestRetryAfterS));
}

// A reason is logged once, not at each attempt.
Shipper::Outcome Shipper::fail(std::string_view reason, double at_least_s) {
  failures_.fetch_add(1);
  const double longest = std::min(kLongestPauseS, kFirstPauseS * std::exp2(failures_in_row_));
  failures_in_row_ = std::min(failures_in_row_ + 1, 20);
  pause_s_ = std::max(at_least_s, longest / 2) * random_.uniform(1, 2);
  if (reason != said_) log_.warn("{} does not take batches: {}", options_.server, reason);
  said_ = reason;
  return Outcome::kLater;
}

void Shipper::learn_clock(const blobs::HttpResponse& response, std::int64_t before_ns,
                          std::int64_t after_ns) {
  const std::optional<std::int64_t> theirs = parse_int(response.header("x-purlin-time"));
  if (theirs) clock_offset_ns_.store(*theirs - (before_ns + (after_ns - before_ns) / 2));
}

ShipperCounts Shipper::counts() const {
  return {sent_.load(),       duplicates_.load(),      refused_.load(),
          failures_.load(),   clock_offset_ns_.load(), last_sent_ns_.load(),
          last_status_.load()};
}

}  // namespace purlin::fleet
