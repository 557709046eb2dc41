// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/ask_capture.h"

#include "profile/control_client.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace purlin::fleet {
namespace {

// glibc's setresuid changes all threads; the system call changes this one.
bool act_as(uid_t user) {
  return ::syscall(SYS_setresuid, static_cast<uid_t>(-1), user, static_cast<uid_t>(-1)) == 0;
}

}  // namespace

Status ask_capture(const std::string& spool, std::int64_t pid, uid_t owner,
                   const profile::ControlRequest& request) {
  const uid_t self = ::geteuid();
  if (owner != self && !act_as(owner))
    return error(Code::kUnavailable,
                 "only root can control the capture of another user; run `purlin collect` as root");
  const Status asked = profile::ask_capture_in(spool, pid, request).status();
  if (owner != self && !act_as(self)) std::abort();  // it must not go on as another user
  return asked;
}

}  // namespace purlin::fleet
