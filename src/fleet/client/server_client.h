// SPDX-License-Identifier: Apache-2.0
// ServerClient: JSON documents and raw profiles of a Purlin server, with the token of the
// environment.
//
// Requests are repeated while the server is busy or cannot be reached, so each must be one that may
// arrive twice. One thread; the clock outlives it. Failure: kCancelled (410: a lease that is lost),
// kInvalid (refused: token, URL, request), kUnavailable, kTimeout, each with the server's message.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "base/time.h"
#include "blobs/patient_http.h"

#include <memory>
#include <string>
#include <string_view>

namespace purlin::fleet {

class ServerClient {
 public:
  // `url`: "http://build7:8717". The token is that of PURLIN_SERVER_TOKEN or its file.
  static Result<std::unique_ptr<ServerClient>> open(const std::string& url, Clock& clock);
  static Result<std::unique_ptr<ServerClient>> open(const std::string& url,
                                                    std::unique_ptr<blobs::HttpClient> http,
                                                    Clock& clock);

  // `path`: "/v1/guard". Without a document, the path's parameters are all of it.
  Result<Json> post(std::string_view path, const Json& document);
  Result<Json> post(std::string_view path);
  Result<Json> get(std::string_view path);
  Result<std::string> bytes(std::string_view path);
  const std::string& server() const { return server_; }

 private:
  ServerClient(std::string server, std::string token, std::unique_ptr<blobs::HttpClient> http,
               Clock& clock);
  Result<blobs::HttpResponse> send(std::string_view method, std::string_view path,
                                   const std::string& body);
  Result<Json> json(std::string_view method, std::string_view path, const std::string& body);
  const std::string server_, token_;
  blobs::PatientHttp http_;
};

}  // namespace purlin::fleet
