// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/fleet_api.h"

#include "base/sha256.h"
#include "base/text.h"
#include "fleet/answers.h"
#include "fleet/api/query_filter.h"
#include "fleet/metrics.h"

#include <set>

namespace purlin::fleet {
namespace {

constexpr std::uint64_t kMaxGuardBytes = std::uint64_t{4} << 20;
constexpr int kMaxGuardDepth = 64;
constexpr std::size_t kMaxGuardKernels = 10'000, kMostRuns = 1000;

Json node_json(const store::NodeState& node) {
  Json shed = Json::array();
  for (const store::BatchShed& one : node.shed)
    shed.push(Json::object({{"cause", one.cause},
                            {"batches", one.batches},
                            {"rows", one.rows},
                            {"raw_bytes", one.raw_bytes}}));
  // As the last batch states it, which may be one that waited in that spool.
  const Json spool =
      node.spool.limit_bytes == 0
          ? Json()
          : Json::object({{"bytes", node.spool.bytes}, {"limit_bytes", node.spool.limit_bytes}});
  const double span_s = static_cast<double>(node.last_end_ns - node.first_begin_ns) * 1e-9;
  return Json::object(
      {{"node", node.node},
       {"boot", node.boot},
       {"tool_version", node.tool_version},
       {"first_begin", format_rfc3339(node.first_begin_ns)},
       {"last_end", format_rfc3339(node.last_end_ns)},
       {"last_received", format_rfc3339(node.last_received_ns)},
       {"skew_s", static_cast<double>(node.skew_ns) * 1e-9},
       {"batches", node.batches},
       {"missing_batches", node.missing},
       {"quarantined_batches", node.quarantined},
       {"too_old_batches", node.too_old},
       {"collector_cpu_share", span_s > 0 ? node.collector_cpu_ns * 1e-9 / span_s : 0},
       {"collector_rss_bytes", node.collector_rss_bytes},
       {"spool", spool},
       {"shed", std::move(shed)}});
}

HttpAnswer nodes(StoreGate& gate) {
  Json json = answer_document("purlin.fleet.nodes/1"), list = Json::array();
  const Status status = gate.read([&](store::Reader& reader) -> Status {
    PURLIN_ASSIGN(const std::vector<store::NodeState> all, reader.nodes());
    for (const store::NodeState& node : all) list.push(node_json(node));
    return Status::ok();
  });
  if (!status.is_ok()) return error_answer(status);
  json.set("nodes", std::move(list));
  return json_answer(json);
}

// The kernels that a guard document is about, by the members that name them.
void collect_kernels(const Json& json, std::set<std::string>& kernels) {
  for (const Json& item : json["items"].items()) {
    if (kernels.size() >= kMaxGuardKernels) return;
    if (const std::string& kernel = item["kernel"].as_string(); !kernel.empty())
      kernels.insert(kernel);
    for (const Json& kernel : item["kernels"].items())
      if (const std::string& name =
              kernel.is_string() ? kernel.as_string() : kernel["name"].as_string();
          !name.empty())
        kernels.insert(name);
  }
}

Result<store::GuardResult> guard_result(const std::string& body, std::int64_t now_ns) {
  PURLIN_ASSIGN(const Json json, Json::parse(body, {kMaxGuardBytes, kMaxGuardDepth}));
  if (!starts_with(json["schema"].as_string(), "purlin.guard"))
    return error(Code::kInvalid, "this is no result of `purlin guard check --json`");
  store::GuardResult result;
  result.id = sha256_hex(body);
  result.document = body;
  result.suite =
      json["suite"].is_string() ? json["suite"].as_string() : json["suite"]["name"].as_string();
  result.verdict = json["verdict"].as_string();
  const Json& environment = json["environment"];
  result.build = environment["build"].as_string();
  if (!environment["devices"].items().empty())
    result.model = environment["devices"].items().front()["name"].as_string();
  result.time_ns = parse_rfc3339(environment["recorded_at"].as_string()).value_or(now_ns);
  std::set<std::string> kernels;
  collect_kernels(json, kernels);
  result.kernels.assign(kernels.begin(), kernels.end());
  return result;
}

HttpAnswer put_guard(StoreGate& gate, Clock& clock, const std::string& body) {
  const Result<store::GuardResult> result = guard_result(body, clock.wall_ns());
  if (!result.is_ok()) return error_answer(422, result.status().message());
  const Status stored = gate.write([&](store::Store& store) { return store.put_guard(*result); });
  if (!stored.is_ok()) return error_answer(stored);
  Json json = answer_document("purlin.fleet.guard-stored/1");
  json.set("id", result->id);
  return json_answer(json, 201);
}

HttpAnswer guard_runs(StoreGate& gate, const Request& request) {
  const Result<std::size_t> limit = parse_limit(value_of(request.query, "limit"), 50, kMostRuns);
  if (!limit.is_ok()) return error_answer(limit.status());
  Json json = answer_document("purlin.fleet.guard/1"), list = Json::array();
  const Status status = gate.read([&](store::Reader& reader) -> Status {
    PURLIN_ASSIGN(const std::vector<store::GuardResult> runs,
                  reader.guard_history(value_of(request.query, "kernel"), *limit));
    for (const store::GuardResult& run : runs) {
      Json one = Json::object({{"id", run.id},
                               {"time", format_rfc3339(run.time_ns)},
                               {"suite", run.suite},
                               {"verdict", run.verdict},
                               {"build", run.build},
                               {"model", run.model},
                               {"kernels", Json::array_of(run.kernels)}});
      if (value_of(request.query, "documents") == "1")
        one.set("document", Json::parse(run.document).value_or(Json()));
      list.push(std::move(one));
    }
    return Status::ok();
  });
  if (!status.is_ok()) return error_answer(status);
  json.set("runs", std::move(list));
  return json_answer(json);
}

HttpAnswer check_store(StoreGate& gate) {
  Json json = answer_document("purlin.fleet.store/1");
  const Status status = gate.write([&](store::Store& store) -> Status {
    PURLIN_ASSIGN(const store::StoreCheck check, store.check());
    json.set("engine", check.engine);
    json.set("engine_version", check.version);
    json.set("schema_version", check.schema);
    json.set("bytes", check.bytes);
    json.set("batches", check.batches);
    json.set("hour_rows", check.hour_rows);
    json.set("day_rows", check.day_rows);
    json.set("month_rows", check.month_rows);
    json.set("damaged", check.damaged());
    Json findings = Json::array();
    for (const store::StoreFinding& finding : check.findings)
      findings.push(Json::object(
          {{"where", finding.where}, {"what", finding.what}, {"damage", finding.damage}}));
    json.set("findings", std::move(findings));
    return Status::ok();
  });
  return status.is_ok() ? json_answer(json) : error_answer(status);
}

HttpAnswer expire(StoreGate& gate, Clock& clock, const Request& request) {
  const std::string& text = value_of(request.query, "before");
  if (text.empty()) return error_answer(400, "'before' is a time: days that end by then go");
  const Result<std::int64_t> before = parse_time(text, clock.wall_ns());
  if (!before.is_ok()) return error_answer(before.status());
  const Status done = gate.write([&](store::Store& store) { return store.expire(*before); });
  if (!done.is_ok()) return error_answer(done);
  Json json = answer_document("purlin.fleet.expired/1");
  json.set("before", format_rfc3339(*before));
  return json_answer(json);
}

HttpAnswer release(StoreGate& gate, const Request& request) {
  std::uint64_t released = 0;
  const Status done = gate.write([&](store::Store& store) -> Status {
    PURLIN_ASSIGN(released, store.release(value_of(request.path, "node")));
    return Status::ok();
  });
  if (!done.is_ok()) return error_answer(done);
  Json json = answer_document("purlin.fleet.released/1");
  json.set("batches", released);
  return json_answer(json);
}

}  // namespace

std::vector<Endpoint> node_endpoints(StoreGate& gate) {
  return {{.method = "GET",
           .path = "/v1/nodes",
           .scope = Scope::kRead,
           .kind = "nodes",
           .summary = "The nodes, with their last batch, gaps, clock and overhead",
           .answer = "purlin.fleet.nodes/1",
           .handle = [&gate](const Request&) { return nodes(gate); },
           .is_query = true}};
}

std::vector<Endpoint> guard_endpoints(StoreGate& gate, Clock& clock) {
  return {{.method = "POST",
           .path = "/v1/guard",
           .scope = Scope::kWrite,
           .kind = "post_guard",
           .summary = "Stores the result of a guard check",
           .answer = "purlin.fleet.guard-stored/1",
           .max_body = kMaxGuardBytes,
           .handle = [&gate, &clock](
                         const Request& request) { return put_guard(gate, clock, request.body); }},
          {.method = "GET",
           .path = "/v1/guard",
           .scope = Scope::kRead,
           .kind = "guard",
           .summary = "Guard checks, the newest first",
           .answer = "purlin.fleet.guard/1",
           .parameters = {{"kernel", "string", "those with this kernel"},
                          {"limit", "integer", "50 by default"},
                          {"documents", "integer", "1: with the whole documents"}},
           .handle = [&gate](const Request& request) { return guard_runs(gate, request); },
           .is_query = true}};
}

std::vector<Endpoint> store_endpoints(StoreGate& gate, Clock& clock) {
  return {
      {.method = "GET",
       .path = "/v1/store",
       .scope = Scope::kAdmin,
       .kind = "check_store",
       .summary = "Reads all of the store and reports damage",
       .answer = "purlin.fleet.store/1",
       .handle = [&gate](const Request&) { return check_store(gate); }},
      {.method = "POST",
       .path = "/v1/store/expire",
       .scope = Scope::kAdmin,
       .kind = "expire_store",
       .summary = "Removes the hours of days that end by a time",
       .answer = "purlin.fleet.expired/1",
       .parameters = {{"before", "string", "RFC 3339, or a time ago such as -90d"}},
       .handle = [&gate, &clock](const Request& request) { return expire(gate, clock, request); }},
      {.method = "POST",
       .path = "/v1/nodes/{node}/release",
       .scope = Scope::kAdmin,
       .kind = "release_node",
       .summary = "Counts the batches of a node that are in quarantine, with their times moved",
       .answer = "purlin.fleet.released/1",
       .handle = [&gate](const Request& request) { return release(gate, request); }}};
}

Status tend_store(StoreGate& gate, RawShelf& raws, const Retention& retention, Clock& clock) {
  const std::int64_t now_ns = clock.wall_ns();
  PURLIN_TRY(gate.write([](store::Store& store) { return store.compact(); }));
  if (retention.hours_ns > 0)
    PURLIN_TRY(
        gate.write([&](store::Store& store) { return store.expire(now_ns - retention.hours_ns); }));
  store::Filter recent;
  recent.begin_ns = now_ns - store::kDayNs;
  recent.end_ns = now_ns + store::kHourNs;
  const store::RawPointers pointers = pointers_of(gate);
  PURLIN_TRY(store::choose_exemplars(pointers, recent, now_ns, retention.raws));
  return raws.use([&](blobs::BlobStore& blobs) {
    return store::sweep_raws(blobs, pointers, now_ns, retention.raws).status();
  });
}

std::string store_metrics(const StoreGate& gate) {
  const StoreGate::Counts counts = gate.counts();
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  return RequestMetrics::single("purlin_store_batches_total", "counter", "Batches ingested.",
                                number(counts.batches)) +
         RequestMetrics::single("purlin_store_commits_total", "counter",
                                "Commits, each of the batches that waited.",
                                number(counts.commits)) +
         RequestMetrics::single("purlin_store_waiting", "gauge", "Writes that wait for the store.",
                                number(counts.waiting));
}

}  // namespace purlin::fleet
