// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/session/control.h"

#include "profile/capture/recording/json_text.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace purlin::profile::capture {
namespace {

constexpr int kMaxAnswersAtOnce = 4;
constexpr int kPatienceMs = 5;  // from a connection to its request

// The listening socket of the parent, which a forked child has to close.
std::atomic<int> inherited = -1;
std::atomic<ino_t> inherited_inode = 0;

// Through the folder's descriptor, because a socket's path holds 107 characters.
sockaddr_un address_in(int folder, const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder,
                name.c_str());
  return address;
}

bool answers(const sockaddr_un& address) {
  const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool connected =
      connection >= 0 &&
      ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (connection >= 0) ::close(connection);
  return connected;
}

bool same_user(int connection) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

}  // namespace

bool Control::open(const std::string& spool, bool yields) {
  const std::string name = control_name(::getpid());
  const int folder = ::open(spool.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int made = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  bool done = false;
  if (folder >= 0 && made >= 0) {
    const sockaddr_un address = address_in(folder, name);
    const auto bound = [&] {
      return ::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    };
    // One that is there already was left by a program that this process replaced by exec, or is of
    // the process's other layer.
    done = bound() || (errno == EADDRINUSE && !(yields && answers(address)) &&
                       ::unlinkat(folder, name.c_str(), 0) == 0 && bound());
    done = done && ::fchmodat(folder, name.c_str(), 0600, 0) == 0 && ::listen(made, 8) == 0;
  }
  struct stat created = {};
  done = done && ::fstat(made, &created) == 0;
  if (folder >= 0) ::close(folder);
  if (!done) {
    if (made >= 0) ::close(made);
    return false;
  }
  fd_ = made;
  device_ = created.st_dev;
  inode_ = created.st_ino;
  path_ = spool + '/' + name;
  static const int prepared = pthread_atfork(nullptr, nullptr, &Control::close_in_child);
  (void)prepared;
  inherited_inode = inode_;
  inherited = made;
  return true;
}

// A program may close descriptors that it does not know, and get the number for its own file.
bool Control::ours() const {
  struct stat now = {};
  return fd_ >= 0 && ::fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
}

bool Control::serve(const Answer& answer) {
  if (fd_ < 0) return false;
  if (!ours()) {
    inherited = -1;
    fd_ = -1;
    return false;
  }
  bool answered = false;
  for (int i = 0; i < kMaxAnswersAtOnce; ++i) {
    const int connection = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0) return answered;
    if (same_user(connection)) answered = answer_one(connection, answer) || answered;
    ::close(connection);
  }
  return answered;
}

bool Control::answer_one(int connection, const Answer& answer) {
  pollfd speaking = {connection, POLLIN, 0};
  (void)::poll(&speaking, 1, kPatienceMs);
  char text[kMaxControlBytes + 1];
  const ssize_t got = ::recv(connection, text, sizeof text, MSG_DONTWAIT);
  if (got <= 0) return false;  // a client that was too slow tries again
  ControlRequest request;
  const bool parsed = parse_control(std::string_view(text, static_cast<std::size_t>(got)), request);
  const std::string reply =
      parsed ? answer(request)
             : JsonText().text("error", "not a request of purlin-control/1").finish();
  (void)!::send(connection, reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return parsed;
}

void Control::close() {
  if (!ours()) return;
  inherited = -1;
  ::unlink(path_.c_str());
  // Its number goes with the process: the session's thread may be using it now.
  ::shutdown(fd_, SHUT_RDWR);
}

void Control::close_in_child() {
  const int fd = inherited.exchange(-1);
  struct stat now = {};
  if (fd >= 0 && ::fstat(fd, &now) == 0 && now.st_ino == inherited_inode) ::close(fd);
}

}  // namespace purlin::profile::capture
