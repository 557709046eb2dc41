// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/processor_wait.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace purlin::profile::capture {
namespace {

constexpr double kLeastFree = 0.05;  // of the time: less is not known so well

}  // namespace

// "CPU_NS WAITED_NS TIMES"
ProcessorWait::Reading ProcessorWait::read(std::int64_t now_ns) const {
  char text[128];
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (size <= 0) return {};
  text[size] = '\0';
  char* rest = nullptr;
  std::strtoll(text, &rest, 10);
  char* end = nullptr;
  const std::int64_t waited_ns = std::strtoll(rest, &end, 10);
  if (end == rest || waited_ns < 0) return {};
  return {now_ns, waited_ns};
}

void ProcessorWait::Sum::add(const Reading& from, const Reading& to) {
  if (from.now_ns < 0 || to.now_ns <= from.now_ns) return;
  time_ns += static_cast<double>(to.now_ns - from.now_ns);
  waited_ns += static_cast<double>(std::max<std::int64_t>(0, to.waited_ns - from.waited_ns));
}

double ProcessorWait::Sum::free_share() const {
  return std::clamp(1 - waited_ns / time_ns, kLeastFree, 1.0);
}

void ProcessorWait::opened(std::int64_t now_ns) {
  opened_ = read(now_ns);
  if (began_.now_ns < 0) began_ = opened_;
}

void ProcessorWait::closed(std::int64_t now_ns) {
  if (opened_.now_ns >= 0) open_.add(opened_, read(now_ns));
  opened_ = {};
}

double ProcessorWait::take_difference(std::int64_t now_ns) {
  if (open_.time_ns <= 0) return 0;
  const Reading now = read(now_ns);
  Sum all;
  all.add(began_, now);
  const Sum open = std::exchange(open_, {});
  began_ = now;
  return all.time_ns > 0 ? all.free_share() / open.free_share() - 1 : 0;
}

}  // namespace purlin::profile::capture
