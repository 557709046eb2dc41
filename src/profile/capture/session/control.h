// SPDX-License-Identifier: Apache-2.0
// Control: the socket by which `purlin capture` starts and stops the capture of a running process:
// control-PID in its spool, a folder that only its owner enters, of mode 0600; other users are
// refused by their credentials too. Served between other things by the session's thread, which
// waits a moment for who has connected to speak, and hangs up on who says nothing.
//
// Owned by a CaptureSession; [MT] close(), the rest belongs to the session's thread. A forked child
// closes what it inherits; a file that a killed process left answers nobody and is replaced by the
// next of its number. Without its socket capture goes on.
#pragma once

#include "profile/control_text.h"

#include <atomic>
#include <functional>
#include <string>
#include <sys/types.h>

namespace purlin::profile::capture {

class Control {
 public:
  bool open(const std::string& spool);
  bool is_open() const { return fd_ >= 0; }
  // Answers whoever is waiting; whether anybody was.
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
