// SPDX-License-Identifier: Apache-2.0
// `purlin cache put`: stores a config that a person or another tool knows to be good, or an entry
// written by `purlin cache get --json` elsewhere.
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/command.h"
#include "cli/tune/target.h"

#include <algorithm>
#include <cmath>

namespace purlin::cli {
namespace {

// The config in the spec's order; every parameter given, with a value of its list.
Result<Config> checked_config(const CacheTarget& target, std::string_view text) {
  PURLIN_ASSIGN(const Config given, parse_config(text));
  std::vector<std::string> names;
  for (const Parameter& parameter : target.spec.parameters) names.push_back(parameter.name);
  for (const auto& item : given.items())
    if (std::find(names.begin(), names.end(), item.first) == names.end()) {
      const std::string near = nearest(item.first, names);
      return error(Code::kInvalid, "'{}' has no parameter '{}'{}; it has {}", target.spec.file,
                   item.first, near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
                   join(names, ", "));
    }
  Config config;
  for (const Parameter& parameter : target.spec.parameters) {
    const Value* value = given.find(parameter.name);
    std::vector<std::string> values;
    for (const Value& allowed : parameter.values) values.push_back(to_text(allowed));
    if (value == nullptr)
      return error(Code::kInvalid, "--config lacks {}; its values are {}", parameter.name,
                   join(values, ", "));
    if (target.spec.library && std::holds_alternative<std::int64_t>(*value)) {
      config.set(parameter.name, *value);  // the library says what is valid, when it is asked
      continue;
    }
    // By text, so that UNROLL=1 is not taken for UNROLL=True and 16 is not taken for 16.0.
    const auto found = std::find(values.begin(), values.end(), to_text(*value));
    if (found == values.end())
      return error(Code::kInvalid, "{}={} is not in the space; its values are {}", parameter.name,
                   to_text(*value), join(values, ", "));
    config.set(parameter.name, parameter.values[static_cast<std::size_t>(found - values.begin())]);
  }
  const Scope scope = config_scope(target.spec, target.problem, config, target.device);
  PURLIN_TRY(check_constraints(target.spec, scope));
  PURLIN_TRY(resolve_launch(target.spec.launch, scope, target.device).status());
  return config;
}

class CachePut : public Command {
 public:
  std::string_view name() const override { return "cache put"; }
  std::string_view summary() const override { return "Store a config, or an entry from a file"; }
  VerbText text() const override {
    return {
        .description =
            "Checks the config against the space, the constraints and the launch limits of the "
            "spec. It stores the config as not verified. --entry takes an entry, or the output of "
            "`cache get --json`.",
        .examples = {{"purlin cache put kernels/elementwise/elementwise.toml --shape R=512,C=1024 "
                      "\\\n    --config BLOCK=256,ITEMS=2,VECTOR=4,FLAT=true,NATIVE=false"},
                     {"purlin cache put --entry winner.json"}},
        .exit_codes = {{0, "Stored"}, {2, "Error"}},
        .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    target_.declare(flags, false);
    target_.cache.declare_layers(flags);
    flags.option("--config", config_, "Value of each parameter", "A=1,B=2");
    flags.option("--time-ms", time_ms_, "Measured time of the config in milliseconds");
    flags.option("--entry", entry_file_, "Store the entry in this JSON file", "FILE");
    flags.flag("--replace", replace_,
               {"Serve this entry even if a better one is known", "The better entry is demoted."});
    flags.option("--reason", reason_, "Reason for --replace", "TEXT");
    flags.flag("--json", json_, "Print the stored entry as one JSON document");
  }

  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const cache::Entry entry, entry_file_.empty() ? from_config() : from_file());
    PURLIN_ASSIGN(cache::Layers layers, target_.cache.open_layers());
    PURLIN_ASSIGN(const cache::Put put,
                  layers.put(entry, {.replace = replace_, .reason = reason_}));
    if (!put.served && put.kept.empty())
      context.log.warn(
          "stored, but lookups get no entry of this key: this one was withdrawn before; --replace "
          "puts it back");
    else if (!put.served)
      context.log.warn(
          "stored, but lookups go on to get {}, which is better; --replace displaces it", put.kept);
    answer(
        context, json_,
        document_of("purlin.cache-put/1", {{"entry", to_json(entry)},
                                           {"record", put.record},
                                           {"known", put.known},
                                           {"served", put.served},
                                           {"directory", put.directory}}),
        fmt::format("stored {}{}{} in {}\n{}", entry.key.kernel, entry.problem.empty() ? "" : " ",
                    entry.problem.text(), put.directory, describe(entry, context.terminal)));
    return kExitOk;
  }

 private:
  Result<cache::Entry> from_config() const {
    if (target_.spec.empty() || config_.empty())
      return error(Code::kInvalid, "give a SPEC and --config, or --entry FILE");
    if (!(time_ms_ >= 0) || !std::isfinite(time_ms_))
      return error(Code::kInvalid, "--time-ms {} is not a time", time_ms_);
    PURLIN_ASSIGN(const CacheTarget target, target_.resolve());
    PURLIN_ASSIGN(cache::Entry entry,
                  cache::new_entry(target.spec, target.problem, target.device, target_.cold));
    PURLIN_ASSIGN(entry.config, checked_config(target, config_));
    entry.time_ms = time_ms_;
    entry.strategy = "put";
    return entry;
  }

  Result<cache::Entry> from_file() const {
    if (!target_.spec.empty() || !config_.empty() || !target_.shape.empty())
      return error(Code::kInvalid,
                   "--entry brings its own key; give it without SPEC, --config "
                   "and --shape");
    PURLIN_ASSIGN(const std::string text, read_file(entry_file_, cache::kMaxPayload));
    Result<Json> json = Json::parse(text);
    if (!json.is_ok()) return json.status().with_context(entry_file_);
    const Json& document = json->find("entry") != nullptr ? (*json)["entry"] : *json;
    if (document.is_null())
      return error(Code::kInvalid, "{}: holds no entry (the lookup was a miss)", entry_file_);
    Result<cache::Entry> entry = cache::entry_from_json(document);
    if (!entry.is_ok()) return entry.status().with_context(entry_file_);
    return entry;
  }

  CacheTargetFlags target_;
  std::string config_, entry_file_, reason_;
  double time_ms_ = 0;
  bool replace_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_put_command() { return std::make_unique<CachePut>(); }

}  // namespace purlin::cli
