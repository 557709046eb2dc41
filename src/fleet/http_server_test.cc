// SPDX-License-Identifier: Apache-2.0
// Over real sockets. Nothing rests on how long a thing takes: limits are set so short, or so long,
// that only one end is possible.
#include "fleet/http_server.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace purlin::fleet {
namespace {

// One connection, over a plain socket.
class Client {
 public:
  explicit Client(std::uint16_t port, const char* from = nullptr)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    if (from != nullptr) {  // all of 127.0.0.0/8 is this machine
      address.sin_family = AF_INET;
      ::inet_pton(AF_INET, from, &address.sin_addr);
      EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* plain = reinterpret_cast<const sockaddr*>(&address);
    connected_ = ::connect(fd_, plain, sizeof address) == 0;
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Until so many bytes of `mark` were seen, or the end; what came, without what came before.
  std::string read_until(const std::function<bool(const std::string&)>& enough) {
    std::string text;
    while (!enough(text)) {
      pollfd waits{fd_, POLLIN, 0};
      if (::poll(&waits, 1, 60'000) != 1) return text + "<nothing for a minute>";
      char bytes[4096];
      const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
      if (count <= 0) return text + "<end>";
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
  }
  bool has_something() const {
    pollfd waits{fd_, POLLIN, 0};
    return ::poll(&waits, 1, 200) == 1;
  }
  std::string read_to_end() {
    return read_until([](const std::string&) { return false; });
  }
  // One answer whose body is `body`.
  std::string read_answer(const std::string& body) {
    return read_until([&](const std::string& text) { return ends_with(text, "\r\n\r\n" + body); });
  }

 private:
  const int fd_;
  bool connected_ = false;
};

// Answers with "METHOD TARGET BODY"; the targets that begin otherwise than "/" say how.
class Echo : public HttpHandler {
 public:
  std::optional<HttpAnswer> early(const HttpHead& head) override {
    if (!starts_with(head.target, "/refuse")) return std::nullopt;
    HttpAnswer answer;
    answer.status = 401;
    answer.body = "no";
    return answer;
  }
  HttpAnswer answer(const HttpHead& head, const std::string& body) override {
    ++asked;
    if (head.target == "/throw") throw std::runtime_error("of the handler");
    if (head.target == "/wait") {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return let_go_; });
    }
    HttpAnswer answer;
    if (starts_with(head.target, "/pieces")) {
      const bool endless = head.target == "/pieces/endless";
      answer.more = [this, endless, n = 0]() mutable -> std::optional<std::string> {
        ++pieces;
        const char* const each[] = {"one ", "", "two ", "three"};
        if (endless) return "";
        return n < 4 ? std::optional<std::string>(each[n++]) : std::nullopt;
      };
    }
    answer.body = head.target == "/large" ? std::string(1 << 20, 'x')
                                          : head.method + " " + head.target + " " + body;
    return answer;
  }
  void answered(const HttpHead& head, const HttpAnswer& answer,
                std::optional<double> seconds) override {
    const std::lock_guard lock(mutex_);
    seen_.push_back(head.method + " " + head.target + " " + std::to_string(answer.status) +
                    (seconds && *seconds >= 0 ? " timed" : ""));
  }
  // "METHOD TARGET STATUS" of each that was sent.
  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  void await_waiting(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }
  std::atomic<int> asked{0}, pieces{0};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> seen_;
  int waiting_ = 0;
  bool let_go_ = false;
};

class HttpServerTest : public testing::Test {
 protected:
  void start() { server_ = HttpServer::start(options_, echo_).value(); }
  void TearDown() override { echo_.let_go(); }
  std::uint16_t port() const { return server_->port(); }
  static std::string put(const std::string& target, const std::string& body,
                         const std::string& header = "") {
    return "PUT " + target + " HTTP/1.1\r\nHost: x\r\n" + header +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  static std::string get(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  Echo echo_;
  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterAnotherOnAConnection) {
  start();
  Client client(port());
  client.send(get("/a"));
  EXPECT_TRUE(starts_with(client.read_answer("GET /a "), "HTTP/1.1 200 OK\r\n"));
  client.send(put("/b", "body"));
  EXPECT_TRUE(starts_with(client.read_answer("PUT /b body"), "HTTP/1.1 200 OK\r\n"));
  client.send(get("/c") + put("/d", "x"));  // both at once
  const std::string both = client.read_answer("PUT /d x");
  EXPECT_NE(both.find("GET /c HTTP/1.1 200"), std::string::npos) << both;
  client.send("GET /e HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(ends_with(client.read_to_end(), "GET /e <end>"));
  EXPECT_EQ(server_->counts().accepted, 1u);
  EXPECT_EQ(server_->url(), "http://127.0.0.1:" + std::to_string(port()));
}

// It holds no thread: the only one answers others meanwhile.
TEST_F(HttpServerTest, AnAnswerCanGoOn) {
  options_.handler_threads = 1;
  start();
  Client endless(port()), client(port()), other(port());
  endless.send(get("/pieces/endless"));
  client.send(get("/pieces"));
  const std::string text = client.read_to_end();
  EXPECT_EQ(text.find("Content-Length"), std::string::npos) << text;
  EXPECT_TRUE(ends_with(text, "\r\n\r\nGET /pieces one two three<end>")) << text;
  other.send(get("/a"));
  other.read_answer("GET /a ");
  EXPECT_GT(echo_.pieces, 4);
  server_->stop(60);  // does not wait for the end of what has none
  EXPECT_TRUE(ends_with(endless.read_to_end(), "<end>"));
}

TEST_F(HttpServerTest, WhatIsRefusedCostsItsHeadAlone) {
  start();
  Client client(port());
  // The body never comes, and is not waited for; nor is it asked for.
  client.send(
      "PUT /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n");
  const std::string text =
      client.read_until([](const std::string& all) { return ends_with(all, "no"); });
  EXPECT_TRUE(starts_with(text, "HTTP/1.1 401")) << text;
  EXPECT_EQ(echo_.asked, 0);

  Client welcome(port());
  welcome.send("PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(welcome.read_answer(""), "HTTP/1.1 100 Continue\r\n\r\n");
  welcome.send("hi");
  EXPECT_TRUE(starts_with(welcome.read_answer("PUT /a hi"), "HTTP/1.1 200"));
}

TEST_F(HttpServerTest, WhatIsNoRequestIsSaidAndClosed) {
  options_.max_body_bytes = 10;
  start();
  const std::string chunked = "PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n";
  const struct {
    std::string text;
    const char* status;
  } cases[] = {{"garbage\r\n\r\n", " 400 "},
               {"GET / HTTP/1.1\r\nno colon here\r\n\r\n", " 400 "},
               {"PUT / HTTP/1.1\r\nContent-Length: many\r\n\r\n", " 400 "},
               {"GET / HTTP/1.1\r\nX: " + std::string(20'000, 'a'), " 431 "},
               {chunked + "\r\n0\r\n\r\n", " 411 "},
               {put("/a", "eleven byte"), " 413 "}};
  for (const auto& c : cases) {
    Client client(port());
    client.send(c.text);
    const std::string text =
        client.read_until([](const std::string& all) { return ends_with(all, "}}\n"); });
    EXPECT_NE(text.substr(0, 20).find(c.status), std::string::npos) << c.text.substr(0, 60) << text;
    EXPECT_NE(text.find("Connection: close"), std::string::npos) << text;
  }
  EXPECT_EQ(server_->counts().malformed, 6u);
  EXPECT_EQ(echo_.asked, 0);
}

TEST_F(HttpServerTest, HoldsNoMoreBytesThanItMay) {
  options_.max_buffered_bytes = 100;
  start();
  Client first(port());
  first.send(put("/wait", std::string(80, 'x')));
  echo_.await_waiting(1);
  EXPECT_EQ(server_->counts().buffered_bytes, 80u);
  Client second(port());
  second.send(put("/a", std::string(80, 'x')));
  const std::string text =
      second.read_until([](const std::string& all) { return ends_with(all, "}}\n"); });
  EXPECT_TRUE(starts_with(text, "HTTP/1.1 503")) << text;
  EXPECT_NE(text.find("Retry-After"), std::string::npos);
  echo_.let_go();
  first.read_answer("PUT /wait " + std::string(80, 'x'));
  Client third(port());
  third.send(put("/a", std::string(80, 'x')));
  EXPECT_TRUE(starts_with(third.read_answer("PUT /a " + std::string(80, 'x')), "HTTP/1.1 200"));
  third.send(get("/large"));  // an answer counts as well
  EXPECT_NE(third.read_until([](const std::string& all) { return ends_with(all, "}}\n"); })
                .find("HTTP/1.1 503"),
            std::string::npos);
  EXPECT_EQ(server_->counts().overloaded, 2u);
  // What the server itself said instead of the handler is what was seen, before it was sent.
  EXPECT_EQ(echo_.seen(), (std::vector<std::string>{"PUT /a 503", "PUT /wait 200 timed",
                                                    "PUT /a 200 timed", "GET /large 503 timed"}));
}

TEST_F(HttpServerTest, FurtherConnectionsWaitForThoseThatHaveRequests) {
  options_.max_connections = 1;
  start();
  Client first(port());
  first.send(get("/wait"));
  echo_.await_waiting(1);
  Client second(port());
  second.send(get("/b"));
  EXPECT_FALSE(second.has_something());
  EXPECT_EQ(server_->counts().accepted, 1u);
  echo_.let_go();
  first.read_answer("GET /wait ");
  EXPECT_TRUE(starts_with(second.read_answer("GET /b "), "HTTP/1.1 200"));
}

// Connections that are kept open and ask nothing cost others nothing.
TEST_F(HttpServerTest, TheIdlestConnectionMakesRoom) {
  options_.max_connections = 6;
  options_.max_of_peer = 4;
  options_.idle_timeout_s = options_.first_head_timeout_s = 3600;
  start();
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 12; ++i) {
    idle.push_back(std::make_unique<Client>(port()));
    idle.back()->send(get("/a"));
    idle.back()->read_answer("GET /a ");
  }
  EXPECT_EQ(idle[0]->read_to_end(), "<end>");
  EXPECT_EQ(server_->counts().displaced, 8u);
  Client other(port(), "127.0.0.2");
  other.send(get("/b"));
  EXPECT_TRUE(starts_with(other.read_answer("GET /b "), "HTTP/1.1 200"));
  idle.back()->send(get("/c"));
  EXPECT_TRUE(starts_with(idle.back()->read_answer("GET /c "), "HTTP/1.1 200")) << "the youngest";
}

// Bodies that were announced and do not come take no share; one peer has half at most.
TEST_F(HttpServerTest, SlowBodiesLeaveRoomForOthers) {
  options_.max_buffered_bytes = std::size_t{4} << 20;
  options_.max_body_bytes = std::size_t{1} << 20;
  start();
  const auto begun = [&](std::size_t sent) {
    auto client = std::make_unique<Client>(port());
    client->send(fmt::format("PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
                             options_.max_body_bytes) +
                 std::string(sent, 'x'));
    return client;
  };
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 16; ++i) slow.push_back(begun(1));
  Client same(port());
  same.send(put("/a", std::string(500'000, 'y')));
  EXPECT_TRUE(starts_with(same.read_answer("PUT /a " + std::string(500'000, 'y')), "HTTP/1.1 200"));
  // Nearly whole ones hold what they sent: no more than half of all.
  for (int i = 0; i < 8; ++i) slow.push_back(begun(1'000'000));
  Client other(port(), "127.0.0.2");
  other.send(put("/b", std::string(1 << 20, 'z')));
  EXPECT_TRUE(
      starts_with(other.read_answer("PUT /b " + std::string(1 << 20, 'z')), "HTTP/1.1 200"));
}

TEST_F(HttpServerTest, TakesNoRequestThatTwoServersCouldReadDifferently) {
  start();
  const struct {
    std::string head;
    const char* status;
  } cases[] = {{"GET /a HTTP/1.1\r\n\r\n", " 400 "},
               {"GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", " 400 "},
               {"GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", " 400 "},
               {"GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n", " 400 "},
               {"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", " 501 "},
               {"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", " 501 "},
               {"PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: "
                "xchunked\r\n\r\n",
                " 400 "},
               {"PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: "
                "1\r\n\r\nx",
                " 400 "}};
  for (const auto& c : cases) {
    Client client(port());
    client.send(c.head);
    const std::string text = client.read_to_end();
    EXPECT_NE(text.substr(0, 20).find(c.status), std::string::npos) << c.head << text;
  }
  EXPECT_EQ(echo_.asked, 0);
  Client old(port());
  old.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_NE(old.read_to_end().find(" 200 "), std::string::npos);
}

TEST_F(HttpServerTest, WhoSendsNothingOrTooSlowlyIsClosed) {
  options_.first_head_timeout_s = 0.05;
  options_.idle_timeout_s = 0.05;
  options_.transfer_timeout_s = 0.05;
  options_.slowest_bytes_per_s = 1e9;
  start();
  Client silent(port()), half(port()), slow(port());
  half.send("GET / HT");
  slow.send("PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nnot all of it");
  EXPECT_EQ(silent.read_to_end(), "<end>");
  EXPECT_EQ(half.read_to_end(), "<end>");
  EXPECT_EQ(slow.read_to_end(), "<end>");
  EXPECT_EQ(echo_.asked, 0);
}

TEST_F(HttpServerTest, WhoNeverAsksIsClosedSooner) {
  options_.first_head_timeout_s = 0.05;
  options_.idle_timeout_s = 3600;
  start();
  Client silent(port()), served(port());
  served.send(get("/a"));
  served.read_answer("GET /a ");
  EXPECT_EQ(silent.read_to_end(), "<end>");
  served.send(get("/b"));
  EXPECT_TRUE(starts_with(served.read_answer("GET /b "), "HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AnAnswerToHeadHasNoBody) {
  start();
  Client client(port());
  client.send("HEAD /refuse HTTP/1.1\r\nHost: x\r\n\r\nHEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" +
              get("/b"));
  const std::string text = client.read_answer("GET /b ");
  EXPECT_NE(text.find("Content-Length: 2\r\n\r\nHTTP/1.1 200"), std::string::npos) << text;
  EXPECT_NE(text.find("Content-Length: 8\r\n\r\nHTTP/1.1 200"), std::string::npos) << text;
}

TEST_F(HttpServerTest, AHandlerThatThrowsCostsItsRequest) {
  start();
  Client client(port());
  client.send(get("/throw"));
  EXPECT_TRUE(
      starts_with(client.read_until([](const std::string& all) { return ends_with(all, "}}\n"); }),
                  "HTTP/1.1 500"));
  client.send(get("/a"));
  EXPECT_TRUE(starts_with(client.read_answer("GET /a "), "HTTP/1.1 200"));
  client.send("garbage\r\n\r\n");
  client.read_to_end();
  EXPECT_EQ(echo_.seen(),
            (std::vector<std::string>{"GET /throw 500 timed", "GET /a 200 timed", "  400"}));
}

TEST_F(HttpServerTest, StoppingLetsRequestsUnderWayEnd) {
  start();
  Client busy(port()), idle(port());
  idle.send(get("/a"));
  idle.read_answer("GET /a ");
  busy.send(get("/wait"));
  echo_.await_waiting(1);
  std::thread stopping([this] { server_->stop(60); });
  EXPECT_EQ(idle.read_to_end(), "<end>");
  echo_.let_go();
  const std::string text = busy.read_to_end();
  EXPECT_NE(text.find("GET /wait "), std::string::npos) << text;
  EXPECT_NE(text.find("Connection: close"), std::string::npos) << text;
  stopping.join();
  EXPECT_FALSE(Client(port()).connected());
  server_->stop(60);
}

TEST_F(HttpServerTest, StoppingAtOnceWaitsForTheHandlerAlone) {
  start();
  Client busy(port()), silent(port());
  busy.send(get("/wait"));
  echo_.await_waiting(1);
  std::thread stopping([this] { server_->stop(0); });
  EXPECT_EQ(silent.read_to_end(), "<end>");
  EXPECT_EQ(busy.read_to_end(), "<end>");
  echo_.let_go();
  stopping.join();
}

// The server can end at every point of a request and uses no freed memory (for the sanitizers).
TEST_F(HttpServerTest, StoppingInTheMiddleOfRequests) {
  options_.handler_threads = 2;
  for (int round = 0; round < 30; ++round) {
    start();
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Client>(port()));
      clients.back()->send(put("/a", std::string(100, 'x')) + put("/b", "y"));
    }
    server_->stop(0);
    server_.reset();
  }
}

TEST_F(HttpServerTest, ManyAtOnceAreEachAnsweredTheirOwn) {
  start();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Client client(port());
      for (int i = 0; i < 40; ++i) {
        const std::string body = std::to_string(t) + "/" + std::to_string(i);
        client.send(put("/a", body));
        if (starts_with(client.read_answer("PUT /a " + body), "HTTP/1.1 200")) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 320);
  EXPECT_EQ(server_->counts().buffered_bytes, 0u);
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  start();
  HttpServerOptions taken;
  taken.port = port();
  const Status status = HttpServer::start(taken, echo_).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("cannot listen on 127.0.0.1 port"), std::string::npos);
  HttpServerOptions named;
  named.address = "build7";
  EXPECT_EQ(HttpServer::start(named, echo_).status().code(), Code::kInvalid);
  EXPECT_TRUE(is_loopback("127.0.0.1").value());
  EXPECT_TRUE(is_loopback("::1").value());
  EXPECT_FALSE(is_loopback("0.0.0.0").value());
  EXPECT_FALSE(is_loopback("::").value());
  EXPECT_EQ(is_loopback("localhost").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::fleet
