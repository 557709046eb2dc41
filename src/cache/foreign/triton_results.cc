// SPDX-License-Identifier: Apache-2.0
// Triton's FUNCTION.autotune.json, as @triton.autotune(cache_results=True) writes it (3.6):
// {"key": [values of the key's arguments, then dtypes], "configs_timings": [[config, [ms, …]], …]}.
#include "base/json/json_dialect.h"
#include "base/text.h"
#include "cache/foreign/parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace purlin::cache::foreign {
namespace {

constexpr std::size_t kMaxConfigs = 100'000;

// As @purlin.autotune names a config's members, so that its lookups find them.
Result<Config> config_of(const Json& json) {
  Config config;
  if (!json["kwargs"].is_object())
    return error(Code::kInvalid, "a config has no 'kwargs'; is it Triton's autotune.json?");
  for (const Json::Member& member : json["kwargs"].members()) {
    const std::optional<Value> value = plain_value(member.value);
    if (!value)
      return error(Code::kInvalid, "'{}' of a config is no number, boolean or text", member.key);
    const bool* flag = std::get_if<bool>(&*value);
    config.set(member.key, flag != nullptr ? Value(std::int64_t{*flag ? 1 : 0}) : *value);
  }
  for (const char* name : {"num_warps", "num_stages"}) {
    PURLIN_ASSIGN(const std::int64_t value, json.int_at(name));
    config.set(name, value);
  }
  for (const char* name : {"num_ctas", "maxnreg"})
    if (json[name].is_int() && json[name].as_int() > 1) config.set(name, json[name].as_int());
  return config;
}

// The median is the first of the quantiles that Triton keeps; infinite where the config failed.
double time_of(const Json& timing) {
  const Json& first = timing.is_array() && timing.size() > 0 ? timing.items().front() : timing;
  const double ms = first.is_number() ? first.as_double() : 0;
  return std::isfinite(ms) && ms > 0 ? ms : std::numeric_limits<double>::infinity();
}

struct Timed {
  Config config;
  double ms = 0;
};

Status take_key(const Json& values, const ForeignFacts& facts, Entry& entry) {
  std::vector<const Json*> arguments;
  std::vector<std::string> types, other;
  for (const Json& value : values.items()) {
    if (value.is_string() && starts_with(value.as_string(), "torch."))
      types.push_back(value.as_string().substr(6));
    else
      arguments.push_back(&value);
  }
  if (arguments.size() != facts.dimensions.size())
    return error(Code::kInvalid,
                 "its key has {} values whose names the file does not hold; state them in order: "
                 "--dimensions M,N,K",
                 arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = facts.dimensions[i];
    const Json& value = *arguments[i];
    // Newer versions of Triton write every value as a text.
    const std::optional<std::int64_t> number =
        value.is_int() ? std::optional(value.as_int()) : parse_int(value.as_string());
    if (number && *number > 0 && entry.problem.items().size() < 8)
      entry.problem.set(name, *number);
    else
      other.push_back(fmt::format("{}={}", name,
                                  value.is_string() ? value.as_string()
                                  : value.is_bool() ? (value.as_bool() ? "True" : "False")
                                  : value.is_null() ? "None"
                                                    : value.dump()));
  }
  if (entry.problem.items().empty()) entry.problem.set("any", 1);
  types.insert(types.end(), other.begin(), other.end());
  entry.key.dtype = types.empty() ? "none" : join(types, ",");
  for (const auto& item : entry.problem.items())
    entry.bucket_rules.emplace_back(item.first, BucketRule());
  return Status::ok();
}

// The members of triton.Config that every version of Triton has.
Json config_json(const Config& config) {
  Json kwargs = Json::object(), json = Json::object();
  json.set("kwargs", Json::object());
  for (const auto& [name, fallback] :
       {std::pair("num_warps", Json(4)), std::pair("num_ctas", Json(1)),
        std::pair("num_stages", Json(3)), std::pair("maxnreg", Json()),
        std::pair("pre_hook", Json())})
    json.set(name, fallback);
  for (const auto& [name, value] : config.items()) {
    const Json written = std::visit([](const auto& v) { return Json(v); }, value);
    if (name == "num_warps" || name == "num_ctas" || name == "num_stages" || name == "maxnreg")
      json.set(name, written);
    else
      kwargs.set(name, written);
  }
  json.set("kwargs", std::move(kwargs));
  return json;
}

Json timed_json(const Config& config, double ms) {
  return Json::array({config_json(config), Json::array({ms, ms, ms})});
}

// The key's values as take_key() takes them: the problem, what else is named, the dtypes.
Json key_json(const Entry& entry) {
  Json key = Json::array(), types = Json::array();
  for (const auto& [name, extent] : entry.problem.items())
    if (name != "any") key.push(extent);
  for (const std::string& part : split(entry.key.dtype, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      if (part != "none") types.push("torch." + part);
      continue;
    }
    const std::string value = part.substr(equals + 1);
    const std::optional<std::int64_t> number = parse_int(value);
    key.push(value == "True" || value == "False" ? Json(value == "True")
             : value == "None"                   ? Json()
             : number                            ? Json(*number)
                                                 : Json(value));
  }
  for (const Json& type : types.items()) key.push(type);
  return key;
}

}  // namespace

// A file for each tuning, each in a separate folder as Triton has it. The folder does not have the
// name that Triton looks for: that is a hash over Triton's own sources.
Result<NamedFiles> write_triton(std::span<const Entry> entries) {
  NamedFiles written;
  for (const Entry& entry : entries) {
    if (entry.key.op != "triton" || !(entry.time_ms > 0)) continue;
    Json timings = Json::array({timed_json(entry.config, entry.time_ms)});
    if (entry.runner_up_ms > 0) timings.push(timed_json(entry.runner_up, entry.runner_up_ms));
    const std::string kernel = entry.key.kernel.substr(entry.key.kernel.rfind('.') + 1);
    std::string problem = entry.problem.text();
    std::replace(problem.begin(), problem.end(), ',', '_');
    std::string name = fmt::format("{}-{}/{}.autotune.json", problem, entry.key.id().substr(0, 8),
                                   kernel.empty() ? "kernel" : kernel);
    written.emplace_back(
        std::move(name),
        Json::object({{"key", key_json(entry)}, {"configs_timings", std::move(timings)}}).dump() +
            "\n");
  }
  if (written.empty())
    return error(Code::kNotFound, "there is no entry of op triton that was timed");
  return written;
}

Result<ForeignEntries> read_triton(std::string_view name, std::string_view bytes,
                                   const ForeignFacts& facts) {
  PURLIN_ASSIGN(const Json document,
                Json::parse(without_non_finite(bytes), {.max_bytes = kMaxForeignBytes}));
  const Json& timings = document["configs_timings"];
  if (!timings.is_array() || !document["key"].is_array())
    return error(Code::kInvalid,
                 "it has no 'key' and 'configs_timings'; is it the autotune.json that "
                 "@triton.autotune(cache_results=True) writes?");
  if (timings.size() > kMaxConfigs)
    return error(Code::kInvalid, "it has more than {} configs", kMaxConfigs);
  std::vector<Timed> worked;
  for (const Json& item : timings.items()) {
    if (!item.is_array() || item.size() != 2)
      return error(Code::kInvalid, "an item of 'configs_timings' is no pair of config and times");
    PURLIN_ASSIGN(Config config, config_of(item.items()[0]));
    const double ms = time_of(item.items()[1]);
    if (std::isfinite(ms)) worked.push_back({std::move(config), ms});
  }
  if (worked.empty()) return error(Code::kInvalid, "none of its configs worked");
  // The first of equals, as Triton takes it.
  std::stable_sort(worked.begin(), worked.end(),
                   [](const Timed& a, const Timed& b) { return a.ms < b.ms; });
  Entry entry;
  constexpr std::string_view kSuffix = ".autotune.json";
  std::string_view kernel = base_name(name);
  if (ends_with(kernel, kSuffix)) kernel.remove_suffix(kSuffix.size());
  entry.key.op = "triton";
  entry.key.kernel = kernel.empty() ? "kernel" : std::string(kernel);
  PURLIN_TRY(take_key(document["key"], facts, entry));
  entry.config = worked[0].config;
  entry.time_ms = worked[0].ms;
  entry.samples = {{worked[0].ms, 0}};
  if (worked.size() > 1) {
    entry.runner_up = worked[1].config;
    entry.runner_up_ms = worked[1].ms;
  }
  entry.evaluations = static_cast<int>(timings.size());
  PURLIN_TRY(finish(entry, ForeignFormat::kTriton, facts));
  ForeignEntries read;
  read.entries.push_back(std::move(entry));
  return read;
}

}  // namespace purlin::cache::foreign
