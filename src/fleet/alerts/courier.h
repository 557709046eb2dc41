// SPDX-License-Identifier: Apache-2.0
// Courier: delivers each finding once to each webhook, over restarts, and tries again what failed.
//
// A state file says what was delivered. A finding that was away for a day is new when it returns. A
// receiver may see a finding twice only if its answer was lost. One thread. Failure: kIo of the
// state file; a receiver that refuses is counted, logged, and asked again at the next round.
#pragma once

#include "base/log.h"
#include "base/time.h"
#include "blobs/http.h"
#include "blobs/patient_http.h"
#include "fleet/alerts/webhook.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace purlin::fleet {

class Courier {
 public:
  // `http` is repeated by the courier; log, clock outlive it.
  static Result<Courier> open(const std::string& state_path,
                              std::unique_ptr<blobs::HttpClient> http, Clock& clock, Log& log);
  Courier(Courier&&) noexcept;
  Courier& operator=(Courier&&) noexcept;
  ~Courier();

  Status deliver(const std::vector<Webhook>& webhooks, const std::vector<Finding>& findings);
  // Not kept: the next evaluation has new ones.
  Status send_metrics(const std::string& otlp_url, const std::string& body);

  struct Counts {
    std::uint64_t delivered = 0, failed = 0;
  };
  Counts counts() const { return counts_; }

 private:
  struct Seen {
    std::int64_t delivered_ns = 0, last_ns = 0;
  };
  Courier(std::string path, std::unique_ptr<blobs::PatientHttp> http, Clock& clock, Log& log);
  Status load();
  Status save() const;
  Status post(const std::string& name, const std::string& url, const std::string& bearer_file,
              const std::string& body);

  std::string path_;
  std::unique_ptr<blobs::PatientHttp> http_;
  Clock* clock_;
  Log* log_;
  std::map<std::string, Seen> seen_;  // by webhook's name, '/', id
  Counts counts_;
};

// Over libcurl.
Result<Courier> open_courier(const std::string& state_path, Clock& clock, Log& log);

}  // namespace purlin::fleet
