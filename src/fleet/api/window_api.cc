// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/window_api.h"

#include "base/text.h"
#include "fleet/answers.h"
#include "fleet/api/query_filter.h"

#include <cmath>

namespace purlin::fleet {
namespace {

constexpr std::uint64_t kMaxExchangeBytes = 64 << 10;
constexpr std::size_t kWindowsByDefault = 100, kMostWindows = 1000;

HttpAnswer window_failure(const Status& status) {
  if (status.code() != Code::kUnavailable) return error_answer(status);
  HttpAnswer answer = error_answer(429, status.message());
  answer.headers.emplace_back("Retry-After", "10");
  return answer;
}

HttpAnswer windows_answer(const Result<std::vector<WindowRequest>>& windows) {
  if (!windows.is_ok()) return window_failure(windows.status());
  Json json = answer_document("purlin.fleet.windows/1"), list = Json::array();
  for (const WindowRequest& one : *windows) list.push(to_json(one));
  json.set("windows", std::move(list));
  return json_answer(json);
}

// Seconds of a parameter as ns; -1: no number.
std::int64_t ns_of(const std::string& text, double otherwise_s) {
  const double seconds = text.empty() ? otherwise_s : parse_double(text).value_or(-1e-9);
  return std::isfinite(seconds) && std::fabs(seconds) < 1e6
             ? static_cast<std::int64_t>(seconds * 1e9)
             : -1;
}

HttpAnswer ask_window(WindowRequests& requests, Clock& clock, const Request& request) {
  WindowRequest asked;
  asked.id = value_of(request.query, "id");
  asked.node = value_of(request.query, "node");
  asked.job = value_of(request.query, "job");
  const std::string& pid = value_of(request.query, "pid");
  asked.pid = pid.empty() ? 0 : parse_int(pid).value_or(-1);
  asked.length_ns = ns_of(value_of(request.query, "length_s"), 10);
  asked.asked_by = request.holder;
  const Result<WindowRequest> made = requests.ask(
      std::move(asked), ns_of(value_of(request.query, "expires_s"), 600), clock.wall_ns());
  if (!made.is_ok()) return window_failure(made.status());
  Json json = answer_document("purlin.fleet.window/1");
  json.set("window", to_json(*made));
  return json_answer(json, 201);
}

// {"node", "claimer", "reports": [{"id", "state", "detail"}]}. A report that belongs to no request
// is of one that was removed: it is not sent again.
HttpAnswer exchange(WindowRequests& requests, RawShelf& shelf, Clock& clock,
                    const std::string& body) {
  const Result<Json> json = Json::parse(body, {kMaxExchangeBytes, 8});
  if (!json.is_ok() || !json->is_object())
    return error_answer(400, "the body is a JSON object with node, claimer and reports");
  const std::string claimer = (*json)["claimer"].as_string();
  if (claimer.empty() || claimer.size() > 200)
    return error_answer(400, "'claimer' names the collector, in up to 200 bytes");
  const std::int64_t now_ns = clock.wall_ns();
  for (const Json& report : (*json)["reports"].items()) {
    const std::string& name = report["state"].as_string();
    const std::string& detail = report["detail"].as_string();
    const WindowState state = name == "recording" ? WindowState::kRecording
                              : name == "sending" ? WindowState::kSending
                                                  : WindowState::kRefused;
    const Status done = requests.report(report["id"].as_string(), claimer, state, detail, now_ns);
    if (!done.is_ok() && done.code() != Code::kNotFound) return window_failure(done);
    // The bytes may have come before the report.
    const bool is_here = state == WindowState::kSending && shelf.has(detail);
    if (is_here) {
      const Status arrived = requests.arrived(detail, now_ns);
      if (!arrived.is_ok()) return window_failure(arrived);
    }
  }
  return windows_answer(requests.take((*json)["node"].as_string(), claimer, now_ns));
}

}  // namespace

std::vector<Endpoint> window_endpoints(WindowRequests& requests, RawShelf& shelf, Clock& clock) {
  return {{.method = "POST",
           .path = "/v1/windows",
           .scope = Scope::kWrite,
           .kind = "ask_window",
           .summary = "Requests a timeline of a node's captured processes",
           .answer = "purlin.fleet.window/1",
           .parameters = {{"id", "string", "of the client's choice, 1 to 64 hexadecimal digits"},
                          {"node", "string", "the node, as in /v1/nodes"},
                          {"job", "string", "processes of this job; without it, all"},
                          {"pid", "integer", "one process, by the number that it has itself"},
                          {"length_s", "number", "10 by default, at most 60"},
                          {"expires_s", "number", "until a node takes it: 600 by default"}},
           .handle = [&requests, &clock](
                         const Request& request) { return ask_window(requests, clock, request); }},
          {.method = "GET",
           .path = "/v1/windows",
           .scope = Scope::kRead,
           .kind = "windows",
           .summary = "Requested windows with their states, the newest first",
           .answer = "purlin.fleet.windows/1",
           .parameters = {{"node", "string", "those of this node"},
                          {"id", "string", "this one"},
                          {"limit", "integer", "100 by default"}},
           .handle =
               [&requests, &clock](const Request& request) {
                 const Result<std::size_t> limit =
                     parse_limit(value_of(request.query, "limit"), kWindowsByDefault, kMostWindows);
                 if (!limit.is_ok()) return error_answer(limit.status());
                 return windows_answer(requests.list(value_of(request.query, "node"),
                                                     value_of(request.query, "id"), *limit,
                                                     clock.wall_ns()));
               }},
          {.method = "POST",
           .path = "/v1/windows/exchange",
           .scope = Scope::kIngest,
           .kind = "exchange_windows",
           .summary = "A collector reports on its windows, and takes those that wait for its node",
           .answer = "purlin.fleet.windows/1",
           .max_body = kMaxExchangeBytes,
           .handle = [&requests, &shelf, &clock](const Request& request) {
             return exchange(requests, shelf, clock, request.body);
           }}};
}

}  // namespace purlin::fleet
