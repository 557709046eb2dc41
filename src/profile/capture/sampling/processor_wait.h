// SPDX-License-Identifier: Apache-2.0
// ProcessorWait: whether the program had as much of its processor in windows as outside. On an
// overloaded machine its main thread waits for a processor. If it waits more or less in windows
// than outside, launches in windows do not represent those outside. Linux counts that wait.
//
// Owned by the CollectorScheduler. Thread-safety: none. Where Linux does not tell, there is no
// difference.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace purlin::profile::capture {

class ProcessorWait {
 public:
  explicit ProcessorWait(std::string path = "/proc/self/schedstat") : path_(std::move(path)) {}

  void opened(std::int64_t now_ns);
  void closed(std::int64_t now_ns);
  // So much more time in which it did not wait, as a part, had the program on the whole than in the
  // windows since the last call. 0.5: half as much again; 0 without a window.
  double take_difference(std::int64_t now_ns);

 private:
  struct Reading {
    std::int64_t now_ns = -1, waited_ns = 0;  // monotonic; since the thread began
  };
  struct Sum {
    double time_ns = 0, waited_ns = 0;
    void add(const Reading& from, const Reading& to);
    double free_share() const;
  };
  Reading read(std::int64_t now_ns) const;

  std::string path_;
  Reading began_, opened_;
  Sum open_;
};

}  // namespace purlin::profile::capture
