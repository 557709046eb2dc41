// SPDX-License-Identifier: Apache-2.0
// Privileged processes that a command starts: setuid, setgid or with file capabilities. The system
// keeps capture out of them, so their launches are missing, which a report must state.
//
// A thread looks at the descendants of one process every 50 ms, in /proc. One that lives shorter
// may be missed. Without /proc nothing is found. Owner: one run of the launcher.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>

namespace purlin::profile {

// The rights of a process, from /proc/PID/status.
struct ProcessRights {
  uid_t real_user = 0, effective_user = 0;
  gid_t real_group = 0, effective_group = 0;
  std::uint64_t capabilities = 0;  // effective
  std::string name;
};
// False where the text has no such lines.
bool read_rights(const std::string& status, ProcessRights& rights);
// Whether a process has rights that `own`, which started it, lacks.
bool has_more_rights(const ProcessRights& process, const ProcessRights& own);

class PrivilegedWatch {
 public:
  explicit PrivilegedWatch(pid_t root);
  ~PrivilegedWatch() { (void)stop(); }
  PrivilegedWatch(const PrivilegedWatch&) = delete;
  PrivilegedWatch& operator=(const PrivilegedWatch&) = delete;

  // Ends the thread; the names of those that were seen, by process number.
  std::map<pid_t, std::string> stop();

 private:
  void watch();
  void look(pid_t process, int depth);
  pid_t root_;
  ProcessRights own_;
  std::map<pid_t, std::string> found_;  // of the thread, until it has ended
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace purlin::profile
