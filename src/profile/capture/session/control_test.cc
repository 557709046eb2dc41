// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/session/control.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace purlin::profile::capture {
namespace {

TEST(ControlText, RequestsSurviveTheWire) {
  for (const ControlRequest request :
       {ControlRequest{ControlRequest::Verb::kStatus, 0},
        ControlRequest{ControlRequest::Verb::kStart, 0},
        ControlRequest{ControlRequest::Verb::kStop, 0},
        ControlRequest{ControlRequest::Verb::kWindow, 2'500'000'000}}) {
    ControlRequest again;
    ASSERT_TRUE(parse_control(to_text(request), again));
    EXPECT_EQ(again.verb, request.verb);
    EXPECT_EQ(again.length_ns, request.length_ns);
  }
}

TEST(ControlText, AnythingElseIsRefused) {
  ControlRequest request;
  for (const char* text :
       {"", "start", "purlin-control/1", "purlin-control/1 ", "purlin-control/2 start\n",
        "purlin-control/1 start 5\n", "purlin-control/1 window\n", "purlin-control/1 window 0\n",
        "purlin-control/1 window -5\n", "purlin-control/1 window 3600001\n",
        "purlin-control/1 window 99999999999999999999\n", "purlin-control/1 window 5 5\n"})
    EXPECT_FALSE(parse_control(text, request)) << text;
  EXPECT_FALSE(parse_control(std::string(10'000, 'x'), request));
}

class ControlSocket : public testing::Test {
 protected:
  void SetUp() override { folder_ = make_temporary_directory("purlin-control-test").value(); }
  void TearDown() override { (void)remove_tree(folder_); }
  std::string path() const { return folder_ + '/' + control_name(::getpid()); }

  int connected() const {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    return -1;
  }
  std::string folder_;
};

TEST_F(ControlSocket, ALayerYieldsToAnotherOneOfTheProcessAndReplacesWhatAnExecLeft) {
  Control cuda, opencl;
  ASSERT_TRUE(cuda.open(folder_));
  EXPECT_FALSE(opencl.open(folder_, true));
  const int fd = connected();
  EXPECT_GE(fd, 0) << "the first one still listens";
  ::close(fd);
  cuda.close();
  // A socket's file whose listener is gone.
  const int left = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  EXPECT_TRUE(opencl.open(folder_, true));
  opencl.close();
}

TEST_F(ControlSocket, AnswersWhoAsksAndHangsUpOnWhoDoesNot) {
  Control control;
  ASSERT_TRUE(control.open(folder_));
  struct stat file = {};
  ASSERT_EQ(::stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  const int silent = connected();
  const int asking = connected();
  ASSERT_GE(asking, 0);
  const std::string request = to_text({ControlRequest::Verb::kWindow, 7'000'000});
  ASSERT_EQ(::send(asking, request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  const auto answer = [](const ControlRequest& asked) { return std::to_string(asked.length_ns); };
  EXPECT_TRUE(control.serve(answer));
  EXPECT_FALSE(control.serve(answer));
  char reply[256] = {};
  EXPECT_EQ(::recv(asking, reply, sizeof reply, 0), 7);
  EXPECT_STREQ(reply, "7000000");
  EXPECT_EQ(::recv(silent, reply, sizeof reply, 0), 0);  // hung up
  ::close(silent);
  ::close(asking);
  control.close();
  EXPECT_NE(::access(path().c_str(), F_OK), 0);
}

TEST_F(ControlSocket, WhatAnEarlierProgramLeftIsReplaced) {
  Control killed;
  ASSERT_TRUE(killed.open(folder_));
  Control next;  // in the same process, as after exec
  ASSERT_TRUE(next.open(folder_));
  const int fd = connected();
  EXPECT_GE(fd, 0);
  ::close(fd);
  next.close();
}

TEST_F(ControlSocket, AForkedChildKeepsNothingOpen) {
  Control control;
  ASSERT_TRUE(control.open(folder_));
  const pid_t child = ::fork();
  if (child == 0) {
    Control::close_in_child();
    ::pause();
  }
  control.close();  // as if the parent had ended: no process reads any more
  EXPECT_LT(connected(), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace purlin::profile::capture
