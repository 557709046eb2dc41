// SPDX-License-Identifier: Apache-2.0
// Child processes: started without a shell, waited for with a deadline, killed as a group.
//
// A Process is owned by one thread; destroying one that still runs kills and reaps it, so no child
// outlives its owner by accident.
#pragma once

#include "base/status.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace purlin {

struct Exit {
  int code = 0;    // exit status, when signal is 0
  int signal = 0;  // the signal that ended it
  bool ok() const { return code == 0 && signal == 0; }
  // As a shell reports it: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
  std::string text() const;  // "exit status 3", "signal 11 (Segmentation fault)"
};

class Process {
 public:
  enum class Stream { kInherit, kNull, kPipe, kToStderr };  // kToStderr: for out only
  struct Options {
    std::vector<std::string> argv;                   // argv[0] is looked up in PATH
    std::map<std::string, std::string> environment;  // added to, or replacing, the parent's
    std::vector<std::string> unset;                  // removed from the parent's
    std::string directory;                           // "" = the parent's
    Stream in = Stream::kNull, out = Stream::kInherit, err = Stream::kInherit;
    bool new_group = true;  // its own process group, so that kill() reaches its children too
    // Killed by the kernel when the thread that started it ends, even by SIGKILL; its own children
    // are not. Only for a child that this thread waits for.
    bool dies_with_parent = false;
  };

  // kNotFound when the command does not exist, kIo when it cannot be executed.
  static Result<Process> start(const Options& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  // The parent's ends of the pipes; -1 where not piped.
  int in_fd() const { return in_; }
  int out_fd() const { return out_; }
  int err_fd() const { return err_; }
  void close_in();

  // Waits. nullopt when timeout_s passed first; the child then still runs.
  std::optional<Exit> wait(double timeout_s = -1);
  void kill(int signal);

 private:
  Process() = default;
  void release();
  pid_t pid_ = -1;
  bool group_ = false;
  std::optional<Exit> exit_;
  int in_ = -1, out_ = -1, err_ = -1;
};

struct Captured {
  Exit exit;
  std::string out, err;
  bool timed_out = false;
  bool truncated = false;  // a stream went past max_bytes; the rest was read and dropped
};
// Runs to completion, collecting both streams. Kills the group when timeout_s (>0) passes, or soon
// after `is_over` returns true (kCancelled); a caller that is killed takes the command with it.
Result<Captured> run_captured(Process::Options options, double timeout_s = -1,
                              std::size_t max_bytes = std::size_t{64} << 20,
                              const std::function<bool()>& is_over = {});

}  // namespace purlin
