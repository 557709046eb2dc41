// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/baseline.h"

#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "guard/gate/signed_rank.h"
#include "model/document.h"

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

Json to_json(const ProcessReading& process) {
  return Json::object({{"time_ns", process.reading.time_ns},
                       {"p95_ns", process.p95_ns},
                       {"cycles", process.reading.cycles},
                       {"clock_mhz", process.clock_mhz},
                       {"resolution_ns", process.reading.resolution_ns},
                       {"iterations", process.iterations}});
}

Result<ProcessReading> process_from_json(const Json& json) {
  ProcessReading process;
  PURLIN_ASSIGN(process.reading.time_ns, json.double_at("time_ns"));
  if (!is_time(process.reading.time_ns))
    return error(Code::kCorrupt, "a time of {} ns", process.reading.time_ns);
  process.p95_ns = json["p95_ns"].as_double();
  process.reading.cycles = json["cycles"].as_double();
  process.reading.resolution_ns = json["resolution_ns"].as_double();
  process.clock_mhz = json["clock_mhz"].as_double();
  process.iterations = static_cast<int>(json["iterations"].as_int());
  return process;
}

Json to_json(const BaselineItem& item) {
  Json processes = Json::array();
  for (const ProcessReading& process : item.processes) processes.push(to_json(process));
  return Json::object({{"kernel", item.kernel},
                       {"op", item.op},
                       {"request", item.request},
                       {"shape", purlin::to_json(item.problem)},
                       {"config", purlin::to_json(item.config)},
                       {"snapshot", item.snapshot},
                       {"input_seed", item.seed},
                       {"p50_ns", item.p50_ns()},
                       {"p95_ns", item.p95_ns()},
                       {"processes", std::move(processes)}});
}

Result<BaselineItem> item_from_json(const Json& json) {
  BaselineItem item;
  PURLIN_ASSIGN(item.kernel, json.string_at("kernel"));
  item.op = json["op"].as_string();
  PURLIN_ASSIGN(item.request, json.string_at("request"));
  PURLIN_ASSIGN(item.problem, shape_from_json(json["shape"]));
  PURLIN_ASSIGN(item.config, config_from_json(json["config"]));
  PURLIN_ASSIGN(item.snapshot, json.string_at("snapshot"));
  item.seed = static_cast<std::uint64_t>(json["input_seed"].as_int());
  for (const Json& process : json["processes"].items()) {
    PURLIN_ASSIGN(ProcessReading reading, process_from_json(process));
    item.processes.push_back(reading);
  }
  if (item.processes.empty())
    return error(Code::kCorrupt, "'{}' has no measured process", item.kernel);
  return item;
}

}  // namespace

double BaselineItem::p50_ns() const {
  std::vector<double> times;
  for (const ProcessReading& process : processes) times.push_back(process.reading.time_ns);
  return times.empty() ? 0 : median_of(times);
}

double BaselineItem::p95_ns() const {
  std::vector<double> times;
  for (const ProcessReading& process : processes) times.push_back(process.p95_ns);
  return times.empty() ? 0 : median_of(times);
}

const BaselineItem* Baseline::find(const std::string& key) const {
  for (const BaselineItem& item : items)
    if (item.key() == key) return &item;
  return nullptr;
}

Json to_json(const Baseline& baseline) {
  Json document = new_document("purlin.baseline/1", baseline.environment);
  document.set("suite", baseline.suite);
  document.set("recorded_at", baseline.recorded_at);
  document.set("note", baseline.note);
  document.set("promoted_by", baseline.promoted_by);
  document.set("replaces", baseline.replaces);
  document.set("previous", baseline.previous);
  document.set("measurement", measure::to_json(baseline.policy));
  document.set("suite_seed", baseline.suite_seed);
  Json items = Json::array();
  for (const BaselineItem& item : baseline.items) items.push(to_json(item));
  document.set("items", std::move(items));
  Json snapshots = Json::object();
  for (const auto& [id, snapshot] : baseline.snapshots) snapshots.set(id, to_json(snapshot));
  document.set("snapshots", std::move(snapshots));
  return document;
}

Result<Baseline> baseline_from_json(const Json& json) {
  PURLIN_TRY(check_schema(json, "purlin.baseline", 1));
  Baseline baseline;
  PURLIN_ASSIGN(baseline.suite, json.string_at("suite"));
  baseline.environment = environment_from_json(json["environment"]);
  if (!baseline.environment.devices.empty()) baseline.device = baseline.environment.devices.front();
  PURLIN_ASSIGN(baseline.policy, measure::policy_from_json(json["measurement"]));
  baseline.suite_seed = static_cast<std::uint64_t>(json["suite_seed"].as_int());
  baseline.recorded_at = json["recorded_at"].as_string();
  baseline.tool_version = json["tool_version"].as_string();
  baseline.note = json["note"].as_string();
  baseline.promoted_by = json["promoted_by"].as_string();
  baseline.replaces = json["replaces"].as_string();
  baseline.previous = json["previous"].as_string();
  for (const Json::Member& member : json["snapshots"].members()) {
    PURLIN_ASSIGN(Snapshot snapshot, snapshot_from_json(member.value));
    if (snapshot.id() != member.key)
      return error(Code::kCorrupt, "the snapshot {} was altered: its contents hash to {}",
                   member.key, snapshot.id());
    baseline.snapshots.emplace(member.key, std::move(snapshot));
  }
  for (const Json& node : json["items"].items()) {
    PURLIN_ASSIGN(BaselineItem item, item_from_json(node));
    if (baseline.snapshots.count(item.snapshot) == 0)
      return error(Code::kCorrupt, "the snapshot of '{}' is missing", item.kernel);
    baseline.items.push_back(std::move(item));
  }
  return baseline;
}

Result<Baseline> load_baseline(const std::string& path) {
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxBytes));
  Result<Json> json = Json::parse(text);
  if (!json.is_ok()) return json.status().with_context(path);
  Result<Baseline> baseline = baseline_from_json(*json);
  return baseline.is_ok() ? baseline : baseline.status().with_context(path);
}

std::string baseline_path(const std::string& output, const std::string& suite_name) {
  if (is_directory(output) || ends_with(output, "/"))
    return join_path(output, suite_name + ".json");
  return output;
}

std::string previous_path(const std::string& path, const std::string& recorded_at) {
  // "2026-11-20T14:21:16Z" without characters that some file systems and archives refuse.
  std::string when = recorded_at;
  std::erase_if(when, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  const std::string stem = ends_with(path, ".json") ? path.substr(0, path.size() - 5) : path;
  return stem + "." + (when.empty() ? "unreadable" : when) + ".json";
}

std::vector<std::string> missing_facts(const DeviceInfo& device) {
  std::vector<std::string> missing;
  if (device.name.empty()) missing.emplace_back("the device's model");
  if (device.driver.empty()) missing.emplace_back("the driver's version");
  if (device.toolkit.empty()) missing.emplace_back("the compiler's version");
  return missing;
}

std::vector<std::string> missing_facts(const Baseline& baseline) {
  std::vector<std::string> missing = missing_facts(baseline.device);
  const auto need = [&](bool known, const char* what) {
    if (!known) missing.emplace_back(what);
  };
  const DeviceInfo& device = baseline.device;
  need(baseline.policy.warmup_launches >= 0 && baseline.policy.max_samples > 0,
       "warm-up and iterations");
  need(!baseline.items.empty(), "any item");
  bool clocks = device.clock_mhz > 0, shapes = true, iterations = true;
  for (const BaselineItem& item : baseline.items) {
    shapes &= !item.problem.empty();
    for (const ProcessReading& process : item.processes) {
      iterations &= process.iterations > 0;
      clocks |= process.clock_mhz > 0;
    }
  }
  need(clocks, "the device's clock");
  need(shapes, "every item's shape");
  need(iterations, "every process's iterations");
  return missing;
}

std::vector<std::string> environment_differences(const DeviceInfo& recorded,
                                                 const DeviceInfo& today) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* what, const std::string& then, const std::string& now) {
    if (then != now) differences.push_back(fmt::format("{}: '{}' then, '{}' now", what, then, now));
  };
  compare("backend", recorded.backend, today.backend);
  compare("device", recorded.name, today.name);
  compare("arch", recorded.arch, today.arch);
  compare("driver", recorded.driver, today.driver);
  compare("toolkit", recorded.toolkit, today.toolkit);
  if (recorded.compute_units != today.compute_units)
    differences.push_back(
        fmt::format("compute units: {} then, {} now", recorded.compute_units, today.compute_units));
  return differences;
}

}  // namespace purlin::guard
