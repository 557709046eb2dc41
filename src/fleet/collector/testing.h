// SPDX-License-Identifier: Apache-2.0
// For the tests of collectors: a log that keeps its lines, an HTTP client that answers as the test
// says, and the totals of batches. Not thread-safe.
#pragma once

#include "base/log.h"
#include "blobs/http.h"
#include "store/batch.h"

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace purlin::fleet {

class KeptLog : public Log {
 public:
  std::vector<std::string> lines;

 private:
  void emit(Level, std::string_view text) override { lines.emplace_back(text); }
};

class ScriptedHttp : public blobs::HttpClient {
 public:
  using Answer = std::function<Result<blobs::HttpResponse>(const blobs::HttpRequest&)>;
  explicit ScriptedHttp(Answer answer) : answer_(std::move(answer)) {}
  Result<blobs::HttpResponse> send(const blobs::HttpRequest& request) override {
    return answer_(request);
  }

 private:
  const Answer answer_;
};

// Launches by kernel.
using Ledger = std::map<std::string, double>;

inline void add_to(Ledger& ledger, const store::Batch& batch) {
  for (const store::BatchRow& row : batch.rows) ledger[row.kernel] += row.duration.count();
}

}  // namespace purlin::fleet
