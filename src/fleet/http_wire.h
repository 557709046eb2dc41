// SPDX-License-Identifier: Apache-2.0
// HttpWire: the stream of one connection, with or without TLS, for Beast's reads and writes.
// TlsContext: a certificate and its key, which can be replaced while connections are open.
//
// Only fleet/http_server includes this: it brings Asio and OpenSSL. A wire belongs to its
// connection's strand; TlsContext is [MT]. Failure: kInvalid, with the file and OpenSSL's reason.
#pragma once

#include "base/status.h"

#define BOOST_ERROR_CODE_HEADER_ONLY
#define BOOST_ASIO_NO_DEPRECATED
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace purlin::fleet {

using TlsMaterial = std::shared_ptr<boost::asio::ssl::context>;

class TlsContext {
 public:
  Status load(const std::string& certificate, const std::string& key);
  TlsMaterial now() const;  // null: none was loaded

 private:
  mutable std::mutex mutex_;
  TlsMaterial material_;
};

class HttpWire {
 public:
  HttpWire(boost::asio::ip::tcp::socket socket, TlsMaterial tls)
      : plain_(std::move(socket)), material_(std::move(tls)) {
    if (material_) tls_.emplace(plain_, *material_);
  }
  bool is_encrypted() const { return tls_.has_value(); }

  // As Beast asks of a stream.
  using executor_type = boost::beast::tcp_stream::executor_type;
  executor_type get_executor() { return plain_.get_executor(); }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    plain_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    plain_.async_write_some(buffers, std::forward<Handler>(handler));
  }
  // REQUIRES: is_encrypted().
  template <class Handler>
  void async_handshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }

  boost::asio::ip::tcp::socket& socket() { return plain_.socket(); }
  void expires_after(std::chrono::milliseconds time) { plain_.expires_after(time); }
  void expires_at(std::chrono::steady_clock::time_point time) { plain_.expires_at(time); }
  void expires_never() { plain_.expires_never(); }

 private:
  boost::beast::tcp_stream plain_;
  TlsMaterial material_;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
};

}  // namespace purlin::fleet
