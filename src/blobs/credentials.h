// SPDX-License-Identifier: Apache-2.0
// Credentials of an S3 client that the machine gives: a web identity (EKS), a container's role
// (ECS, EKS Pod Identity) or an instance's role (EC2, metadata service version 2 alone). They
// expire, so they are asked for again a few minutes before.
//
// docs/guide/cache.md lists the places and their order. A source belongs to one thread. Failure:
// kUnavailable or kTimeout where the service does not answer, kInvalid for its refusal.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "blobs/http.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace purlin::blobs {

struct Credentials {
  std::string access_key, secret_key, session_token;
  std::int64_t expires_ns = 0;  // wall clock; 0 = never
};

// With the moment of an RFC 3339 text as the end; kInvalid without both keys.
Result<Credentials> checked_credentials(Credentials credentials, std::string_view expiration);

enum class Ambient {
  kNone,
  kWebIdentity,  // AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN
  kContainer,    // AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
  kInstance,     // the rest, unless AWS_EC2_METADATA_DISABLED is true
};

// Whether the environment names a web identity.
bool has_web_identity();
// The container's role, else the instance's, unless that is switched off.
Ambient machine_credentials();

class CredentialSource {
 public:
  // `clock` outlives it. `region` is that of the token service.
  CredentialSource(Ambient ambient, std::string region, std::unique_ptr<HttpClient> http,
                   Clock& clock);

  // Those in force: asked for at the first call, and again shortly before they expire. Where the
  // service fails then, the old ones serve to their end.
  Result<Credentials> current();
  // After a refusal of those in force: the next call asks again.
  void forget() { kept_.reset(); }

 private:
  Result<Credentials> fetch();
  Result<Credentials> from_web_identity();
  Result<Credentials> from_container();
  Result<Credentials> from_instance();
  Result<std::string> ask(HttpRequest request, std::string_view who);

  const Ambient ambient_;
  const std::string region_;
  const std::unique_ptr<HttpClient> http_;
  Clock& clock_;
  std::optional<Credentials> kept_;
};

}  // namespace purlin::blobs
