// SPDX-License-Identifier: Apache-2.0
// How a captured process reports that it cannot write to its spool: one datagram to an abstract
// Unix socket of `purlin profile`, because the disk is what fails. Also compiled into the capture
// libraries, so it needs only libc.
//
// Free functions. parse_spool_fault reads untrusted text. A fault without a listener is lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

namespace purlin::profile {

struct SpoolFault {
  std::string layer;  // "cuda", "opencl"
  std::int64_t pid = 0;
  int error = 0;  // errno
};

inline constexpr std::size_t kMaxSpoolFaultBytes = 96;

std::string to_text(const SpoolFault& fault);
bool parse_spool_fault(std::string_view text, SpoolFault& fault);

// The address of the listener for this spool; returns its length.
socklen_t spool_fault_address(std::string_view spool, sockaddr_un& address);
// Never waits.
void send_spool_fault(std::string_view spool, const SpoolFault& fault);

}  // namespace purlin::profile
