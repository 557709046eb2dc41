// SPDX-License-Identifier: Apache-2.0
// The connection layer of the server: whatever a client sends, a request reaches the handler only
// with a method, a target, one Host and the body that its head announced, and the next client is
// served. The first byte says into how many pieces the bytes are sent.
#include "fleet/http_server.h"
#include "require.h"

#include <arpa/inet.h>
#include <cstdint>
#include <cstdlib>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace purlin::fleet;

class Judge : public HttpHandler {
 public:
  std::optional<HttpAnswer> early(const HttpHead& head) override {
    require(!head.method.empty() && !head.target.empty());
    int hosts = 0;
    for (const auto& [name, value] : head.headers) {
      hosts += name == "host" ? 1 : 0;
      require(name != "transfer-encoding");
      require(value.find_first_of("\r\n") == std::string::npos);
    }
    require(hosts <= 1);
    return std::nullopt;
  }
  HttpAnswer answer(const HttpHead& head, const std::string& body) override {
    require(body.size() == head.body_bytes && body.size() <= 4096);
    return {};
  }
  void answered(const HttpHead&, const HttpAnswer&, std::optional<double>) override {}
};

int connected(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

std::string exchange(std::uint16_t port, std::string_view text, std::size_t pieces) {
  const int fd = connected(port);
  const std::size_t piece = text.size() / pieces + 1;
  for (std::size_t at = 0; at < text.size(); at += piece)
    if (const auto part = text.substr(at, piece);
        ::send(fd, part.data(), part.size(), MSG_NOSIGNAL) < 0)
      break;
  ::shutdown(fd, SHUT_WR);
  std::string all;
  char bytes[4096];
  for (ssize_t got; (got = ::recv(fd, bytes, sizeof bytes, 0)) > 0;)
    all.append(bytes, static_cast<std::size_t>(got));
  ::close(fd);
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Judge judge;
  static const auto server = [] {
    HttpServerOptions options;
    options.max_body_bytes = 4096;
    options.max_buffered_bytes = 1 << 20;
    options.network_threads = options.handler_threads = 1;
    options.first_head_timeout_s = options.idle_timeout_s = options.transfer_timeout_s = 60;
    return HttpServer::start(options, judge).value().release();
  }();
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  exchange(server->port(), text, 1 + data[0] % 4);
  const std::string next = exchange(server->port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 1);
  require(next.substr(0, 12) == "HTTP/1.1 200");
  return 0;
}
