// SPDX-License-Identifier: Apache-2.0
// WorkerChannel: a worker's process and the pipes to it, as its parent sees them: one request at a
// time, each answered, or known to have killed or hung the child. Belongs to one thread. Failure: a
// child that ends, hangs or talks nonsense is an Answer, after which the channel is of no more use.
#pragma once

#include "base/json/json.h"
#include "base/process.h"
#include "base/status.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace purlin::measure {

class WorkerChannel {
 public:
  // Starts `executable worker`.
  static Result<std::unique_ptr<WorkerChannel>> start(
      const std::string& executable, const std::map<std::string, std::string>& environment = {});
  // Closes the pipe, which is the child's signal to leave, and kills what does not.
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  struct Answer {
    enum class Kind { kReply, kDied, kTimedOut, kStopped } kind = Kind::kReply;
    Json reply;
    std::string message;  // unless kReply: how it ended, in which step, and the end of its stderr
  };
  // Sends the request with a number of its own and waits for the reply with that number.
  // timeout_s <= 0: without a limit. `stop`, where given, ends the wait (kStopped) and the child.
  Answer ask(Json request, double timeout_s, const std::atomic<bool>* stop = nullptr);

 private:
  enum class Wake { kReady, kClosed, kTimedOut };
  explicit WorkerChannel(Process process) : process_(std::move(process)) {}
  Wake pump(std::string_view& unsent, std::int64_t deadline_ns);
  void drain_errors();
  Answer gone(Answer::Kind kind, const std::string& how);

  Process process_;
  std::string received_;     // not yet read as lines
  std::string errors_;       // the end of what the child said on stderr
  std::string step_;         // what the child last said it does
  std::int64_t number_ = 0;  // of the last request
};

}  // namespace purlin::measure
