// SPDX-License-Identifier: Apache-2.0
#include "profile/format/documents.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxFlowFacts = 100'000, kMaxOpName = 512;
constexpr std::array<std::string_view, 5> kFlowKinds = {"unread", "partly_read", "repeated",
                                                        "unchanged", "gradient_of_repeated"};

std::uint32_t flow_count(const Json& json, std::string_view key) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(json[key].as_int(), 0, 1 << 30));
}

}  // namespace

Json to_json(const ProcessInfo& process) {
  Json json = Json::object({{"pid", process.pid},
                            {"parent", process.parent},
                            {"command", process.command},
                            {"layer", process.layer},
                            {"start_ns", process.start_ns},
                            {"end_ns", process.end_ns},
                            {"complete", process.complete},
                            {"seals", process.exit_seals}});
  if (process.rank >= 0) json.set("rank", process.rank);
  if (process.world_size > 0) json.set("world_size", process.world_size);
  if (process.stands_for != 1) json.set("stands_for", process.stands_for);
  if (process.timeline_from_ns != 0) json.set("timeline_from_ns", process.timeline_from_ns);
  if (process.timeline_requested) json.set("timeline_requested", true);
  if (!process.paces.empty()) {
    Json paces = Json::array();
    for (const Pace& pace : process.paces)
      paces.push(Json::object({{"calls", pace.calls}, {"ns", pace.ns}}));
    json.set("paces", std::move(paces));
  }
  if (!process.labels.empty()) json.set("labels", to_json(process.labels));
  return json;
}

ProcessInfo process_from_json(const Json& json) {
  ProcessInfo process;
  process.pid = json["pid"].as_int();
  process.parent = json["parent"].as_int();
  process.command = json["command"].as_string();
  process.layer = json["layer"].as_string();
  process.start_ns = json["start_ns"].as_int();
  process.end_ns = json["end_ns"].as_int();
  process.complete = json["complete"].as_bool();
  process.exit_seals =
      static_cast<int>(std::clamp<std::int64_t>(json["seals"].as_int(), 0, 1 << 30));
  process.rank = static_cast<int>(std::clamp<std::int64_t>(json["rank"].as_int(-1), -1, 1 << 30));
  process.world_size =
      static_cast<int>(std::clamp<std::int64_t>(json["world_size"].as_int(0), 0, 1 << 30));
  process.stands_for =
      static_cast<int>(std::clamp<std::int64_t>(json["stands_for"].as_int(1), 0, 1 << 30));
  process.timeline_from_ns = json["timeline_from_ns"].as_int();
  process.timeline_requested = json["timeline_requested"].as_bool();
  for (const Json& pace : json["paces"].items())
    process.paces.push_back(
        {std::max(0.0, pace["calls"].as_double()), std::max(0.0, pace["ns"].as_double())});
  process.labels = labels_from_json(json["labels"]);
  return process;
}

Json to_json(const Sampling& sampling) {
  return Json::object({{"budget", sampling.budget},
                       {"governed_ns", sampling.governed_ns},
                       {"recorded_ns", sampling.recorded_ns},
                       {"windows", sampling.windows},
                       {"total_ns", sampling.total_ns},
                       {"total_variance", sampling.total_variance},
                       {"waits", sampling.waits ? Json(*sampling.waits) : Json()},
                       {"counted_windows", sampling.counted_windows},
                       {"timed_windows", sampling.timed_windows},
                       {"presence", sampling.presence},
                       {"one_in", sampling.one_in},
                       {"hidden_ns", sampling.hidden_ns},
                       {"unsure_ns", sampling.unsure_ns}});
}

Json to_json(const Coverage& coverage) {
  Json notes = Json::array();
  for (const CoverageNote& note : coverage.notes)
    notes.push(Json::object({{"cause", note.cause},
                             {"text", note.text},
                             {"count", note.count},
                             {"seconds", note.seconds}}));
  Json json = Json::object({{"launches_seen", coverage.launches_seen},
                            {"launches_counted", coverage.launches_counted},
                            {"launches_lost", coverage.launches_lost},
                            {"launches_sampled_out", coverage.launches_sampled_out},
                            {"overhead_ns", coverage.overhead_ns},
                            {"sampling", to_json(coverage.sampling)},
                            {"bytes_written", coverage.bytes_written},
                            {"notes", std::move(notes)}});
  if (coverage.step_ns > 0) json.set("step_ns", coverage.step_ns);
  return json;
}

Coverage coverage_from_json(const Json& json) {
  Coverage coverage;
  coverage.launches_seen = json["launches_seen"].as_double();
  coverage.launches_counted = json["launches_counted"].as_double();
  coverage.launches_lost = json["launches_lost"].as_double();
  coverage.launches_sampled_out = json["launches_sampled_out"].as_double();
  coverage.overhead_ns = json["overhead_ns"].as_double();
  coverage.step_ns = std::max(0.0, json["step_ns"].as_double());
  const Json& sampling = json["sampling"];
  coverage.sampling = {sampling["budget"].as_double(),
                       sampling["governed_ns"].as_double(),
                       sampling["recorded_ns"].as_double(),
                       sampling["windows"].as_double(),
                       sampling["total_ns"].as_double(),
                       sampling["total_variance"].as_double(),
                       std::nullopt,
                       sampling["counted_windows"].as_double(),
                       sampling["timed_windows"].as_double()};
  coverage.sampling.presence = sampling["presence"].as_double();
  coverage.sampling.hidden_ns = sampling["hidden_ns"].as_double();
  coverage.sampling.unsure_ns = sampling["unsure_ns"].as_double();
  coverage.sampling.one_in =
      static_cast<int>(std::clamp<std::int64_t>(sampling["one_in"].as_int(), 0, 1 << 30));
  if (sampling["waits"].is_bool()) coverage.sampling.waits = sampling["waits"].as_bool();
  coverage.bytes_written =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, json["bytes_written"].as_int()));
  for (const Json& item : json["notes"].items()) {
    CoverageNote note;
    note.cause = item["cause"].as_string();
    note.text = item["text"].as_string();
    note.count = item["count"].as_double();
    note.seconds = item["seconds"].as_double();
    coverage.notes.push_back(std::move(note));
  }
  return coverage;
}

Json to_json(const DataFlow& flow) {
  Json facts = Json::array();
  for (const FlowFact& fact : flow.facts) {
    Json item = Json::object({{"kind", kFlowKinds[static_cast<std::size_t>(fact.kind)]},
                              {"op", fact.op},
                              {"ordinal", fact.ordinal},
                              {"count", fact.count}});
    if (fact.kind == FlowKind::kPartlyRead)
      item.set("read_share", fact.read_share).set("reader", fact.reader);
    if (fact.kind == FlowKind::kRepeated) item.set("earlier", fact.earlier);
    facts.push(std::move(item));
  }
  Json out = Json::object({{"steps", flow.steps},
                           {"ops", flow.ops},
                           {"same_data", flow.same_data},
                           {"host_numbers", flow.host_numbers},
                           {"facts", std::move(facts)}});
  if (flow.sequence_ops > 0)
    out.set("sequence_ops", flow.sequence_ops)
        .set("sequence_hash", fmt::format("{:016x}", flow.sequence_hash));
  return out;
}

DataFlow data_flow_from_json(const Json& json) {
  DataFlow flow;
  flow.steps = flow_count(json, "steps");
  flow.ops = flow_count(json, "ops");
  flow.same_data = json["same_data"].as_bool();
  flow.host_numbers = json["host_numbers"].as_bool();
  flow.sequence_ops = flow_count(json, "sequence_ops");
  const std::string hash(json["sequence_hash"].as_string());
  std::from_chars(hash.data(), hash.data() + hash.size(), flow.sequence_hash, 16);
  for (const Json& item : json["facts"].items()) {
    if (flow.facts.size() >= kMaxFlowFacts) break;
    const auto kind = std::find(kFlowKinds.begin(), kFlowKinds.end(), item["kind"].as_string());
    FlowFact fact;
    fact.op = item["op"].as_string().substr(0, kMaxOpName);
    fact.ordinal = flow_count(item, "ordinal");
    fact.count = flow_count(item, "count");
    // A newer writer may know more kinds.
    if (kind == kFlowKinds.end() || fact.op.empty() || fact.ordinal >= fact.count) continue;
    fact.kind = static_cast<FlowKind>(kind - kFlowKinds.begin());
    if (fact.kind == FlowKind::kPartlyRead) {
      fact.read_share = item["read_share"].as_double();
      fact.reader = item["reader"].as_string().substr(0, kMaxOpName);
      if (!(fact.read_share > 0 && fact.read_share < 1)) continue;
    }
    if (fact.kind == FlowKind::kRepeated) fact.earlier = flow_count(item, "earlier");
    flow.facts.push_back(std::move(fact));
  }
  return flow;
}

}  // namespace purlin::profile
