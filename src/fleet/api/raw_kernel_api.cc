// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/raw_kernel_api.h"

#include "fleet/analysis/raw_kernel.h"
#include "fleet/answers.h"
#include "fleet/api/query_filter.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace purlin::fleet {
namespace {

// Reading one takes up to a few seconds: an older one is not worth it.
constexpr std::size_t kMostRead = 4, kKeptAnalyses = 4;
constexpr std::chrono::seconds kWaitForOthers{10};

using Analysis = std::shared_ptr<const analysis::RawAnalysis>;

bool is_there(const Json& part) { return !part.is_null(); }
Json or_null(const Json& list) { return list.size() > 0 ? list : Json(); }

// What was found so far, each part in the newest raw profile that has it.
struct KernelParts {
  Json row, advice, stalls, counters;

  bool whole() const { return is_there(row) && is_there(stalls) && is_there(counters); }

  void take(const analysis::RawAnalysis& raw, Json found, const Json& from) {
    add(stalls, found["stalls"], "stalls", from);
    add(counters, or_null(found["counters"]), "counters", from);
    if (is_there(row)) return;
    advice = analysis::advice_of_kernel(raw, found["label"].as_string());
    advice.set("from", from);
    for (const char* own : {"stalls", "counters"}) found.set(own, Json());
    row = Json::object({{"from", from}});
    row.set("kernel", std::move(found));
  }

 private:
  static void add(Json& part, const Json& found, const char* name, const Json& from) {
    if (is_there(part) || !is_there(found)) return;
    part = Json::object({{"from", from}});
    part.set(name, found);
  }
};

class RawKernels {
 public:
  RawKernels(RawShelf& shelf, StoreGate& gate, Clock& clock)
      : shelf_(shelf), gate_(gate), clock_(clock) {}

  HttpAnswer answer(const Request& request) {
    const std::string& kernel = value_of(request.query, "kernel");
    if (kernel.empty()) return error_answer(400, "'kernel' is missing");
    const Result<store::Filter> filter = parse_filter(request.query, clock_.wall_ns());
    if (!filter.is_ok()) return error_answer(filter.status());
    std::vector<store::RawInfo> raws;
    const Status found = gate_.read([&](store::Reader& reader) -> Status {
      PURLIN_ASSIGN(raws, raws_for(reader, *filter));
      return Status::ok();
    });
    if (!found.is_ok()) return error_answer(found);
    const Reading reading(*this);
    if (!reading.has) {
      HttpAnswer busy = error_answer(503, "other raw profiles are being read; try again");
      busy.headers.emplace_back("Retry-After", "2");
      return busy;
    }
    return json_answer(look(raws, kernel, value_of(request.query, "model")));
  }

 private:
  // One request reads at a time. Without `has`, others took too long. (No std::timed_mutex, which
  // the thread sanitizer of g++ 12 does not know.)
  struct Reading {
    explicit Reading(RawKernels& all) : kernels(all) {
      std::unique_lock lock(kernels.mutex_);
      has = kernels.free_.wait_for(lock, kWaitForOthers, [&all] { return !all.reading_; });
      if (has) kernels.reading_ = true;
    }
    ~Reading() {
      if (!has) return;
      const std::lock_guard lock(kernels.mutex_);
      kernels.reading_ = false;
      kernels.free_.notify_one();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    RawKernels& kernels;
    bool has = false;
  };

  Json look(const std::vector<store::RawInfo>& raws, const std::string& kernel,
            const std::string& model) {
    KernelParts parts;
    Json unread = Json::array();
    std::size_t read = 0;
    for (const store::RawInfo& raw : raws) {
      if (read == kMostRead || parts.whole()) break;
      ++read;
      const Result<Analysis> one = analysis_of(raw.pointer.sha256);
      if (!one.is_ok()) {
        Json from = raw_json(raw);
        from.set("why", one.status().message());
        unread.push(std::move(from));
        continue;
      }
      Json row = analysis::row_of_kernel(**one, kernel, model);
      if (is_there(row)) parts.take(**one, std::move(row), raw_json(raw));
    }
    Json json = answer_document("purlin.fleet.raw-kernel/1");
    json.set("kernel", kernel);
    json.set("raws_in_all", raws.size());
    json.set("raws_read", read);
    json.set("unread", std::move(unread));
    json.set("row", std::move(parts.row));
    json.set("advice", std::move(parts.advice));
    json.set("stalls", std::move(parts.stalls));
    json.set("counters", std::move(parts.counters));
    return json;
  }

  Result<Analysis> analysis_of(const std::string& sha256) {
    const auto known = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const auto& one) { return one.first == sha256; });
    if (known != kept_.end()) return known->second;
    std::string bytes;
    const Status fetched = shelf_.use([&](blobs::BlobStore& blobs) -> Status {
      PURLIN_ASSIGN(bytes, store::get_raw(blobs, sha256, shelf_.max_bytes()));
      return Status::ok();
    });
    if (fetched.code() == Code::kNotFound)
      return error(Code::kNotFound, "it has not arrived, or was removed for its age");
    if (!fetched.is_ok()) return fetched;
    PURLIN_ASSIGN(analysis::RawAnalysis raw, analysis::analyse_raw(bytes));
    if (kept_.size() == kKeptAnalyses) kept_.pop_front();
    kept_.emplace_back(sha256, std::make_shared<const analysis::RawAnalysis>(std::move(raw)));
    return kept_.back().second;
  }

  RawShelf& shelf_;
  StoreGate& gate_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable free_;
  bool reading_ = false;
  std::deque<std::pair<std::string, Analysis>> kept_;  // of the request that reads
};

}  // namespace

std::vector<Endpoint> raw_kernel_endpoints(RawShelf& shelf, StoreGate& gate, Clock& clock) {
  const auto kernels = std::make_shared<RawKernels>(shelf, gate, clock);
  return {{.method = "GET",
           .path = "/v1/raws/kernel",
           .scope = Scope::kRead,
           .kind = "raw_kernel",
           .summary = "Advice, stalls and counters of a kernel, from the newest raw profiles",
           .answer = "purlin.fleet.raw-kernel/1",
           .parameters = filter_parameters({}),
           .handle = [kernels](const Request& request) { return kernels->answer(request); },
           .is_query = true}};
}

}  // namespace purlin::fleet
