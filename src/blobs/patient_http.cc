// SPDX-License-Identifier: Apache-2.0
#include "blobs/patient_http.h"

#include <algorithm>

namespace purlin::blobs {
namespace {

constexpr int kAttempts = 6;
constexpr double kFirstPauseS = 0.1, kLongestPauseS = 5;

}  // namespace

bool is_passing_status(int status) {
  return status == 408 || status == 409 || status == 429 || status == 500 || status == 502 ||
         status == 503 || status == 504;
}

Result<HttpResponse> PatientHttp::send(const std::string& name,
                                       const std::function<HttpRequest()>& make) {
  for (int attempt = 1;; ++attempt) {
    Result<HttpResponse> answer = http_->send(make());
    const bool passing = answer.is_ok() ? is_passing_status(answer->status)
                                        : answer.status().code() == Code::kUnavailable ||
                                              answer.status().code() == Code::kTimeout;
    if (!passing) return answer;
    if (attempt == kAttempts) {
      if (answer.is_ok()) return answer;
      return answer.status().with_context(
          fmt::format("'{}' does not answer ({} attempts)", name, kAttempts));
    }
    const double longest =
        std::min(kLongestPauseS, kFirstPauseS * static_cast<double>(1 << attempt));
    clock_.sleep_ns(static_cast<std::int64_t>(random_.uniform(longest / 2, longest) * 1e9));
  }
}

}  // namespace purlin::blobs
