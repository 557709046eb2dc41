// SPDX-License-Identifier: Apache-2.0
#include "profile/torch/daemon.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/time.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <filesystem>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

namespace purlin::profile {
namespace {

constexpr std::size_t kTypeBytes = 32, kHeadBytes = 8 + kTypeBytes;
constexpr std::size_t kMaxDatagram = 64 << 10;
constexpr std::size_t kMaxClients = 4096;
constexpr std::size_t kLongestFolder = 54;  // a longer one crashes the program
constexpr int kPoll_ms = 100;
constexpr std::uint32_t kActivities = 2;  // of a request's type: a trace may begin
constexpr const char* kSocket = "dynolog";
constexpr const char* kSettings = "kineto.conf";
constexpr std::size_t kMaxEnvironment = 1 << 20;
constexpr std::size_t kMaxTraceBytes = std::size_t{1} << 30;

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);  // x86-64 and AArch64 are little-endian
  return value;
}

template <class Number>
void append_number(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::int64_t daemon_now_ns() { return system_clock().monotonic_ns(); }

// Of a distributed run, from the environment that the process was started with.
int rank_of_process(std::int64_t pid) {
  const Result<std::string> text = read_file(fmt::format("/proc/{}/environ", pid), kMaxEnvironment);
  if (!text.is_ok()) return -1;
  for (const std::string_view name : {"RANK=", "SLURM_PROCID=", "OMPI_COMM_WORLD_RANK="})
    for (const std::string& variable : split(*text, '\0'))
      if (starts_with(variable, name))
        return static_cast<int>(parse_int(variable.substr(name.size())).value_or(-1));
  return -1;
}

// A second request right after a first may bring an empty trace.
bool has_kernels(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxTraceBytes);
  return text.is_ok() && (text->find("\"cat\": \"kernel\"") != std::string::npos ||
                          text->find("\"cat\":\"kernel\"") != std::string::npos);
}

}  // namespace

std::string encode_kineto(const KinetoMessage& message) {
  std::string bytes;
  append_number(bytes, static_cast<std::uint64_t>(message.payload.size()));
  bytes += message.type.substr(0, kTypeBytes - 1);
  bytes.resize(kHeadBytes, '\0');
  return bytes + message.payload;
}

bool decode_kineto(std::string_view datagram, KinetoMessage& message) {
  if (datagram.size() < kHeadBytes ||
      number_at<std::uint64_t>(datagram, 0) != datagram.size() - kHeadBytes)
    return false;
  const std::string_view type = datagram.substr(8, kTypeBytes);
  const std::size_t end = type.find('\0');
  if (end == std::string_view::npos) return false;
  message.type = type.substr(0, end);
  message.payload = datagram.substr(kHeadBytes);
  return true;
}

// i32 type, i32 count, i64 job, then the process and its ancestors.
bool decode_kineto_request(std::string_view payload, KinetoRequest& request) {
  constexpr std::size_t kPids = 16;
  if (payload.size() < kPids + 4 || number_at<std::int32_t>(payload, 4) < 1) return false;
  request.is_free = (number_at<std::uint32_t>(payload, 0) & kActivities) != 0;
  request.pid = number_at<std::int32_t>(payload, kPids);
  return request.pid > 0;
}

Result<std::unique_ptr<TorchDaemon>> TorchDaemon::start(const std::string& spool,
                                                        const TorchDaemonOptions& options) {
  PURLIN_ASSIGN(const std::string folder, make_temporary_directory("purlin-kineto-"));
  const std::string path = join_path(folder, kSocket);
  const auto failed = [&](const std::string& text) {
    (void)remove_tree(folder);
    return error(Code::kInvalid, "--torch daemon: {}", text);
  };
  if (folder.size() > kLongestFolder)
    return failed(
        fmt::format("the path {} has more than {} characters, which libkineto does not "
                    "take: set TMPDIR to a shorter one",
                    folder, kLongestFolder));
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (socket < 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int code = errno;
    if (socket >= 0) ::close(socket);
    return failed(fmt::format("no socket at {}: {}", path, std::strerror(code)));
  }
  std::unique_ptr<TorchDaemon> daemon(new TorchDaemon(spool, folder, socket, options));
  const Status written =
      write_atomic(join_path(folder, kSettings), "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n");
  if (!written.is_ok()) return failed(written.message());
  daemon->thread_ = std::thread(&TorchDaemon::serve, daemon.get());
  return daemon;
}

TorchDaemon::TorchDaemon(std::string spool, std::string folder, int socket,
                         const TorchDaemonOptions& options)
    : spool_(std::move(spool)), folder_(std::move(folder)), options_(options), socket_(socket) {}

std::map<std::string, std::string> TorchDaemon::variables() const {
  return {{"KINETO_USE_DAEMON", "1"},
          {"KINETO_IPC_SOCKET_DIR", folder_},
          {"KINETO_ONDEMAND_TRACE_DIR", folder_},
          {"KINETO_CONFIG", join_path(folder_, kSettings)}};
}

void TorchDaemon::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  (void)remove_tree(folder_);
}

void TorchDaemon::serve() {
  while (!stopping_) {
    pollfd waiting = {socket_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, kPoll_ms) > 0) receive();
    take_requests();
    take_traces();
  }
  take_traces();
  for (auto& [pid, client] : clients_)
    if (client.open) note(pid, client, "", "unfinished");
}

void TorchDaemon::receive() {
  std::string datagram(kMaxDatagram, '\0');
  while (true) {
    sockaddr_un from = {};
    socklen_t size = sizeof from;
    const ssize_t got = ::recvfrom(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0) return;
    KinetoMessage message;
    KinetoRequest request;
    if (!decode_kineto(std::string_view(datagram).substr(0, static_cast<std::size_t>(got)),
                       message))
      continue;
    if (message.type == "ctxt") {  // a process introduces itself: how many there are
      message.payload.clear();
      append_number(message.payload, std::int32_t{1});
    } else if (message.type == "req" && decode_kineto_request(message.payload, request)) {
      message.payload = answer(request);
    } else {
      continue;
    }
    const std::string bytes = encode_kineto(message);
    (void)!::sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&from), size);
  }
}

// A run with ranks has the trace of one; else the first process that asked has it.
bool TorchDaemon::is_traced(const Client& client) const {
  const bool ranks = std::any_of(clients_.begin(), clients_.end(),
                                 [](const auto& each) { return each.second.rank >= 0; });
  if (ranks) return client.rank == options_.torch.rank;
  return std::none_of(clients_.begin(), clients_.end(),
                      [&](const auto& each) { return each.second.first_ns < client.first_ns; });
}

// The text of a configuration, or "" for none.
std::string TorchDaemon::answer(const KinetoRequest& request) {
  if (clients_.size() >= kMaxClients && clients_.count(request.pid) == 0) return "";
  Client& client = clients_[request.pid];
  const std::int64_t now = daemon_now_ns();
  if (client.first_ns == 0) {
    client.first_ns = now;
    client.rank = rank_of_process(request.pid);
  }
  const bool settled = static_cast<double>(now - client.first_ns) >= options_.settle_s * 1e9;
  if (!options_.torch.on_request && !claimed_ && settled && is_traced(client))
    client.due = claimed_ = true;
  if (!client.due || client.open || !request.is_free) return "";
  client.due = false;
  client.open = true;
  ++client.made;
  return configuration(request.pid, client);
}

// With a number of steps the trace ends by the optimizer's steps. libkineto takes the duration
// where a program makes none.
std::string TorchDaemon::configuration(std::int64_t pid, Client& client) const {
  client.wanted = join_path(folder_, fmt::format("trace-{}.json", client.made));
  note(pid, client, "", "unfinished");
  return fmt::format(
      "ACTIVITIES_LOG_FILE={}\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\n"
      "ACTIVITIES_ITERATIONS={}\nACTIVITIES_WARMUP_ITERATIONS=2\nACTIVITIES_DURATION_MSECS={}\n"
      "ACTIVITIES_WARMUP_PERIOD_SECS=1\nPROFILE_REPORT_INPUT_SHAPES=true\n",
      client.wanted, options_.steps, static_cast<int>(options_.seconds * 1e3));
}

// Those of `purlin capture window --torch` (request.h).
void TorchDaemon::take_requests() {
  for (auto& [pid, client] : clients_) {
    if (client.open || client.due) continue;
    const std::string request = join_path(spool_, fmt::format("torch-request-{}", pid));
    if (!file_exists(request)) continue;
    (void)remove_file(request);
    client.due = true;
  }
}

// libkineto writes NAME_PID.json.tmp and renames it.
void TorchDaemon::take_traces() {
  for (auto& [pid, client] : clients_) {
    if (!client.open) continue;
    const std::string stem = client.wanted.substr(0, client.wanted.size() - 5);
    const std::string trace = fmt::format("{}_{}.json", stem, pid);
    if (file_exists(trace)) keep(pid, client, trace);
  }
}

void TorchDaemon::keep(std::int64_t pid, Client& client, const std::string& trace) {
  client.open = false;
  if (!has_kernels(trace)) {
    (void)remove_file(trace);
    client.due = ++client.tries < options_.tries && !stopping_;
    if (!client.due) note(pid, client, "", "no_kernels");
    return;
  }
  client.tries = 0;
  const std::string name = fmt::format("torch-{}-{}.json", pid, client.made);
  std::error_code fault;
  std::filesystem::rename(trace, join_path(spool_, name), fault);
  note(pid, client, fault ? "" : name, fault ? "fault" : "");
}

void TorchDaemon::note(std::int64_t pid, const Client& client, const std::string& trace,
                       const std::string& reason) const {
  const Json json = Json::object({{"schema", "purlin.torch/1"},
                                  {"pid", pid},
                                  {"number", client.made},
                                  {"mode", trace.empty() ? "none" : "daemon"},
                                  {"reason", reason},
                                  {"trace", trace},
                                  {"cuda", true}});
  (void)write_atomic(join_path(spool_, fmt::format("torch-{}-{}.note", pid, client.made)),
                     json.dump() + "\n");
}

}  // namespace purlin::profile
