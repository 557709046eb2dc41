// SPDX-License-Identifier: Apache-2.0
// RateLimiter: how much each token may still ask for, as a bucket that fills at the token's rate
// and holds ten seconds of it.
//
// [MT]; waits for nothing. Memory grows with the number of tokens only: a token without limits has
// no bucket. Cannot fail.
#pragma once

#include "fleet/tokens.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace purlin::fleet {

class RateLimiter {
 public:
  // Takes one request with a body of so many bytes. Seconds to wait before the next attempt; 0: it
  // was taken. A body larger than a full bucket is taken from a full one.
  double take(const Tokens::Holder& holder, std::uint64_t bytes, std::int64_t now_ns);

 private:
  struct Bucket {
    double requests = 0, bytes = 0;
    std::int64_t filled_ns = 0;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;  // by the token's hash
};

}  // namespace purlin::fleet
