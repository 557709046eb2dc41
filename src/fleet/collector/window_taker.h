// SPDX-License-Identifier: Apache-2.0
// WindowTaker: the node's side of requested windows: it has captured processes record, cuts the
// window out of their captures, and hands it to the raw spool (docs/design/window-requests.md).
//
// A file says how far each request came. "Recording" is written before a process is asked, so no
// kill makes one record twice. look() belongs to the collector's thread; exchange() and settle() to
// the sender's; all const ones are [MT]. Failure: kIo of the file; the step is repeated.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "fleet/collector/raw_spool.h"
#include "fleet/collector/spool_finder.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace purlin::fleet {

// A capture file that is followed now, of a process that may still run.
struct LiveCapture {
  FoundCapture capture;
  std::int64_t pid = 0;        // as the process sees itself
  std::int64_t sealed_ns = 0;  // what is in the file began before this
  bool ended = false;
  store::BatchRun run;
};

struct WindowTakerOptions {
  std::string path, node;
  std::int64_t longest_ns = 60'000'000'000;  // 0: every request is refused
  // Has a process record every launch for so long.
  std::function<Status(const LiveCapture& capture, std::int64_t length_ns)> record;
};

class WindowTaker {
 public:
  static constexpr std::size_t kMostProcesses = 16, kMostHeld = 16;
  static constexpr std::int64_t kSealGraceNs = 60'000'000'000;  // for the seal after a window

  static Result<std::unique_ptr<WindowTaker>> open(WindowTakerOptions options, RawSpool& raws);

  // Does what is due. `now` is asked again after processes were, which may take seconds.
  Status look(const std::vector<LiveCapture>& captures, const std::function<std::int64_t()>& now);
  bool busy() const;                       // whether look() follows a request
  bool has_reports() const;                // that the server does not know
  bool is_due(std::int64_t now_ns) const;  // whether look() has something to do now
  // Whether a requested window is open in the process.
  bool is_recording(const std::string& folder, std::int64_t pid) const;

  // The body of the next exchange with the server, and what came of it.
  Json exchange() const;
  Status settle(const Json& sent, const Json& answer);

  struct Counts {
    std::uint64_t taken = 0, sent = 0, refused = 0;  // since the start
  };
  Counts counts() const;

 private:
  using Process = std::pair<std::string, std::int64_t>;  // folder, pid
  enum class Phase { kTaken, kRecording, kSending, kRefused };
  struct Held {
    std::string id, job;
    std::int64_t pid = 0, length_ns = 0;
    Phase phase = Phase::kTaken;
    Phase reported = Phase::kTaken;  // what the server knows
    std::string detail;              // hash or reason
    std::int64_t begin_ns = 0, end_ns = 0;
    std::vector<Process> processes;
  };
  WindowTaker(WindowTakerOptions options, RawSpool& raws)
      : options_(std::move(options)), raws_(raws) {}
  Status load();
  Status save() const;
  Status change(const std::string& id, const std::function<void(Held&)>& what);
  Status refuse(const std::string& id, const std::string& why);
  Status begin(const Held& held, const std::vector<LiveCapture>& captures,
               const std::function<std::int64_t()>& now);
  Status finish(const Held& held, const std::vector<LiveCapture>& captures, std::int64_t now_ns);
  std::vector<const LiveCapture*> matching(const Held& held,
                                           const std::vector<LiveCapture>& captures) const;
  static std::string_view name_of(Phase phase);

  const WindowTakerOptions options_;
  RawSpool& raws_;
  mutable std::mutex mutex_;
  std::string claimer_;
  std::deque<Held> held_;
  Counts counts_;
  // The files of a window, by request and key: they are read to their end, removed or not. And
  // whose run it is. Of the collector's thread.
  struct Files {
    std::map<std::string, std::shared_ptr<Descriptor>> by_key;
    store::BatchRun run;
  };
  std::map<std::string, Files> files_;
};

}  // namespace purlin::fleet
