// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/ingest_api.h"

#include "base/sha256.h"
#include "base/text.h"
#include "fleet/answers.h"

#include <algorithm>
#include <semaphore>

namespace purlin::fleet {
namespace {

constexpr std::uint64_t kMaxBatchBytes = std::uint64_t{8} << 20;
// Decoding may take 64 MiB for a batch of 8 MiB or less: that of a few at once.
constexpr std::ptrdiff_t kDecodedAtOnce = 4;
constexpr int kNewerRetryS = 600;

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

HttpAnswer retry_later(int status, std::string_view message, int seconds) {
  HttpAnswer answer = error_answer(status, message);
  answer.headers.emplace_back("Retry-After", std::to_string(seconds));
  return answer;
}

// 422 and 400 are for good; everything else is sent again.
HttpAnswer failed(const Status& status) {
  switch (status.code()) {
    case Code::kInvalid:
      return error_answer(422, status.message());
    case Code::kIo:
      return retry_later(507, "the store's disk takes nothing", 10);
    case Code::kUnavailable:
    case Code::kTimeout:
    case Code::kCancelled:
      return retry_later(503, "the store cannot be reached", 5);
    default:
      return retry_later(500, "the store failed", 30);
  }
}

class BatchApi {
 public:
  BatchApi(StoreGate& gate, Clock& clock, const WindowRequests* windows)
      : gate_(gate), clock_(clock), windows_(windows) {}

  HttpAnswer take(const Request& request) {
    HttpAnswer answer = store(request);
    answer.headers.emplace_back("X-Purlin-Time", std::to_string(clock_.wall_ns()));
    return answer;
  }

 private:
  HttpAnswer store(const Request& request) {
    const std::string hash(request.head.header("x-purlin-batch"));
    if (!is_sha256(hash))
      return error_answer(400, "X-Purlin-Batch is the SHA-256 of the body, in lower case");
    // It was damaged on its way: the sender has it whole.
    if (sha256_hex(request.body) != hash)
      return error_answer(412, "the body does not have the hash of X-Purlin-Batch; send it again");
    Result<store::Batch> batch = decoded(request.body);
    if (!batch.is_ok() && batch.status().code() == Code::kCorrupt)
      return retry_later(501, batch.status().message(), kNewerRetryS);
    if (!batch.is_ok()) return error_answer(422, batch.status().message());
    batch.value().skew_ns = skew_of(request, *batch);
    const bool wanted = windows_ != nullptr && windows_->is_wanted(batch->node);
    const Result<store::Ingest> ingested = gate_.ingest({hash, std::move(batch).value()});
    if (!ingested.is_ok()) return failed(ingested.status());
    HttpAnswer answer;
    answer.status = 204;
    if (wanted) answer.headers.emplace_back("X-Purlin-Windows", "true");
    if (*ingested == store::Ingest::kDuplicate)
      answer.headers.emplace_back("X-Purlin-Duplicate", "true");
    if (*ingested == store::Ingest::kQuarantined)
      answer.headers.emplace_back("X-Purlin-Quarantined", "true");
    if (*ingested == store::Ingest::kTooOld)
      answer.headers.emplace_back("X-Purlin-Too-Old", "true");
    return answer;
  }

  Result<store::Batch> decoded(const std::string& body) {
    decoding_.acquire();
    Result<store::Batch> batch = store::decode(body);
    decoding_.release();
    return batch;
  }

  // By the node's clock at the time of this request: the batch may have waited for days.
  std::int64_t skew_of(const Request& request, const store::Batch& batch) {
    const std::optional<std::int64_t> sent = parse_int(request.head.header("x-purlin-sent"));
    return clock_.wall_ns() - sent.value_or(batch.sent_ns);
  }

  StoreGate& gate_;
  Clock& clock_;
  const WindowRequests* const windows_;  // nullptr: none
  std::counting_semaphore<kDecodedAtOnce> decoding_{kDecodedAtOnce};
};

}  // namespace

std::vector<Endpoint> ingest_endpoints(StoreGate& gate, Clock& clock,
                                       const WindowRequests* windows) {
  const auto api = std::make_shared<BatchApi>(gate, clock, windows);
  return {{.method = "POST",
           .path = "/v1/batches",
           .scope = Scope::kIngest,
           .kind = "post_batch",
           .summary = "Stores a batch of a collector; X-Purlin-Batch is the SHA-256 of the body",
           .answer = "",
           .max_body = kMaxBatchBytes,
           .handle = [api](const Request& request) { return api->take(request); }}};
}

}  // namespace purlin::fleet
