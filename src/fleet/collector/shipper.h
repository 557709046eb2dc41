// SPDX-License-Identifier: Apache-2.0
// Shipper: sends the batches of a BatchSpool to a server, the oldest first, one at a time; and the
// raw profiles of a RawSpool when no batch waits. Where the answer to a batch says that a window is
// requested, it exchanges with the server what a WindowTaker takes and reports.
//
// A batch leaves the spool when the server has it durably (204, also for a duplicate). One that the
// server will never take (400, 413, 422) is buried. All else is tried again: after Retry-After, or
// after pauses that grow to two minutes, drawn at random so that the nodes of a fleet do not return
// together. A raw profile that fails waits for its own pause, and batches do not. Owner and thread:
// the caller of step(). Failure: none; the state shows it.
#pragma once

#include "base/log.h"
#include "base/random.h"
#include "base/time.h"
#include "blobs/http.h"
#include "fleet/collector/batch_spool.h"
#include "fleet/collector/raw_spool.h"
#include "fleet/collector/window_taker.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace purlin::fleet {

struct ShipperOptions {
  std::string server;                            // "https://fleet:8717"
  std::function<std::string()> token = nullptr;  // read for each request: it may change
  RawSpool* raws = nullptr;                      // outlives the shipper, as does the next
  WindowTaker* windows = nullptr;
};

struct ShipperCounts {
  std::uint64_t sent = 0, duplicates = 0, refused = 0, failures = 0;
  std::int64_t clock_offset_ns = 0;  // server's clock less this one, at the last answer
  std::int64_t last_sent_ns = 0;     // wall clock; 0: never
  int last_status = 0;               // of the last answer; 0: the server was not reached
};

class Shipper {
 public:
  Shipper(ShipperOptions options, std::unique_ptr<blobs::HttpClient> http, BatchSpool& spool,
          Clock& clock, Log& log, std::uint64_t seed);
  // Sends what waits, until there is nothing or a pause is due. The time of the next call: now +
  // it, in seconds.
  double step();
  ShipperCounts counts() const;  // [MT]

 private:
  enum class Outcome { kGone, kLater };
  Outcome send(const WaitingBatch& batch);
  Outcome settle(const WaitingBatch& batch, const blobs::HttpResponse& response);
  Outcome fail(std::string_view reason, double at_least_s);
  void send_raw();
  void put_off_raws(std::string_view reason);
  void exchange_windows();
  blobs::HttpHeaders headers() const;
  void learn_clock(const blobs::HttpResponse& response, std::int64_t before_ns,
                   std::int64_t after_ns);

  const ShipperOptions options_;
  const std::unique_ptr<blobs::HttpClient> http_;
  BatchSpool& spool_;
  Clock& clock_;
  Log& log_;
  Random random_;
  int failures_in_row_ = 0, raw_failures_in_row_ = 0;
  std::int64_t raws_after_ns_ = 0, windows_after_ns_ = 0;  // monotonic
  bool window_wanted_ = false;                             // the server says so
  double pause_s_ = 0;
  std::string said_;
  std::atomic<std::uint64_t> sent_{0}, duplicates_{0}, refused_{0}, failures_{0};
  std::atomic<std::int64_t> clock_offset_ns_{0}, last_sent_ns_{0};
  std::atomic<int> last_status_{0};
};

}  // namespace purlin::fleet
