// SPDX-License-Identifier: Apache-2.0
// Descriptor: owns a file descriptor, or none, and closes it. It does not report a failed close: a
// caller that must know that bytes are on the disk calls fsync first. Belongs to one thread.
#pragma once

#include <unistd.h>

namespace purlin {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}  // negative: none, as open() says it
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace purlin
