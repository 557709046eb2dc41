// SPDX-License-Identifier: Apache-2.0
#include "profile/control_client.h"

#include "base/files.h"
#include "base/os/descriptor.h"
#include "base/text.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxAnswer = 4096;
constexpr int kAttempts = 50;  // a process closes connections that send no request in time

struct Reply {
  bool connected = false, hung_up = false;
  std::string text;  // "": nothing came in time
};

Reply ask_once(const sockaddr_un& address, const std::string& text, double timeout_s) {
  Reply reply;
  const Descriptor connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connection.get() < 0 ||
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return reply;
  reply.connected = true;
  reply.hung_up = ::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0;
  if (reply.hung_up) return reply;
  pollfd waiting = {connection.get(), POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout_s * 1000)) <= 0) return reply;
  reply.text.resize(kMaxAnswer);
  const ssize_t got = ::recv(connection.get(), reply.text.data(), reply.text.size(), MSG_DONTWAIT);
  reply.hung_up = got <= 0;
  reply.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return reply;
}

}  // namespace

Result<std::string> spool_of(std::int64_t pid) {
  const Result<std::string> environment = read_file(fmt::format("/proc/{}/environ", pid));
  if (!environment.is_ok())
    return error(Code::kNotFound,
                 "process {} cannot be reached: it does not run, or belongs to another user", pid);
  constexpr std::string_view kName = "PURLIN_SPOOL=";
  for (const std::string& variable : split(*environment, '\0'))
    if (starts_with(variable, kName)) return variable.substr(kName.size());
  return error(
      Code::kNotFound,
      "process {} does not run under `purlin profile`: give the number of the program, not "
      "of purlin",
      pid);
}

Result<Json> ask_capture(std::int64_t pid, const ControlRequest& request, double timeout_s) {
  PURLIN_ASSIGN(const std::string spool, spool_of(pid));
  return ask_capture_in(spool, pid, request, timeout_s);
}

Result<Json> ask_capture_in(const std::string& spool, std::int64_t pid,
                            const ControlRequest& request, double timeout_s) {
  const Descriptor folder(::open(spool.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0)
    return error(Code::kNotFound, "the spool {} of process {} cannot be opened: {}", spool, pid,
                 std::strerror(errno));
  // By the folder's descriptor: a socket's path holds 107 characters.
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), control_name(pid));
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const std::string text = to_text(request);
  Reply reply;
  for (int i = 0; i < kAttempts && (i == 0 || reply.hung_up); ++i)
    reply = ask_once(address, text, timeout_s);
  if (!reply.connected)
    return error(Code::kNotFound,
                 "process {} does not listen: it has not initialised CUDA, or has ended", pid);
  if (reply.text.empty())
    return error(Code::kFailed, "process {} did not answer within {:g} s: it may be stopped", pid,
                 timeout_s);
  PURLIN_ASSIGN(Json json, Json::parse(reply.text));
  if (const std::string refused = json["error"].as_string(); !refused.empty())
    return error(Code::kFailed, "process {}: {}", pid, refused);
  return json;
}

}  // namespace purlin::profile
