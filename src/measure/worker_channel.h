// SPDX-License-Identifier: Apache-2.0
// WorkerChannel: the parent's side of a worker's process and its pipes. It sends one request at a
// time. Each gets an answer, or the report that it killed or hung the child. Belongs to one thread.
// Failure: a child that ends, hangs or breaks the protocol is an Answer; the channel is then
// closed.
#pragma once

#include "base/json/json.h"
#include "base/os/process.h"
#include "base/status.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace purlin::measure {

class WorkerChannel {
 public:
  // Starts `executable worker`.
  static Result<std::unique_ptr<WorkerChannel>> start(
      const std::string& executable, const std::map<std::string, std::string>& environment = {});
  // Closes the pipe, which is the child's signal to end, and kills a child that does not.
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  struct Answer {
    enum class Kind { kReply, kDied, kTimedOut, kStopped } kind = Kind::kReply;
    Json reply;
    std::string message;  // unless kReply: how it ended, in which step, and the end of its stderr
    std::string step;     // unless kReply: the last step that the child reported
  };
  // How long to wait.
  struct Patience {
    double timeout_s = 0;            // <= 0: without a limit
    bool each_step = false;          // the timeout begins again at each step that the child reports
    double reference_timeout_s = 0;  // > 0: instead of the timeout, of each run of a reference
    double limit_s = 0;              // > 0: ends the wait at the latest (kStopped)
    const std::atomic<bool>* stop =
        nullptr;         // once true, it ends the wait (kStopped) and the child
    double grace_s = 0;  // so much later
    const std::function<void(std::string_view)>* on_step = nullptr;  // hears of each step
  };
  // Sends the request with a new number and waits for the reply with that number.
  Answer ask(Json request, const Patience& patience);

 private:
  enum class Wake { kReady, kClosed, kTimedOut };
  explicit WorkerChannel(Process process) : process_(std::move(process)) {}
  Wake pump(std::string_view& unsent, std::int64_t deadline_ns);
  void drain_errors();
  Answer gone(Answer::Kind kind, const std::string& how);

  Process process_;
  std::string received_;     // not yet read as lines
  std::string errors_;       // the end of the child's stderr
  std::string step_;         // the child's last reported step
  std::int64_t number_ = 0;  // of the last request
  class Deadline;
};

}  // namespace purlin::measure
