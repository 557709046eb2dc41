// SPDX-License-Identifier: Apache-2.0
#include "fleet/http_wire.h"

namespace purlin::fleet {
namespace {

// What a browser and curl of the last ten years speak, and nothing older.
constexpr const char* kCiphers =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

}  // namespace

Status TlsContext::load(const std::string& certificate, const std::string& key) {
  namespace ssl = boost::asio::ssl;
  boost::system::error_code code;
  auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
  made->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                        ssl::context::no_sslv3 | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                        ssl::context::no_compression,
                    code);
  SSL_CTX_set_cipher_list(made->native_handle(), kCiphers);
  // A client that renegotiates makes the server compute: it is not needed for anything.
  SSL_CTX_set_options(made->native_handle(), SSL_OP_NO_RENEGOTIATION);
  made->use_certificate_chain_file(certificate, code);
  if (code)
    return error(Code::kInvalid, "--tls-cert '{}' holds no certificate that can be used: {}",
                 certificate, code.message());
  made->use_private_key_file(key, ssl::context::pem, code);
  if (code || SSL_CTX_check_private_key(made->native_handle()) != 1)
    return error(Code::kInvalid, "--tls-key '{}' is not the key of '{}': {}", key, certificate,
                 code ? code.message() : std::string("they do not belong together"));
  const std::lock_guard lock(mutex_);
  material_ = std::move(made);
  return Status::ok();
}

TlsMaterial TlsContext::now() const {
  const std::lock_guard lock(mutex_);
  return material_;
}

}  // namespace purlin::fleet
