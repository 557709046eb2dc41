// SPDX-License-Identifier: Apache-2.0
#include "fleet/rate_limiter.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

constexpr double kBurstS = 10;

double full(double rate, double least) { return std::max(rate * kBurstS, least); }

// Seconds until there is as much as is needed; 0 where there is no limit.
double missing(double held, double needed, double rate) {
  return rate > 0 && held < needed ? (needed - held) / rate : 0;
}

}  // namespace

double RateLimiter::take(const Tokens::Holder& holder, std::uint64_t bytes, std::int64_t now_ns) {
  const TokenLimits& limits = holder.limits;
  if (limits.requests_per_s <= 0 && limits.bytes_per_s <= 0) return 0;
  const double most_requests = full(limits.requests_per_s, 1);
  const double most_bytes = full(limits.bytes_per_s, 0);
  const std::lock_guard lock(mutex_);
  const auto [found, added] = buckets_.try_emplace(holder.id);
  Bucket& bucket = found->second;
  if (added) bucket = {most_requests, most_bytes, now_ns};
  const double passed_s =
      static_cast<double>(std::max<std::int64_t>(0, now_ns - bucket.filled_ns)) / 1e9;
  bucket.filled_ns = std::max(bucket.filled_ns, now_ns);
  bucket.requests = std::min(most_requests, bucket.requests + passed_s * limits.requests_per_s);
  bucket.bytes = std::min(most_bytes, bucket.bytes + passed_s * limits.bytes_per_s);
  const double size = std::min(static_cast<double>(bytes), most_bytes);
  const double wait_s = std::max(missing(bucket.requests, 1, limits.requests_per_s),
                                 missing(bucket.bytes, size, limits.bytes_per_s));
  if (wait_s > 0) return wait_s;
  bucket.requests -= 1;
  bucket.bytes -= size;
  return 0;
}

}  // namespace purlin::fleet
