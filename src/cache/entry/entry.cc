// SPDX-License-Identifier: Apache-2.0
#include "cache/entry/entry.h"

#include "base/files.h"
#include "base/json/json_view.h"
#include "base/time.h"
#include "base/version.h"
#include "model/document.h"
#include "model/expression/parameter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <pwd.h>
#include <unistd.h>

namespace purlin::cache {
namespace {

constexpr int kSchemaVersion = 1;
constexpr std::size_t kMaxSamples = 20'000, kMaxTies = 1'000, kMaxParameters = 1'000;

// All that reads is for a Json or a JsonView. Absent is 0, as a time that was not measured. Times
// come back from foreign files, so a negative or absurd one is refused.
template <class J>
Result<double> time_at(const J& json, std::string_view key) {
  const auto& value = json[key];
  if (value.is_null()) return 0.0;
  const double ms = value.as_double(-1);
  if (ms == 0 || is_time_ms(ms)) return ms;
  return error(Code::kInvalid,
               "'{}' is not a time in milliseconds: 0 (not measured), or {:g} to {:g}", key,
               kLeastMs, kMostMs);
}

template <class J>
Result<std::vector<Sample>> samples_from(const J& json) {
  const auto& times = json["samples_ms"].items();
  const auto& clocks = json["samples_clock_mhz"].items();
  if (times.size() > kMaxSamples)
    return error(Code::kInvalid, "'samples_ms' has more than {} items", kMaxSamples);
  if (!clocks.empty() && clocks.size() != times.size())
    return error(Code::kInvalid, "'samples_clock_mhz' and 'samples_ms' differ in length");
  std::vector<Sample> samples;
  for (const auto& time : times) {
    const double ms = time.as_double(-1);
    if (ms != 0 && !is_time_ms(ms))
      return error(Code::kInvalid, "'samples_ms' holds no time at {}", samples.size());
    samples.push_back({ms, 0.0});
  }
  std::size_t i = 0;
  for (const auto& clock : clocks) samples[i++].sm_clock_mhz = clock.as_double();
  return samples;
}

template <class J>
Result<BucketRules> rules_from(const J& json, const ProblemShape& problem) {
  BucketRules rules;
  for (const auto& item : problem.items()) {
    const auto& text = json[item.first];
    if (text.is_null()) {
      rules.emplace_back(item.first, BucketRule());
      continue;
    }
    PURLIN_ASSIGN(const BucketRule rule, BucketRule::parse(text.as_string()));
    rules.emplace_back(item.first, rule);
  }
  return rules;
}

// A config that programs receive.
template <class J>
Result<Config> config_at(const J& json, std::string_view key) {
  PURLIN_ASSIGN(Config config, config_from_json(json[key]));
  if (config.items().size() > kMaxParameters)
    return error(Code::kInvalid, "'{}' has more than {} parameters", key, kMaxParameters);
  PURLIN_TRY(check_parameters(config).with_context(fmt::format("'{}'", key)));
  return config;
}

template <class J>
Result<ProblemShape> problem_from(const J& json) {
  PURLIN_ASSIGN(ProblemShape problem, shape_from_json(json));
  if (problem.items().size() > kMaxParameters)
    return error(Code::kInvalid, "'problem' has more than {} dimensions", kMaxParameters);
  for (const auto& [name, extent] : problem.items())
    if (!is_identifier(name))
      return error(Code::kInvalid,
                   "'problem': the dimension {} is no name: letters, digits and '_', not starting "
                   "with a digit",
                   json_quote(std::string_view(name).substr(0, 80)));
  return problem;
}

template <class J>
Status read_constraints(const J& json, Entry* entry, ConstraintCache& constraints) {
  const auto& texts = json["shape_constraints"].items();
  if (texts.size() > kMaxParameters)
    return error(Code::kInvalid, "'shape_constraints' has more than {} items", kMaxParameters);
  for (const auto& item : texts) {
    std::string text(item.as_string());
    if (const Result<Expression>& parsed = constraints.parse(text); !parsed.is_ok())
      return parsed.status().with_context("'shape_constraints'");
    entry->shape_constraints.push_back(std::move(text));
  }
  if (json["facts"].is_null()) return Status::ok();
  PURLIN_ASSIGN(entry->facts, config_from_json(json["facts"]));
  return Status::ok();
}

template <class J>
Status read_regret(const J& json, Entry* entry) {
  const auto& members = json["bucket_regret"].members();
  if (members.size() > kMaxParameters)
    return error(Code::kInvalid, "'bucket_regret' has more than {} members", kMaxParameters);
  for (const auto& member : members) {
    PURLIN_ASSIGN(ProblemShape shape, parse_shape(member.key));
    const double ratio = member.value.as_double();
    if (!member.value.is_number() || !std::isfinite(ratio) || ratio <= 0)
      return error(Code::kInvalid, "'bucket_regret': '{}' has no positive ratio", member.key);
    entry->bucket_regret.emplace_back(std::move(shape), ratio);
  }
  return Status::ok();
}

template <class J>
Result<Entry> entry_from(const J& json, EntryParts parts, ConstraintCache& constraints) {
  PURLIN_TRY(check_schema(json, "purlin.entry", kSchemaVersion));
  Entry entry;
  PURLIN_ASSIGN(entry.key, key_from_json(json["key"]));
  const std::string& policy = entry.key.policy;  // no lookup wants another
  if (!policy.empty() && policy != "warm" && policy != "cold")
    return error(Code::kInvalid, "the key's 'policy' is '{}'; there are warm and cold", policy);
  PURLIN_ASSIGN(entry.config, config_at(json, "config"));
  PURLIN_ASSIGN(entry.problem, problem_from(json["problem"]));
  PURLIN_ASSIGN(entry.bucket_rules, rules_from(json["bucket_rules"], entry.problem));
  PURLIN_TRY(read_constraints(json, &entry, constraints));
  PURLIN_ASSIGN(entry.time_ms, time_at(json, "time_ms"));
  PURLIN_ASSIGN(entry.default_time_ms, time_at(json, "default_time_ms"));
  PURLIN_ASSIGN(entry.runner_up_ms, time_at(json, "runner_up_ms"));
  for (const auto& [name, config] : {std::pair{"default_config", &entry.default_config},
                                     std::pair{"runner_up", &entry.runner_up}})
    if (!json[name].is_null()) {
      PURLIN_ASSIGN(*config, config_at(json, name));
    }
  entry.verified = json["verified"].as_bool();
  entry.recorded_at = json["recorded_at"].as_string();
  // Of two entries that are equal otherwise, the later is served.
  if (!entry.recorded_at.empty() && !parse_rfc3339(entry.recorded_at))
    return error(Code::kInvalid,
                 "'recorded_at' is {}, not a time in UTC from 1970 to 2261, such as "
                 "2026-11-20T12:43:00Z",
                 json_quote(std::string_view(entry.recorded_at).substr(0, 80)));
  entry.reference = json["reference"].as_string();
  if (parts == EntryParts::kServed) return entry;
  PURLIN_ASSIGN(entry.samples, samples_from(json));
  PURLIN_TRY(read_regret(json, &entry));
  if (json["ties"].size() > kMaxTies)
    return error(Code::kInvalid, "'ties' has more than {} items", kMaxTies);
  const auto& ties = json["ties"].items();
  for (const auto& item : ties) {
    PURLIN_ASSIGN(Config config, config_from_json(item));
    PURLIN_TRY(check_parameters(config).with_context("'ties'"));
    entry.ties.push_back(std::move(config));
  }
  const std::int64_t evaluations = json["evaluations"].as_int();
  if (evaluations < 0 || evaluations > std::numeric_limits<int>::max())
    return error(Code::kInvalid, "'evaluations' is {}, which is no count", evaluations);
  entry.evaluations = static_cast<int>(evaluations);
  entry.tool_version = json["tool_version"].as_string();
  entry.strategy = json["strategy"].as_string();
  entry.host = json["host"].as_string();
  entry.user = json["user"].as_string();
  return entry;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string author_text(const std::string& user, const std::string& host) {
  return user.empty() || host.empty() ? user + host : user + "@" + host;
}

std::string user_name() {
  char buffer[4096];
  passwd record{}, *found = nullptr;
  if (::getpwuid_r(::getuid(), &record, buffer, sizeof buffer, &found) == 0 && found != nullptr)
    return found->pw_name;
  return environment_variable("USER");
}

Result<Entry> new_entry(const KernelSpec& spec, const ProblemShape& problem,
                        const DeviceInfo& device, bool cold_cache) {
  Entry entry;
  PURLIN_ASSIGN(entry.key, make_key(spec, problem, device, cold_cache));
  PURLIN_ASSIGN(entry.bucket_rules, bucket_rules(spec, problem));
  entry.problem = problem;
  // The config is not known yet: only the device's facts are looked up here.
  const Scope scope = config_scope(spec, problem, Config(), device);
  for (const SpecExpression& constraint : spec.constraints) {
    const std::vector<std::string>& names = constraint.expression.names();
    const auto is_dimension = [&](const std::string& name) {
      return problem.find(name) != nullptr;
    };
    if (std::none_of(names.begin(), names.end(), is_dimension)) continue;
    entry.shape_constraints.push_back(constraint.expression.text());
    for (const std::string& name : names)
      if (const Value* fact = scope.find(name); fact != nullptr && !is_dimension(name))
        entry.facts.set(name, *fact);
  }
  entry.tool_version = version();
  entry.host = host_name();
  entry.user = user_name();
  entry.recorded_at = format_rfc3339(system_clock().wall_ns());
  return entry;
}

Json to_json(const Entry& entry) {
  Json times = Json::array(), clocks = Json::array(), ties = Json::array();
  bool clocks_known = false;
  for (const Sample& sample : entry.samples) {
    times.push(sample.ms);
    clocks.push(sample.sm_clock_mhz);
    clocks_known = clocks_known || sample.sm_clock_mhz > 0;
  }
  for (const Config& config : entry.ties) ties.push(to_json(config));
  Json rules = Json::object();
  for (const auto& [dimension, rule] : entry.bucket_rules) rules.set(dimension, rule.text());

  Json json = Json::object({{"schema", fmt::format("purlin.entry/{}", kSchemaVersion)},
                            {"tool_version", entry.tool_version},
                            {"id", entry.key.id()},
                            {"key", to_json(entry.key)},
                            {"config", to_json(entry.config)},
                            {"problem", to_json(entry.problem)},
                            {"bucket_rules", std::move(rules)},
                            {"shape_constraints", Json::array_of(entry.shape_constraints)},
                            {"facts", to_json(entry.facts)},
                            {"time_ms", entry.time_ms},
                            {"samples_ms", std::move(times)}});
  if (clocks_known) json.set("samples_clock_mhz", std::move(clocks));
  json.set("default_time_ms", entry.default_time_ms);
  json.set("runner_up_ms", entry.runner_up_ms);
  if (!entry.default_config.empty()) json.set("default_config", to_json(entry.default_config));
  if (!entry.runner_up.empty()) json.set("runner_up", to_json(entry.runner_up));
  json.set("ties", std::move(ties));
  if (!entry.bucket_regret.empty()) {
    Json regret = Json::object();
    for (const auto& [shape, ratio] : entry.bucket_regret) regret.set(shape.text(), ratio);
    json.set("bucket_regret", std::move(regret));
  }
  json.set("evaluations", entry.evaluations);
  json.set("verified", entry.verified);
  if (!entry.reference.empty()) json.set("reference", entry.reference);
  json.set("strategy", entry.strategy);
  json.set("host", entry.host);
  json.set("user", entry.user);
  json.set("recorded_at", entry.recorded_at);
  return json;
}

Result<Entry> entry_from_json(const Json& json) {
  ConstraintCache constraints;
  return entry_from(json, EntryParts::kAll, constraints);
}
Result<Entry> entry_from_json(const JsonView& json, EntryParts parts,
                              ConstraintCache& constraints) {
  return entry_from(json, parts, constraints);
}

}  // namespace purlin::cache
