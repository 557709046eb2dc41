// SPDX-License-Identifier: Apache-2.0
// Control: the socket of `purlin capture`, which starts and stops the capture of a running process.
// It is control-PID in the process's spool, with mode 0600 in a folder that only its owner can
// enter. Users with other credentials are refused, too. The session's thread serves it between
// other work. It waits a moment for the request of a client, then closes the connection.
//
// Owned by a CaptureSession; [MT] close(), the rest belongs to the session's thread. A forked child
// closes the inherited socket. A file that a killed process left is replaced by the next process
// with that number. Without its socket capture goes on.
#pragma once

#include "profile/control_text.h"

#include <atomic>
#include <functional>
#include <string>
#include <sys/types.h>

namespace purlin::profile::capture {

class Control {
 public:
  // `yields`: not where another layer of this process listens already.
  bool open(const std::string& spool, bool yields = false);
  bool is_open() const { return fd_ >= 0; }
  // Answers the waiting clients; false if there was none.
  using Answer = std::function<std::string(const ControlRequest&)>;
  bool serve(const Answer& answer);
  void close();
  static void close_in_child();  // after fork: nothing else of this object is touched

 private:
  bool ours() const;
  static bool answer_one(int connection, const Answer& answer);
  std::atomic<int> fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string path_;
};

}  // namespace purlin::profile::capture
