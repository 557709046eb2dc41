// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/backlog_api.h"

#include "base/json/json.h"
#include "fleet/answers.h"

#include <algorithm>
#include <memory>
#include <mutex>

namespace purlin::fleet {
namespace {

constexpr std::uint64_t kMaxLeaseBody = 64 << 10;
constexpr double kShortestLeaseS = 1, kLongestLeaseS = 24 * 3600, kLeaseS = 600;
constexpr std::size_t kMaxWorkerBytes = 200, kMaxDevices = 64;

Json ranked_json(const backlog::RankedTask& ranked) {
  Json json = backlog::to_json(ranked);
  json.set("id", ranked.task.id());
  return json;
}

HttpAnswer refusal(const Status& status) {
  return status.code() == Code::kCancelled ? error_answer(410, status.message())
                                           : error_answer(status);
}

std::int64_t duration_ns(const Json& body) {
  return static_cast<std::int64_t>(
      std::clamp(body["duration_s"].as_double(kLeaseS), kShortestLeaseS, kLongestLeaseS) * 1e9);
}

// Leases belong to one thread at a time.
class BacklogApi {
 public:
  BacklogApi(backlog::Leases& leases, Clock& clock) : leases_(leases), clock_(clock) {}

  HttpAnswer list() {
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ns = clock_.wall_ns();
    const auto tasks = leases_.list(now_ns);
    const Result<double> today = leases_.spent_gpu_s(now_ns),
                         all_days = leases_.spent_gpu_s_in_all();
    for (const Status& status : {tasks.status(), today.status(), all_days.status()})
      if (!status.is_ok()) return error_answer(status);
    Json json = answer_document("purlin.fleet.backlog/1"), all = Json::array();
    for (const backlog::SharedTask& task : *tasks) {
      Json one = ranked_json(task.ranked);
      one.set("state", backlog::to_text(task.state));
      one.set("stale", task.stale);
      one.set("worker", task.worker);
      one.set("outcome", task.outcome);
      one.set("attempts", task.attempts);
      if (task.until_ns > 0) one.set("until", format_rfc3339(task.until_ns));
      all.push(std::move(one));
    }
    json.set("tasks", std::move(all));
    json.set("tuning_gpu_s_today", *today);
    json.set("tuning_gpu_s", *all_days);
    return json_answer(json);
  }

  HttpAnswer lease(const Json& body) {
    const std::string worker = body["worker"].as_string();
    if (worker.empty() || worker.size() > kMaxWorkerBytes)
      return error_answer(400, "'worker' names the worker, in up to 200 bytes");
    std::vector<std::string> devices;
    for (const Json& device : body["devices"].items())
      if (devices.size() < kMaxDevices) devices.push_back(device.as_string());
    const std::lock_guard lock(mutex_);
    const auto taken = leases_.take(worker, devices, duration_ns(body), clock_.wall_ns());
    if (!taken.is_ok()) return refusal(taken.status());
    Json json = answer_document("purlin.fleet.lease/1");
    if (taken->has_value()) {
      const backlog::Lease& lease = **taken;
      Json one = Json::object({{"task", ranked_json(lease.ranked)}, {"token", lease.token}});
      one.set("until", format_rfc3339_ns(lease.until_ns));
      one.set("attempt", lease.attempt);
      json.set("lease", std::move(one));
    } else {
      json.set("lease", Json());
    }
    return json_answer(json);
  }

  HttpAnswer heartbeat(const Json& body) {
    const std::lock_guard lock(mutex_);
    const Result<std::int64_t> until = leases_.heartbeat(
        body["id"].as_string(), body["token"].as_int(), duration_ns(body), clock_.wall_ns());
    if (!until.is_ok()) return refusal(until.status());
    Json json = answer_document("purlin.fleet.lease/1");
    json.set("until", format_rfc3339_ns(*until));
    return json_answer(json);
  }

  // {"id", "token", "outcome", "gpu_s"}; with "given_back": true the task is open again.
  HttpAnswer done(const Json& body) {
    const std::string id = body["id"].as_string();
    const std::int64_t token = body["token"].as_int(), now_ns = clock_.wall_ns();
    const double gpu_s = std::max(0.0, body["gpu_s"].as_double());
    const std::string outcome = body["outcome"].as_string().substr(0, 4096);
    const std::lock_guard lock(mutex_);
    const Status status =
        body["given_back"].as_bool()
            ? leases_.give_back(id, token, outcome, body["failed"].as_bool(), gpu_s, now_ns)
            : leases_.finish(id, token, outcome, gpu_s, now_ns);
    if (!status.is_ok()) return refusal(status);
    return json_answer(answer_document("purlin.fleet.lease/1"));
  }

 private:
  std::mutex mutex_;
  backlog::Leases& leases_;
  Clock& clock_;
};

using LeaseCall = HttpAnswer (BacklogApi::*)(const Json&);

Endpoint lease_endpoint(std::shared_ptr<BacklogApi> api, std::string_view path,
                        std::string_view kind, std::string_view summary, LeaseCall call) {
  return {.method = "POST",
          .path = path,
          .scope = Scope::kWrite,
          .kind = kind,
          .summary = summary,
          .answer = "purlin.fleet.lease/1",
          .max_body = kMaxLeaseBody,
          .handle = [api = std::move(api), call](const Request& request) {
            const Result<Json> body = Json::parse(request.body, {kMaxLeaseBody, 8});
            if (!body.is_ok() || !body->is_object())
              return error_answer(400, "the body is a JSON object");
            return ((*api).*call)(*body);
          }};
}

}  // namespace

std::vector<Endpoint> backlog_endpoints(backlog::Leases& leases, Clock& clock) {
  const auto api = std::make_shared<BacklogApi>(leases, clock);
  return {{.method = "GET",
           .path = "/v1/backlog",
           .scope = Scope::kRead,
           .kind = "backlog",
           .summary = "The tasks that are worth tuning, and who works on them",
           .answer = "purlin.fleet.backlog/1",
           .handle = [api](const Request&) { return api->list(); },
           .is_query = true},
          lease_endpoint(api, "/v1/backlog/lease", "lease", "Takes the first free task",
                         &BacklogApi::lease),
          lease_endpoint(api, "/v1/backlog/heartbeat", "heartbeat", "Prolongs a lease",
                         &BacklogApi::heartbeat),
          lease_endpoint(api, "/v1/backlog/done", "lease_done",
                         "Ends a lease, with its outcome and the GPU time that it took",
                         &BacklogApi::done)};
}

}  // namespace purlin::fleet
