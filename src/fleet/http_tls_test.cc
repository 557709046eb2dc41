// SPDX-License-Identifier: Apache-2.0
// TLS over real sockets, with certificates that the test makes.
#include "base/files.h"
#include "base/text.h"
#include "fleet/http_server.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <memory>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace purlin::fleet {
namespace {

template <auto Free>
struct OpenSslFree {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, OpenSslFree<Free>>;

// Writes a self-signed certificate of that name, and its key.
void make_certificate(const std::string& certificate, const std::string& key,
                      const std::string& name) {
  const Owned<EVP_PKEY, EVP_PKEY_free> pair(EVP_EC_gen("P-256"));
  const Owned<X509, X509_free> x509(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
  X509_set_pubkey(x509.get(), pair.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x509.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x509.get(), X509_get_subject_name(x509.get()));
  X509_sign(x509.get(), pair.get(), EVP_sha256());
  std::FILE* file = std::fopen(certificate.c_str(), "w");
  PEM_write_X509(file, x509.get());
  std::fclose(file);
  file = std::fopen(key.c_str(), "w");
  PEM_write_PrivateKey(file, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
}

int connected(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, int most = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())), fd_(connected(port)) {
    SSL_CTX_set_max_proto_version(context_.get(), most);
    SSL_CTX_set_security_level(context_.get(), 0);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd_);
    ready_ = SSL_connect(ssl_.get()) == 1;
  }
  ~TlsClient() { ::close(fd_); }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;
  bool ready() const { return ready_; }
  std::string subject() const {
    const Owned<X509, X509_free> x509(SSL_get1_peer_certificate(ssl_.get()));
    char name[256] = {};
    X509_NAME_oneline(X509_get_subject_name(x509.get()), name, sizeof name);
    return name;
  }
  std::string ask(const std::string& request, const std::string& end) {
    SSL_write(ssl_.get(), request.data(), static_cast<int>(request.size()));
    std::string text;
    char bytes[4096];
    for (int got; !ends_with(text, end) && (got = SSL_read(ssl_.get(), bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<std::size_t>(got));
    return text;
  }

 private:
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL, SSL_free> ssl_;
  const int fd_;
  bool ready_ = false;
};

class SizeHandler : public HttpHandler {
 public:
  std::optional<HttpAnswer> early(const HttpHead&) override { return std::nullopt; }
  HttpAnswer answer(const HttpHead&, const std::string& body) override {
    HttpAnswer answer;
    answer.body = fmt::format("<{}>", body.size());
    return answer;
  }
  void answered(const HttpHead&, const HttpAnswer&, std::optional<double>) override {}
};

class HttpTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-tls").value();
    options_.tls_certificate = join_path(root_, "cert.pem");
    options_.tls_key = join_path(root_, "key.pem");
    make_certificate(options_.tls_certificate, options_.tls_key, "first");
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void start() { server_ = HttpServer::start(options_, handler_).value(); }
  static std::string put(std::size_t bytes) {
    return fmt::format("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", bytes) +
           std::string(bytes, 'x');
  }
  std::string root_;
  SizeHandler handler_;
  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTlsTest, AnswersRequestsOverTls) {
  start();
  EXPECT_TRUE(starts_with(server_->url(), "https://127.0.0.1:"));
  TlsClient client(server_->port());
  ASSERT_TRUE(client.ready());
  EXPECT_TRUE(ends_with(client.ask(put(5), "<5>"), "<5>"));
  EXPECT_TRUE(ends_with(client.ask(put(3'000'000), "<3000000>"), "<3000000>")) << "in pieces";
}

TEST_F(HttpTlsTest, SpeaksNoOldVersionAndNoPlainText) {
  options_.first_head_timeout_s = 2;
  start();
  EXPECT_FALSE(TlsClient(server_->port(), TLS1_1_VERSION).ready());
  EXPECT_TRUE(TlsClient(server_->port(), TLS1_2_VERSION).ready());
  const int fd = connected(server_->port());
  const std::string plain = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_GT(::send(fd, plain.data(), plain.size(), MSG_NOSIGNAL), 0);
  char bytes[256];
  ssize_t got = 0;
  std::string text;
  while ((got = ::recv(fd, bytes, sizeof bytes, 0)) > 0)
    text.append(bytes, static_cast<std::size_t>(got));
  EXPECT_EQ(text.find("HTTP"), std::string::npos);
  ::close(fd);
}

// One that begins a handshake and goes no further is cut off, and keeps no thread.
TEST_F(HttpTlsTest, ASlowHandshakeIsCutOff) {
  options_.first_head_timeout_s = 0.3;
  options_.network_threads = 1;
  start();
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connected(server_->port()));
  EXPECT_TRUE(ends_with(TlsClient(server_->port()).ask(put(1), "<1>"), "<1>"));
  char byte = 0;
  for (const int fd : silent) {
    EXPECT_LE(::recv(fd, &byte, 1, 0), 0);
    ::close(fd);
  }
}

TEST_F(HttpTlsTest, ACertificateIsReplacedWhileItRuns) {
  start();
  EXPECT_EQ(TlsClient(server_->port()).subject(), "/CN=first");
  make_certificate(options_.tls_certificate, options_.tls_key, "second");
  ASSERT_TRUE(server_->load_certificate().is_ok());
  EXPECT_EQ(TlsClient(server_->port()).subject(), "/CN=second");
  ASSERT_TRUE(write_atomic(options_.tls_certificate, "none").is_ok());
  EXPECT_EQ(server_->load_certificate().code(), Code::kInvalid);
  EXPECT_EQ(TlsClient(server_->port()).subject(), "/CN=second");
}

TEST_F(HttpTlsTest, RefusesAKeyOfAnother) {
  make_certificate(join_path(root_, "other.pem"), options_.tls_key, "other");
  const Status status = HttpServer::start(options_, handler_).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("--tls-key"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace purlin::fleet
