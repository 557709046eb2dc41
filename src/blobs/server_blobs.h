// SPDX-License-Identifier: Apache-2.0
// Objects of a cache that a Purlin server keeps (docs/formats/server.md). Failure: as BlobStore;
// the text includes the server's error message.
#pragma once

#include "base/time.h"
#include "blobs/blob_store.h"
#include "blobs/http.h"

#include <memory>
#include <string>

namespace purlin::blobs {

struct ServerConfig {
  std::string server;  // "http://build7:8717", or with what a proxy puts before: "https://h/purlin"
  std::string cache;   // "team"
  std::string token{};  // "" = none is sent
  // PURLIN_SERVER, where there is a token that is not sent because it is for that server.
  std::string token_is_for{};
};

// http://HOST:PORT/NAME, with the token of PURLIN_SERVER_TOKEN, or of the file that
// PURLIN_SERVER_TOKEN_FILE names. With PURLIN_SERVER set only targets on that server (its scheme,
// host and port, and its path or one below it) get the token. kInvalid for other texts, and for a
// token or a PURLIN_SERVER that is none.
Result<ServerConfig> load_server_config(const std::string& target);
// Without a token.
Result<ServerConfig> parse_server_target(const std::string& target);

// The address of a server, http://HOST:PORT or https://HOST/PATH, as plain text: equal addresses
// are equal. kInvalid for other texts.
Result<std::string> parse_server_address(const std::string& text);
// The token in a file: one word. kInvalid for other contents, which the message does not repeat.
inline constexpr std::size_t kMaxToken = 512;
Result<std::string> read_token(const std::string& file, std::size_t max_bytes = kMaxToken);

// `clock` outlives the store.
std::unique_ptr<BlobStore> make_server_blobs(ServerConfig config, std::unique_ptr<HttpClient> http,
                                             Clock& clock, std::uint64_t seed);

}  // namespace purlin::blobs
