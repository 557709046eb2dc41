// SPDX-License-Identifier: Apache-2.0
// RawSpool: whole captures that a collector sends next to its batches: raw profiles. They are few
// and bounded: one of each run and hour, so many bytes an hour, and so many that wait. They are the
// first to go when room is short. A window that was requested is taken beyond these numbers.
//
// A raw is `SHA256` and, written after it, `SHA256.json` with its pointer: without the latter it
// was never taken. When the server has the bytes, the bytes go and the pointer waits for the next
// batch, so a pointer at the server always has its object. [MT] all but open(). A kill at any
// moment repeats a step that changes nothing the second time. Failure: kIo; nothing was taken.
#pragma once

#include "base/status.h"
#include "store/batch.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet {

struct RawSpoolOptions {
  std::string directory;
  std::uint64_t bytes_per_hour = std::uint64_t{16} << 20;  // 0: none is taken
  std::uint64_t max_bytes = std::uint64_t{64} << 20;       // of those that wait
  std::uint64_t max_bytes_of_one = std::uint64_t{8} << 20;
  std::uint64_t max_bytes_of_window = std::uint64_t{16} << 20;
};

inline constexpr std::string_view kWindowKind = "timeline";  // RawPointer::kind of a window

// Without `pointer.run`: the batch that carries the pointer gives it.
struct RawCapture {
  store::RawPointer pointer;
  store::BatchRun run;
};

class RawSpool {
 public:
  static Result<std::unique_ptr<RawSpool>> open(RawSpoolOptions options);
  RawSpool(const RawSpool&) = delete;
  RawSpool& operator=(const RawSpool&) = delete;

  // Whether a capture of so many bytes, which ended in that hour, would be taken.
  bool wants(const store::BatchRun& run, std::uint64_t bytes, std::int64_t end_ns) const;
  // REQUIRES: wants(), or a window. The pointer's hash and size are filled in. Returns the hash.
  Result<std::string> add(std::string_view bytes, RawCapture raw);
  std::uint64_t max_bytes_of_window() const {
    return std::min(options_.max_bytes_of_window, options_.max_bytes);
  }

  // The oldest one that waits.
  std::optional<RawCapture> next_to_send();
  Result<std::string> read(const RawCapture& raw) const;
  Status sent(const RawCapture& raw);
  // The server will never take it, or its bytes are damaged.
  void give_up(const RawCapture& raw, const std::string& cause);
  // The oldest go until those that wait have at most so many bytes.
  void make_room(std::uint64_t most_bytes);

  // Those that the server has and no batch names yet; and: a batch that is committed names them.
  std::vector<RawCapture> pointers() const;
  void forget(const std::vector<RawCapture>& pointers);

  struct Totals {
    std::uint64_t waiting = 0, waiting_bytes = 0;
    std::uint64_t taken = 0, sent = 0;                // since the start
    std::map<std::string, std::uint64_t> shed_bytes;  // by cause, since the start
  };
  Totals totals() const;

 private:
  explicit RawSpool(RawSpoolOptions options) : options_(std::move(options)) {}
  Status load();
  void drop_front(const std::string& cause);
  void count_hour(const RawCapture& raw);  // under the mutex
  std::string path(const RawCapture& raw) const;
  std::string facts_path(const RawCapture& raw) const;

  const RawSpoolOptions options_;
  mutable std::mutex mutex_;
  std::deque<RawCapture> waiting_;  // the oldest first
  std::vector<RawCapture> arrived_;
  std::map<std::string, std::int64_t> last_hours_;  // by run: of its last raw
  std::int64_t hour_ns_ = 0;                        // of the bytes below
  std::uint64_t hour_bytes_ = 0;
  Totals totals_;
};

}  // namespace purlin::fleet
