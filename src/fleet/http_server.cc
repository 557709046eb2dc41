// SPDX-License-Identifier: Apache-2.0
#include "fleet/http_server.h"

#include "base/hash.h"
#include "fleet/http_wire.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace purlin::fleet {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr std::uint32_t kMaxHeadBytes = 16 * 1024;
constexpr std::size_t kReadBytes = 64 * 1024, kHeadPieceBytes = 4096;
constexpr std::size_t kMaxDiscardedBytes = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kDiscardTime{2000}, kAcceptPause{100}, kBetweenPieces{200};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string text(beast::string_view view) { return {view.data(), view.size()}; }

HttpAnswer problem(int status, std::string_view message) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = fmt::format(
      "{{\"schema\": \"purlin.error/1\", \"error\": {{\"status\": {}, \"message\": \"{}\"}}}}\n",
      status, message);
  return answer;
}

// Bytes of bodies and answers that are held, by who they are held for. [MT]
class BodyBudget {
 public:
  explicit BodyBudget(std::uint64_t most) : most_(most) {}
  // Whether all of `holders` may hold so much more.
  bool take(const std::vector<std::string>& holders, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > most_ || held_ > most_ - bytes) return false;
    for (const std::string& holder : holders)
      if (const auto found = held_by_.find(holder);
          found != held_by_.end() && found->second + bytes > most_ / 2)
        return false;
    held_ += bytes;
    for (const std::string& holder : holders) held_by_[holder] += bytes;
    return true;
  }
  void give_back(const std::vector<std::string>& holders, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    held_ -= bytes;
    for (const std::string& holder : holders)
      if ((held_by_[holder] -= bytes) == 0) held_by_.erase(holder);
  }
  std::uint64_t held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }

 private:
  std::mutex mutex_;
  const std::uint64_t most_;
  std::uint64_t held_ = 0;
  std::map<std::string, std::uint64_t> held_by_;
};

// What one request holds of it.
class Held {
 public:
  explicit Held(BodyBudget& budget) : budget_(budget) {}
  ~Held() { release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  // From now on; nothing may be held.
  void count_for(std::vector<std::string> holders) { holders_ = std::move(holders); }
  bool grow_to(std::uint64_t bytes) {
    if (bytes <= bytes_) return true;
    if (!budget_.take(holders_, bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }
  void release() {
    if (bytes_ > 0) budget_.give_back(holders_, std::exchange(bytes_, 0));
  }

 private:
  BodyBudget& budget_;
  std::vector<std::string> holders_;
  std::uint64_t bytes_ = 0;
};

// What a head must not be although a lenient parser reads it: two servers in a row could take it
// for different requests. "" where it is right.
std::string_view flaw_of(std::string_view head, const http::request_header<>& request) {
  if (head.find("\r\n ") != head.npos || head.find("\r\n\t") != head.npos)
    return "a header that goes on in the next line is not taken";
  const auto count = [&](http::field field) {
    return std::distance(request.equal_range(field).first, request.equal_range(field).second);
  };
  if (count(http::field::host) > 1 || (request.version() >= 11 && count(http::field::host) == 0))
    return "a request has one Host";
  if (count(http::field::content_length) > 1) return "a request has one Content-Length";
  if (count(http::field::transfer_encoding) > 0 && count(http::field::content_length) > 0)
    return "a request has a Content-Length or a Transfer-Encoding, not both";
  return {};
}

class Connection;

// What the connections have in common.
struct Shared {
  Shared(HttpServerOptions chosen, HttpHandler& served)
      : options(std::move(chosen)),
        handler(served),
        handlers(static_cast<std::size_t>(std::max(1, options.handler_threads))) {}

  const HttpServerOptions options;
  HttpHandler& handler;
  TlsContext tls;  // null: no TLS
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> accepted{0}, malformed{0}, overloaded{0}, displaced{0};
  std::mutex mutex;
  std::condition_variable fewer;
  std::map<const Connection*, std::weak_ptr<Connection>> open;  // under the mutex
  std::map<std::string, std::size_t> open_of_peer;              // under the mutex
  BodyBudget bodies{options.max_buffered_bytes};
  // Both may hold connections to the end, which refer to what is above, and whose sockets need
  // `io`: so what the handlers never came to goes before it.
  asio::io_context io;
  asio::thread_pool handlers;
};

// One client. All of it but `work` runs on the strand of its stream.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : stream_(std::move(socket), shared.tls.now()), shared_(shared), held_(shared.bodies) {
    ErrorCode ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    const auto peer = stream_.socket().remote_endpoint(ignored);
    peer_ = peer.address().to_string();
  }
  ~Connection() {
    const std::lock_guard lock(shared_.mutex);
    shared_.open.erase(this);
    if (counted_ && --shared_.open_of_peer[peer_] == 0) shared_.open_of_peer.erase(peer_);
    shared_.fewer.notify_all();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->shake_hands(); });
  }
  // Under the mutex.
  void count() {
    ++shared_.open_of_peer[peer_];
    counted_ = true;
  }
  const std::string& peer() const { return peer_; }
  // Since when it has waited for a request; none while it has one. [MT]
  std::optional<std::int64_t> idle_since() const {
    const std::int64_t since = idle_since_.load();
    return since == 0 ? std::nullopt : std::optional(since);
  }
  // To make room: it is not chosen twice.
  void displace() {
    idle_since_.store(0);
    close_if_idle();
  }
  void close_if_idle() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      if (self->idle_) self->close();
    });
  }
  void close_now() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->close(); });
  }

 private:
  void shake_hands() {
    if (!stream_.is_encrypted()) return read_head();
    set_idle(true);
    stream_.expires_after(milliseconds(shared_.options.first_head_timeout_s));
    stream_.async_handshake([self = shared_from_this()](ErrorCode code) {
      if (!code) return self->read_head();
      self->shared_.malformed.fetch_add(1);
      self->close();
    });
  }

  void close() {
    ErrorCode ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.socket().close(ignored);
  }

  void read_head() {
    if (shared_.stopping.load()) return close();
    parser_.emplace();
    parser_->header_limit(kMaxHeadBytes);
    parser_->body_limit(boost::none);  // looked at below, where there is a better answer
    head_ = {};
    head_.peer = peer_;
    asked_.reset();
    held_.release();
    held_.count_for({"peer " + peer_});
    set_idle(true);
    stream_.expires_after(milliseconds(served_ ? shared_.options.idle_timeout_s
                                               : shared_.options.first_head_timeout_s));
    read_more_head();
  }

  // The whole head, unchanged: the parser does not say what it made of a folded line.
  void read_more_head() {
    const auto data = buffer_.data();
    const std::string_view sent(static_cast<const char*>(data.data()), data.size());
    if (const std::size_t end = sent.find("\r\n\r\n"); end != sent.npos && end < kMaxHeadBytes)
      return parse_head(std::string(sent.substr(0, end)));
    if (sent.size() >= kMaxHeadBytes) return on_head(http::error::header_limit, {});
    stream_.async_read_some(buffer_.prepare(kHeadPieceBytes),
                            [self = shared_from_this()](ErrorCode code, std::size_t bytes) {
                              self->buffer_.commit(bytes);
                              code ? self->on_head(code, {}) : self->read_more_head();
                            });
  }

  void set_idle(bool idle) {
    idle_ = idle;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    idle_since_.store(idle ? std::max<std::int64_t>(now.count(), 1) : 0);
  }

  void parse_head(std::string raw) {
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this(), raw = std::move(raw)](
                                ErrorCode code, std::size_t) { self->on_head(code, raw); });
  }

  void on_head(ErrorCode code, std::string_view raw) {
    set_idle(false);
    served_ = true;
    if (code == http::error::header_limit || code == http::error::buffer_overflow)
      return refuse(problem(431, "the request's head is over 16 KiB"));
    if (code && code.category() == http::make_error_code(http::error::bad_method).category() &&
        code != http::error::end_of_stream && code != http::error::partial_message)
      return refuse(problem(400, "this is no HTTP/1.1 request"));
    if (code) return close();  // it went, or waited too long
    const auto& request = parser_->get();
    head_.method = text(request.method_string());
    head_.target = text(request.target());
    for (const auto& field : request) {
      std::string name = text(field.name_string());
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      head_.headers.emplace_back(std::move(name), text(field.value()));
    }
    keep_alive_ = request.keep_alive();
    if (const std::string_view flaw = flaw_of(raw, request); !flaw.empty())
      return refuse(problem(400, flaw));
    if (request.count(http::field::transfer_encoding) > 0 && !parser_->chunked())
      return refuse(problem(501, "no Transfer-Encoding is known here"));
    if (parser_->chunked())
      return refuse(problem(411, "a body needs a Content-Length; chunks are not taken"));
    head_.body_bytes = parser_->content_length().value_or(0);
    if (head_.body_bytes > shared_.options.max_body_bytes)
      return refuse(problem(
          413, fmt::format("a body may have {} bytes at most", shared_.options.max_body_bytes)));
    if (std::optional<HttpAnswer> early = shared_.handler.early(head_)) {
      keep_alive_ = keep_alive_ && head_.body_bytes == 0;
      return respond(std::move(*early));
    }
    held_.count_for(holders());
    if (head_.body_bytes == 0) return work("");
    if (http::token_list(request[http::field::expect]).exists("100-continue"))
      return say_continue();
    read_body();
  }

  void say_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    expect_transfer(0);
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = shared_from_this()](ErrorCode code, std::size_t) {
                        if (code) return self->close();
                        self->read_body();
                      });
  }

  // Who is to have no more than a share: the address, and who a token says it is.
  std::vector<std::string> holders() const {
    std::vector<std::string> all = {"peer " + peer_};
    if (const std::string_view token = head_.header("authorization"); !token.empty())
      all.push_back("token " + hash128_hex(token));
    return all;
  }

  void read_body() {
    parser_->body_limit(head_.body_bytes);
    body_began_ = std::chrono::steady_clock::now();
    read_more();
  }

  // Piece by piece: what was not sent yet takes no share, and the time that it may take grows
  // with what came.
  void read_more() {
    const std::uint64_t came = parser_->get().body().size();
    if (!held_.grow_to(std::min(came + kReadBytes, head_.body_bytes))) {
      shared_.overloaded.fetch_add(1);
      keep_alive_ = false;
      return respond(overload());
    }
    stream_.expires_at(body_began_ + transfer_time(came));
    http::async_read_some(stream_, buffer_, *parser_,
                          [self = shared_from_this()](ErrorCode code, std::size_t) {
                            if (code) return self->close();
                            if (!self->parser_->is_done()) return self->read_more();
                            self->work(std::move(self->parser_->get().body()));
                          });
  }

  void work(std::string body) {
    stream_.expires_never();
    asked_ = std::chrono::steady_clock::now();
    asio::post(shared_.handlers, [self = shared_from_this(), body = std::move(body)]() mutable {
      HttpAnswer answer;
      try {
        answer = self->shared_.handler.answer(self->head_, body);
      } catch (...) {  // it ran out of memory, say; the others go on
        answer = problem(500, "the server failed on this request");
      }
      std::string().swap(body);
      asio::post(self->stream_.get_executor(), [self, answer = std::move(answer)]() mutable {
        self->held_.release();
        // A short one always fits: what was stored is not to be called refused.
        if (answer.body.size() > kReadBytes && !self->held_.grow_to(answer.body.size())) {
          self->shared_.overloaded.fetch_add(1);
          answer = overload();
        }
        self->respond(std::move(answer));
      });
    });
  }

  static HttpAnswer overload() {
    HttpAnswer answer = problem(503, "the server holds as much as it may; try again");
    answer.headers.emplace_back("Retry-After", "1");
    return answer;
  }

  void refuse(HttpAnswer answer) {
    shared_.malformed.fetch_add(1);
    keep_alive_ = false;
    respond(std::move(answer));
  }

  void respond(HttpAnswer answer) {
    std::optional<double> seconds;
    if (asked_)
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - *asked_).count();
    shared_.handler.answered(head_, answer, seconds);
    more_ = head_.method == "HEAD" ? nullptr : std::move(answer.more);
    keep_alive_ = keep_alive_ && !shared_.stopping.load() && !more_;
    response_.emplace();
    response_->result(static_cast<unsigned>(answer.status));
    response_->set(http::field::content_type, answer.content_type);
    response_->set(http::field::cache_control, "no-store");
    response_->set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : answer.headers) response_->set(name, value);
    response_->keep_alive(keep_alive_);
    // To HEAD the answer says what a body would have, and has none. The end of the connection ends
    // one that goes on.
    if (!more_) response_->content_length(answer.body.size());
    if (head_.method != "HEAD") response_->body() = std::move(answer.body);
    expect_transfer(response_->body().size());
    http::async_write(stream_, *response_,
                      [self = shared_from_this()](ErrorCode code, std::size_t) {
                        self->response_.reset();
                        self->held_.release();
                        if (code) return self->close();
                        if (self->more_) return self->wait_for_more();
                        if (self->keep_alive_) return self->read_head();
                        self->discard();
                      });
  }

  // No thread is held meanwhile.
  void wait_for_more() {
    stream_.expires_never();
    pause_.expires_after(kBetweenPieces);
    pause_.async_wait([self = shared_from_this()](ErrorCode code) {
      if (code || self->shared_.stopping.load() || !self->stream_.socket().is_open())
        return self->close();
      asio::post(self->shared_.handlers, [self] {
        std::optional<std::string> piece;
        try {
          piece = self->more_();
        } catch (...) {  // it ran out of memory, say: the answer ends
        }
        asio::post(self->stream_.get_executor(), [self, piece = std::move(piece)]() mutable {
          self->send_more(std::move(piece));
        });
      });
    });
  }
  void send_more(std::optional<std::string> piece) {
    if (!piece) return discard();
    if (piece->empty()) return wait_for_more();
    piece_ = std::move(*piece);
    expect_transfer(piece_.size());
    asio::async_write(stream_, asio::buffer(piece_),
                      [self = shared_from_this()](ErrorCode code, std::size_t) {
                        code ? self->close() : self->wait_for_more();
                      });
  }

  // Closing a connection with bytes unread resets it, and the client may never see the answer. So
  // what still comes is read for a while.
  void discard() {
    ErrorCode ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kDiscardTime);
    buffer_.clear();
    discarded_ = 0;
    discard_more();
  }
  void discard_more() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kReadBytes / 2),
                            [self = shared_from_this()](ErrorCode code, std::size_t bytes) {
                              self->discarded_ += bytes;
                              if (code || self->discarded_ > kMaxDiscardedBytes)
                                return self->close();
                              self->discard_more();
                            });
  }

  void expect_transfer(std::uint64_t bytes) { stream_.expires_after(transfer_time(bytes)); }
  std::chrono::milliseconds transfer_time(std::uint64_t bytes) const {
    return milliseconds(shared_.options.transfer_timeout_s +
                        static_cast<double>(bytes) / shared_.options.slowest_bytes_per_s);
  }

  HttpWire stream_;
  Shared& shared_;
  beast::flat_buffer buffer_{kReadBytes};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  HttpHead head_{};
  std::function<std::optional<std::string>()> more_;  // of an answer that goes on
  std::string piece_;                                 // of it, under way
  asio::steady_timer pause_{stream_.get_executor()};
  std::optional<std::chrono::steady_clock::time_point> asked_;  // when the handler was
  std::string peer_;
  Held held_;
  std::chrono::steady_clock::time_point body_began_;
  std::atomic<std::int64_t> idle_since_{0};
  std::size_t discarded_ = 0;
  bool keep_alive_ = false, idle_ = false, served_ = false;
  bool counted_ = false;  // in open_of_peer; under the mutex
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, HttpHandler& handler)
      : shared_(std::move(options), handler),
        acceptor_(asio::make_strand(shared_.io)),
        pause_(acceptor_.get_executor()) {}
  ~Impl() { stop(0); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start() {
    const HttpServerOptions& options = shared_.options;
    PURLIN_TRY(load_certificate());
    ErrorCode code;
    const auto address = asio::ip::make_address(options.address, code);
    if (code)
      return error(Code::kInvalid, "'{}' is not an address to listen on; give one like 127.0.0.1",
                   options.address);
    const tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), code);
    if (!code) acceptor_.set_option(asio::socket_base::reuse_address(true), code);
    if (!code) acceptor_.bind(endpoint, code);
    if (!code) acceptor_.listen(asio::socket_base::max_listen_connections, code);
    if (code)
      return error(Code::kUnavailable, "cannot listen on {} port {}: {}", options.address,
                   options.port, code.message());
    port_ = acceptor_.local_endpoint(code).port();
    accept();
    for (int i = 0; i < std::max(1, options.network_threads); ++i)
      threads_.emplace_back([this] { run(); });
    return Status::ok();
  }

  Status load_certificate() {
    const HttpServerOptions& options = shared_.options;
    if (options.tls_certificate.empty()) return Status::ok();
    return shared_.tls.load(options.tls_certificate, options.tls_key);
  }

  void stop(double grace_s) {
    if (threads_.empty()) return;
    shared_.stopping.store(true);
    asio::post(acceptor_.get_executor(), [this] {
      ErrorCode ignored;
      acceptor_.close(ignored);
      pause_.cancel();
    });
    each_connection([](Connection& connection) { connection.close_if_idle(); });
    {
      std::unique_lock lock(shared_.mutex);
      shared_.fewer.wait_for(lock, milliseconds(grace_s), [this] { return shared_.open.empty(); });
    }
    each_connection([](Connection& connection) { connection.close_now(); });
    shared_.handlers.join();
    shared_.io.stop();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::uint16_t port() const { return port_; }
  const HttpServerOptions& options() const { return shared_.options; }
  HttpServerCounts counts() {
    HttpServerCounts counts;
    counts.accepted = shared_.accepted.load();
    counts.malformed = shared_.malformed.load();
    counts.overloaded = shared_.overloaded.load();
    counts.displaced = shared_.displaced.load();
    counts.buffered_bytes = shared_.bodies.held();
    const std::lock_guard lock(shared_.mutex);
    counts.open = shared_.open.size();
    return counts;
  }

 private:
  template <class Do>
  void each_connection(const Do& what) {
    std::vector<std::shared_ptr<Connection>> open;
    {
      const std::lock_guard lock(shared_.mutex);
      for (const auto& [address, connection] : shared_.open)
        if (auto alive = connection.lock()) open.push_back(std::move(alive));
    }
    for (const auto& connection : open) what(*connection);
  }

  void run() {
    // What throws here is out of memory or of descriptors: it costs the connection it hit.
    while (true) {
      try {
        shared_.io.run();
        return;
      } catch (...) {
      }
    }
  }

  void accept() {
    acceptor_.async_accept(
        asio::make_strand(shared_.io), [this](ErrorCode code, tcp::socket socket) {
          if (shared_.stopping.load()) return;
          if (code) return wait();  // no descriptors left, say
          try {
            next_ = std::make_shared<Connection>(std::move(socket), shared_);
            admit();
          } catch (...) {  // out of memory: that connection is lost, the next one is not
            next_.reset();
            wait();
          }
        });
  }

  // While all that are open have requests under way, the next one waits, and further ones in the
  // system's queue.
  void admit() {
    const Room room = make_room(next_->peer());
    if (room == Room::kLater) return wait();
    const std::shared_ptr<Connection> connection = std::exchange(next_, nullptr);
    if (room == Room::kYes) {
      shared_.accepted.fetch_add(1);
      {
        const std::lock_guard lock(shared_.mutex);
        shared_.open.emplace(connection.get(), connection);
        connection->count();
      }
      connection->start();
    }
    accept();
  }

  enum class Room { kYes, kLater, kNever };
  // Where the peer has its share of connections, or all have theirs, the one that has been idle
  // longest makes room: of that peer, or of the peer that has most. Without an idle one, a peer
  // that has its share gets no more.
  Room make_room(const std::string& peer) {
    std::shared_ptr<Connection> idlest;
    std::vector<std::shared_ptr<Connection>> seen;  // none may end under the mutex, which it takes
    bool too_many = false;
    {
      const std::lock_guard lock(shared_.mutex);
      const auto& of_peer = shared_.open_of_peer;
      const auto mine = of_peer.find(peer);
      too_many = mine != of_peer.end() && mine->second >= shared_.options.max_of_peer;
      if (!too_many && shared_.open.size() < shared_.options.max_connections) return Room::kYes;
      const auto most =
          std::max_element(of_peer.begin(), of_peer.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const std::string& whose = too_many || most == of_peer.end() ? peer : most->first;
      for (const auto& [address, open] : shared_.open) {
        std::shared_ptr<Connection> alive = open.lock();
        if (!alive) continue;
        seen.push_back(alive);
        if (alive->peer() != whose || !alive->idle_since()) continue;
        if (!idlest || *alive->idle_since() < idlest->idle_since().value_or(INT64_MAX))
          idlest = std::move(alive);
      }
    }
    if (!idlest) return too_many ? Room::kNever : Room::kLater;
    idlest->displace();
    shared_.displaced.fetch_add(1);
    return Room::kYes;
  }

  void wait() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](ErrorCode) {
      if (!shared_.stopping.load()) next_ ? admit() : accept();
    });
  }

  Shared shared_;
  // While all that is left is with handlers, the network has nothing to do and must not end.
  asio::executor_work_guard<asio::io_context::executor_type> stay_{shared_.io.get_executor()};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::shared_ptr<Connection> next_;  // accepted, and waits for room
  std::vector<std::thread> threads_;
  std::uint16_t port_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options,
                                                      HttpHandler& handler) {
  auto impl = std::make_unique<Impl>(std::move(options), handler);
  PURLIN_TRY(impl->start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::uint16_t HttpServer::port() const { return impl_->port(); }
std::string HttpServer::url() const {
  const std::string& address = impl_->options().address;
  const bool six = address.find(':') != std::string::npos;
  const bool tls = !impl_->options().tls_certificate.empty();
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", six ? "[" : "", address,
                     six ? "]" : "", port());
}
Status HttpServer::load_certificate() { return impl_->load_certificate(); }
HttpServerCounts HttpServer::counts() const { return impl_->counts(); }
void HttpServer::stop(double grace_s) { impl_->stop(grace_s); }

Result<bool> is_loopback(const std::string& address) {
  ErrorCode code;
  const auto parsed = asio::ip::make_address(address, code);
  if (code)
    return error(Code::kInvalid, "'{}' is not an address to listen on; give one like 127.0.0.1",
                 address);
  return parsed.is_loopback();
}

}  // namespace purlin::fleet
