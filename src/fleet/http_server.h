// SPDX-License-Identifier: Apache-2.0
// HttpServer: HTTP/1.1 on a TCP port for one HttpHandler (Boost.Beast).
//
// Everything that a client decides is bounded: connections, heads, bodies, the bytes of all bodies
// and answers held at once, the time each step may take. Bodies need a Content-Length. With a
// certificate it speaks TLS (fleet/http_wire). Owner: the code that started it; the handler
// outlives it. Thread-safety: `port`, `url` and `counts` [MT], the rest belongs to the owner's
// thread. Failure: kInvalid (not an address, no certificate), kUnavailable (the port is taken, or
// not allowed).
#pragma once

#include "base/status.h"
#include "fleet/http.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace purlin::fleet {

struct HttpServerOptions {
  std::string address = "127.0.0.1";         // IPv4 or IPv6, no name
  std::uint16_t port = 0;                    // 0: one that is free
  std::string tls_certificate{}, tls_key{};  // PEM files; "" = no TLS
  int network_threads = 2, handler_threads = 8;
  std::size_t max_connections = 4096;  // one more costs the idlest of the peer that has most
  std::size_t max_of_peer = 1024;      // of them, of one address: one more costs its idlest
  std::size_t max_body_bytes = std::size_t{64} << 20;
  // Beyond it: 503, come back. One peer, or one token, holds half of it at most. A body counts as
  // it arrives, so a slow one holds what it sent.
  std::size_t max_buffered_bytes = std::size_t{512} << 20;
  double first_head_timeout_s = 15;          // From connecting to the end of the first head.
  double idle_timeout_s = 75;                // From one request to the end of the next head.
  double transfer_timeout_s = 30;            // Of a body or an answer, plus the time of
  double slowest_bytes_per_s = 64 * 1024.0;  // what came so far at this speed.
};

struct HttpServerCounts {
  std::uint64_t accepted = 0;        // connections
  std::uint64_t open = 0;            // of them, now
  std::uint64_t malformed = 0;       // requests that were answered without asking the handler
  std::uint64_t overloaded = 0;      // requests refused for max_buffered_bytes
  std::uint64_t displaced = 0;       // idle connections closed to make room for others
  std::uint64_t buffered_bytes = 0;  // of bodies and answers, now
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, HttpHandler& handler);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8717", "https://…" with a certificate
  // For connections from now on. After a failure the certificate before stays.
  Status load_certificate();
  HttpServerCounts counts() const;
  // Accepts nothing more, lets requests under way end for so long, then closes what is open.
  // Requests that the handler has by then are waited for. A second call does nothing.
  void stop(double grace_s);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether only this machine can reach that address; kInvalid where it is none.
Result<bool> is_loopback(const std::string& address);

}  // namespace purlin::fleet
