// SPDX-License-Identifier: Apache-2.0
// The daemon against a client that speaks as libkineto does.
#include "profile/torch/daemon.h"

#include "base/files.h"
#include "base/text.h"
#include "profile/torch/note.h"

#include <gtest/gtest.h>

#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace purlin::profile {
namespace {

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

class KinetoClient {
 public:
  explicit KinetoClient(const std::string& folder) : folder_(folder) {
    const sockaddr_un own = unix_address(join_path(folder, "client"));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  }
  void send(const std::string& bytes) {
    const sockaddr_un to = unix_address(join_path(folder_, "dynolog"));
    EXPECT_EQ(::sendto(socket_.get(), bytes.data(), bytes.size(), 0,
                       reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes.size()));
  }
  // The payload of the answer.
  std::string ask(std::uint32_t type) {
    std::string payload;
    const std::int32_t numbers[] = {static_cast<std::int32_t>(type), 2, 0, 0, ::getpid(), 1};
    payload.assign(reinterpret_cast<const char*>(numbers), sizeof numbers);
    send(encode_kineto({"req", payload}));
    KinetoMessage message = receive();
    EXPECT_EQ(message.type, "req");
    return message.payload;
  }
  KinetoMessage receive() {
    pollfd waiting = {socket_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 5000), 1) << "the daemon does not answer";
    char bytes[4096];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    KinetoMessage message;
    EXPECT_TRUE(
        decode_kineto({bytes, static_cast<std::size_t>(std::max<ssize_t>(0, got))}, message));
    return message;
  }

 private:
  std::string folder_;
  Descriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

class TorchDaemonTest : public testing::Test {
 protected:
  TorchDaemonTest() : spool_(make_temporary_directory("spool-").value()) {}
  ~TorchDaemonTest() override {
    daemon_.reset();
    (void)remove_tree(spool_);
  }
  void start(bool on_request) {
    ::unsetenv("RANK");
    TorchDaemonOptions options;
    options.torch.on = options.torch.daemon = true;
    options.torch.on_request = on_request;
    options.settle_s = 0;
    options.tries = 2;
    Result<std::unique_ptr<TorchDaemon>> started = TorchDaemon::start(spool_, options);
    ASSERT_TRUE(started.is_ok()) << started.status().message();
    daemon_ = std::move(started).value();
    folder_ = daemon_->variables().at("KINETO_IPC_SOCKET_DIR");
  }
  // As libkineto does when a trace has ended.
  void write_trace(const std::string& configuration, const std::string& text) const {
    const std::string key = "ACTIVITIES_LOG_FILE=";
    ASSERT_TRUE(starts_with(configuration, key)) << configuration;
    std::string path = configuration.substr(key.size(), configuration.find('\n') - key.size());
    path.resize(path.size() - 5);
    ASSERT_TRUE(write_atomic(fmt::format("{}_{}.json", path, ::getpid()), text).is_ok());
  }
  template <class Condition>
  static bool comes(Condition condition) {
    for (int i = 0; i < 500; ++i, ::usleep(10'000))
      if (condition()) return true;
    return false;
  }
  std::vector<TorchNote> notes() const { return read_torch_notes(spool_); }

  const std::string spool_;
  std::string folder_;
  std::unique_ptr<TorchDaemon> daemon_;
};

constexpr const char* kTrace = R"({"traceEvents": [{"ph": "X", "cat": "kernel"}]})";

TEST_F(TorchDaemonTest, OneTraceOfTheRunAndOneForEachRequest) {
  start(false);
  KinetoClient client(folder_);
  EXPECT_EQ(client.ask(1), "") << "its profiler is busy";
  const std::string first = client.ask(3);
  EXPECT_NE(first.find("PROFILE_REPORT_INPUT_SHAPES=true\n"), std::string::npos);
  EXPECT_EQ(first.find("MEMORY"), std::string::npos);
  EXPECT_EQ(client.ask(3), "") << "one at a time";
  EXPECT_EQ(notes().at(0).reason, "unfinished");
  write_trace(first, kTrace);
  EXPECT_TRUE(comes([&] { return !notes().at(0).trace.empty(); }));
  EXPECT_TRUE(file_exists(join_path(spool_, notes()[0].trace)));
  EXPECT_EQ(notes()[0].pid, ::getpid());
  EXPECT_EQ(client.ask(3), "") << "once without a request";

  const std::string request = join_path(spool_, fmt::format("torch-request-{}", ::getpid()));
  ASSERT_TRUE(write_atomic(request, "").is_ok());
  EXPECT_TRUE(comes([&] { return !file_exists(request); }));
  write_trace(client.ask(3), kTrace);
  EXPECT_TRUE(comes([&] { return notes().size() == 2 && !notes()[1].trace.empty(); }));
  daemon_->stop();
  EXPECT_FALSE(is_directory(folder_));
}

TEST_F(TorchDaemonTest, ATraceWithoutKernelsIsTriedAgain) {
  start(true);
  KinetoClient client(folder_);
  EXPECT_EQ(client.ask(3), "") << "on request only";
  ASSERT_TRUE(
      write_atomic(join_path(spool_, fmt::format("torch-request-{}", ::getpid())), "").is_ok());
  std::string configuration;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(comes([&] { return !(configuration = client.ask(3)).empty(); }));
    write_trace(configuration, R"({"traceEvents": []})");
  }
  EXPECT_TRUE(comes([&] { return notes().size() == 2 && notes()[1].reason == "no_kernels"; }));
  EXPECT_EQ(client.ask(3), "");
}

TEST_F(TorchDaemonTest, WhatIsNoMessageIsNotAnswered) {
  start(false);
  KinetoClient client(folder_);
  const std::string whole = encode_kineto({"req", std::string(16, '\0')});
  for (std::size_t size = 1; size < whole.size(); ++size) client.send(whole.substr(0, size));
  client.send(whole);                            // no process
  client.send(encode_kineto({"else", "text"}));  // no type of theirs
  client.send(std::string(40, '\xff'));
  client.send(encode_kineto({"ctxt", std::string(16, '\1')}));
  const KinetoMessage answer = client.receive();
  EXPECT_EQ(answer.type, "ctxt");
  EXPECT_EQ(answer.payload, std::string("\1\0\0\0", 4));
}

}  // namespace
}  // namespace purlin::profile
