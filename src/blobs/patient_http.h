// SPDX-License-Identifier: Apache-2.0
// PatientHttp: requests to an object store that are repeated while it is busy or cannot be reached:
// six attempts, with random pauses that grow from 0.1-0.2 s to 5 s. So every request that goes
// through here must be one that may arrive twice. One thread.
#pragma once

#include "base/random.h"
#include "base/time.h"
#include "blobs/http.h"

#include <functional>
#include <memory>
#include <string>

namespace purlin::blobs {

class PatientHttp {
 public:
  // `clock` outlives it; `seed` spreads the pauses of several machines.
  PatientHttp(std::unique_ptr<HttpClient> http, Clock& clock, std::uint64_t seed)
      : http_(std::move(http)), clock_(clock), random_(seed) {}

  // `make` is called for each attempt, because a signature holds a time. Returns the last answer,
  // with any status; without an answer, the client's failure, with `name` and the number of
  // attempts.
  Result<HttpResponse> send(const std::string& name, const std::function<HttpRequest()>& make);

 private:
  const std::unique_ptr<HttpClient> http_;
  Clock& clock_;
  Random random_;
};

// Whether the same request may be answered better a little later.
bool is_passing_status(int status);

}  // namespace purlin::blobs
