// SPDX-License-Identifier: Apache-2.0
#include "fleet/backlog/endpoints.h"

#include "fleet/answers.h"
#include "fleet/backlog/lease_source.h"
#include "fleet/metrics.h"

#include <array>
#include <cmath>

namespace purlin::fleet {
namespace {

constexpr std::uint64_t kMaxLeaseBody = 64 << 10;
constexpr double kMinLeaseS = 10, kMaxLeaseS = 24 * 3600.0;
constexpr std::size_t kMaxOutcome = 2000, kMaxWorker = 200;

HttpAnswer lease_failure(const Status& status) {
  if (status.code() == Code::kCancelled) return error_answer(410, status.message());
  return error_answer(status);
}

Result<Json> body_of(const Request& request) {
  return Json::parse(request.body, {.max_bytes = kMaxLeaseBody, .max_depth = 8});
}

Result<std::int64_t> duration_of(const Json& json) {
  const double seconds = json["seconds"].as_double(0);
  if (!(seconds >= kMinLeaseS && seconds <= kMaxLeaseS))
    return error(Code::kInvalid, "'seconds' must be {} to {}", kMinLeaseS, kMaxLeaseS);
  return static_cast<std::int64_t>(seconds * 1e9);
}

std::string shortened(const std::string& text, std::size_t most) { return text.substr(0, most); }

Result<Json> lease(SharedBacklog& shared, const Json& json) {
  PURLIN_ASSIGN(const std::int64_t duration_ns, duration_of(json));
  PURLIN_ASSIGN(const std::string worker, json.string_at("worker"));
  std::vector<std::string> devices;
  for (const Json& device : json["devices"].items()) devices.push_back(device.as_string());
  PURLIN_ASSIGN(const std::optional<backlog::Lease> taken,
                shared.with([&](backlog::Leases& leases, std::int64_t now_ns) {
                  return leases.take(shortened(worker, kMaxWorker), devices, duration_ns, now_ns);
                }));
  Json answer = answer_document("purlin.backlog-lease/1");
  answer.set("lease", taken ? Json::object({{"task", backlog::to_json(taken->ranked)},
                                            {"token", taken->token},
                                            {"until_ns", taken->until_ns},
                                            {"attempt", taken->attempt}})
                            : Json(nullptr));
  return answer;
}

Result<Json> heartbeat(SharedBacklog& shared, const Json& json) {
  PURLIN_ASSIGN(const std::int64_t duration_ns, duration_of(json));
  PURLIN_ASSIGN(const std::string id, json.string_at("id"));
  PURLIN_ASSIGN(const std::int64_t token, json.int_at("token"));
  PURLIN_ASSIGN(const std::int64_t until_ns,
                shared.with([&](backlog::Leases& leases, std::int64_t now_ns) {
                  return leases.heartbeat(id, token, duration_ns, now_ns);
                }));
  Json answer = answer_document("purlin.backlog-heartbeat/1");
  answer.set("until_ns", until_ns);
  return answer;
}

Result<Json> done(SharedBacklog& shared, const Json& json) {
  PURLIN_ASSIGN(const std::string id, json.string_at("id"));
  PURLIN_ASSIGN(const std::int64_t token, json.int_at("token"));
  PURLIN_ASSIGN(const std::string text, json.string_at("end"));
  const std::optional<TaskEnd> end = task_end_of(text);
  if (!end) return error(Code::kInvalid, "'end' is done, given_back or failed, not '{}'", text);
  const double gpu_s = json["gpu_s"].as_double(0);
  if (!std::isfinite(gpu_s) || gpu_s < 0 || gpu_s > kMaxLeaseS)
    return error(Code::kInvalid, "'gpu_s' must be 0 to {}", kMaxLeaseS);
  const std::string outcome = shortened(json["outcome"].as_string(), kMaxOutcome);
  const Status status = shared.with([&](backlog::Leases& leases, std::int64_t now_ns) {
    if (*end == TaskEnd::kDone) return leases.finish(id, token, outcome, gpu_s, now_ns);
    return leases.give_back(id, token, outcome, *end == TaskEnd::kFailed, gpu_s, now_ns);
  });
  if (!status.is_ok()) return status;
  return answer_document("purlin.backlog-done/1");
}

Result<Json> tasks(SharedBacklog& shared) {
  Json list = Json::array();
  double spent_s = 0;
  const Status status = shared.with([&](backlog::Leases& leases, std::int64_t now_ns) -> Status {
    PURLIN_ASSIGN(const std::vector<backlog::SharedTask> all, leases.list(now_ns));
    PURLIN_ASSIGN(spent_s, leases.spent_gpu_s(now_ns));
    for (const backlog::SharedTask& task : all) {
      Json json = backlog::to_json(task.ranked);
      json.set("state", to_text(task.state)).set("stale", task.stale);
      json.set("worker", task.worker).set("outcome", task.outcome);
      json.set("until_ns", task.until_ns).set("attempts", task.attempts);
      list.push(std::move(json));
    }
    return Status::ok();
  });
  if (!status.is_ok()) return status;
  Json answer = answer_document("purlin.fleet.backlog/1");
  answer.set("spent_gpu_s_today", spent_s).set("tasks", std::move(list));
  return answer;
}

template <class Handle>
Endpoint posted(std::string_view path, std::string_view kind, std::string_view summary,
                std::string_view schema, SharedBacklog& shared, Handle handle) {
  Endpoint endpoint;
  endpoint.method = "POST", endpoint.path = path, endpoint.scope = Scope::kWrite;
  endpoint.kind = kind, endpoint.summary = summary, endpoint.answer = schema;
  endpoint.max_body = kMaxLeaseBody;
  endpoint.handle = [&shared, handle](const Request& request) {
    const Result<Json> body = body_of(request);
    if (!body.is_ok()) return error_answer(body.status());
    const Result<Json> answer = handle(shared, *body);
    return answer.is_ok() ? json_answer(*answer) : lease_failure(answer.status());
  };
  return endpoint;
}

}  // namespace

std::string SharedBacklog::metrics() {
  std::array<int, 4> states{};
  double spent_s = 0;
  const Status status = with([&](backlog::Leases& leases, std::int64_t now_ns) -> Status {
    PURLIN_ASSIGN(const std::vector<backlog::SharedTask> all, leases.list(now_ns));
    for (const backlog::SharedTask& task : all) ++states[static_cast<std::size_t>(task.state)];
    PURLIN_ASSIGN(spent_s, leases.spent_gpu_s(now_ns));
    return Status::ok();
  });
  if (!status.is_ok()) return "";
  std::string text =
      "# HELP purlin_backlog_tasks Tasks of the shared backlog.\n"
      "# TYPE purlin_backlog_tasks gauge\n";
  for (std::size_t i = 0; i < states.size(); ++i)
    text += fmt::format("purlin_backlog_tasks{{state=\"{}\"}} {}\n",
                        backlog::to_text(static_cast<backlog::TaskState>(i)), states[i]);
  return text + RequestMetrics::single("purlin_tuning_gpu_seconds_today", "gauge",
                                       "GPU time that tuning took on this UTC day.", spent_s);
}

std::vector<Endpoint> backlog_endpoints(SharedBacklog& shared) {
  Endpoint list;
  list.method = "GET", list.path = "/v1/backlog", list.kind = "backlog";
  list.summary = "Tasks of the shared backlog, in the order in which workers take them";
  list.answer = "purlin.fleet.backlog/1";
  list.handle = [&shared](const Request&) {
    const Result<Json> answer = tasks(shared);
    return answer.is_ok() ? json_answer(*answer) : error_answer(answer.status());
  };
  return {list,
          posted("/v1/backlog/lease", "backlog_lease", "Take the first free task for some devices",
                 "purlin.backlog-lease/1", shared, lease),
          posted("/v1/backlog/heartbeat", "backlog_heartbeat", "Keep a lease",
                 "purlin.backlog-heartbeat/1", shared, heartbeat),
          posted("/v1/backlog/done", "backlog_done", "End a lease: done, given_back or failed",
                 "purlin.backlog-done/1", shared, done)};
}

}  // namespace purlin::fleet
