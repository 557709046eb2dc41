// SPDX-License-Identifier: Apache-2.0
// "fake:FILE": a FakeDevice whose behaviour is a JSON script of expressions over the parameters.
#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/time.h"
#include "gpu/fake/fake_device.h"
#include "model/expression/expression.h"

#include <unistd.h>

namespace purlin::gpu {
namespace {

constexpr std::int64_t kForeverNs = std::int64_t{3600} * 1'000'000'000;

class Script {
 public:
  Status read(const Json& json) {
    if (!json.is_object()) return error(Code::kInvalid, "the script must be a JSON object");
    std::vector<std::string> known = {"device", "noise", "seed", "counters", "no_counters"};
    for (auto& [name, expression] : expressions()) {
      known.emplace_back(name);
      if (const Json* value = json.find(name); value != nullptr)
        if (const Status status = read_expression(*value, *expression); !status.is_ok())
          return status.with_context(fmt::format("'{}'", name));
    }
    no_counters = json["no_counters"].as_string();
    for (const auto& [name, value] : json["counters"].members())
      if (const Status status = read_expression(value, counters[name]); !status.is_ok())
        return status.with_context(fmt::format("'counters': '{}'", name));
    for (const auto& [key, value] : json.members())
      if (std::find(known.begin(), known.end(), key) == known.end() && !starts_with(key, "_"))
        return error(Code::kInvalid, "unknown key '{}'; there are: {}", key, join(known, ", "));
    return Status::ok();
  }

  // True where the condition is given and holds. A condition that cannot be evaluated fails the
  // request, so that a misspelt parameter is seen.
  static Result<bool> holds(const Expression& condition, const Config& config) {
    if (condition.empty()) return false;
    Scope scope;
    scope.add(config);
    return condition.evaluate_bool(scope.lookup());
  }
  // `blocks`: of the launch, where there is one.
  static Result<double> number(const Expression& expression, const Config& config, double otherwise,
                               std::uint64_t blocks = 0) {
    if (expression.empty()) return otherwise;
    Scope scope;
    scope.add(config);
    if (blocks > 0) scope.set("blocks", static_cast<std::int64_t>(blocks));
    return expression.evaluate_double(scope.lookup());
  }

  Expression time_ms, compile_s, power_w;
  Expression compile_error_if, slow_compile_if, launch_error_if, crash_if, hang_if;
  Expression wrong_if, out_of_bounds_if;
  std::map<std::string, Expression> counters;
  std::string no_counters;

 private:
  std::vector<std::pair<const char*, Expression*>> expressions() {
    return {{"time_ms", &time_ms},
            {"compile_s", &compile_s},
            {"power_w", &power_w},
            {"compile_error_if", &compile_error_if},
            {"slow_compile_if", &slow_compile_if},
            {"launch_error_if", &launch_error_if},
            {"crash_if", &crash_if},
            {"hang_if", &hang_if},
            {"wrong_if", &wrong_if},
            {"out_of_bounds_if", &out_of_bounds_if}};
  }
  static Status read_expression(const Json& json, Expression& expression) {
    if (!json.is_string() && !json.is_number() && !json.is_bool())
      return error(Code::kInvalid, "must be a number or an expression");
    std::string text = json.is_string() ? json.as_string() : json.dump();
    if (json.is_bool()) text = json.as_bool() ? "True" : "False";
    PURLIN_ASSIGN(expression, Expression::parse(text));
    return Status::ok();
  }
};

bool is_reference(std::string_view entry) { return ends_with(entry, "_reference"); }

Status compile(const Script& script, const CompileRequest& request) {
  if (is_reference(request.entry)) return Status::ok();
  PURLIN_ASSIGN(const bool refused, Script::holds(script.compile_error_if, request.config));
  if (refused)
    return error(Code::kInvalid, "{}:1:1: error: the script refuses {}", request.name,
                 request.config.text());
  PURLIN_ASSIGN(const bool slow, Script::holds(script.slow_compile_if, request.config));
  PURLIN_ASSIGN(const double seconds, Script::number(script.compile_s, request.config, 0));
  // Really spent, so that compiling in parallel and time limits can be seen to work.
  system_clock().sleep_ns(slow ? kForeverNs : static_cast<std::int64_t>(seconds * 1e9));
  return Status::ok();
}

Status launch(const Script& script, const FakeKernel& kernel, const LaunchShape& shape) {
  if (is_reference(kernel.entry)) return Status::ok();
  PURLIN_ASSIGN(const bool refused, Script::holds(script.launch_error_if, kernel.config));
  if (refused)
    return error(Code::kInvalid, "the script refuses to launch {}", kernel.config.text());
  PURLIN_ASSIGN(const bool crash, Script::holds(script.crash_if, kernel.config));
  if (crash) std::abort();
  PURLIN_ASSIGN(const bool hang, Script::holds(script.hang_if, kernel.config));
  while (hang) ::pause();  // NOLINT(bugprone-infinite-loop): that is what was asked for
  // Evaluated here as well, where a failure can be reported.
  PURLIN_TRY(Script::holds(script.wrong_if, kernel.config).status());
  PURLIN_TRY(Script::holds(script.out_of_bounds_if, kernel.config).status());
  PURLIN_TRY(Script::number(script.power_w, kernel.config, 1).status());
  return Script::number(script.time_ms, kernel.config, 1, shape.blocks()).status();
}

void write_output(const Script& script, const FakeKernel& kernel, FakeBuffer& buffer,
                  std::size_t offset, std::size_t bytes) {
  FakeDevice::write_pattern(buffer, offset, bytes);
  if (is_reference(kernel.entry)) return;
  // The top byte of a middle element: its sign and exponent, so never within a tolerance.
  const std::size_t middle = bytes / sizeof(float) / 2 * sizeof(float) + sizeof(float) - 1;
  if (Script::holds(script.wrong_if, kernel.config).value_or(false) && middle < bytes)
    buffer.data[offset + middle] ^= 0x7F;
  if (Script::holds(script.out_of_bounds_if, kernel.config).value_or(false)) {
    // Past the range where there is memory, else just before it.
    if (offset + bytes < buffer.bytes())
      buffer.data[offset + bytes] ^= 0x5A;
    else if (offset > 0)
      buffer.data[offset - 1] ^= 0x5A;
  }
}

}  // namespace

Result<std::unique_ptr<Device>> open_fake(const std::string& path) {
  PURLIN_ASSIGN(const std::string text, read_file(path, std::size_t{1} << 20));
  auto json = Json::parse(text);
  if (!json.is_ok()) return json.status().with_context(path);
  const auto script = std::make_shared<Script>();
  if (const Status status = script->read(*json); !status.is_ok()) return status.with_context(path);

  FakeBehaviour behaviour;
  behaviour.noise = (*json)["noise"].as_double(json->find("noise") == nullptr ? 0 : -1);
  if (!(behaviour.noise >= 0))
    return error(Code::kInvalid, "{}: 'noise' must be a number from 0", path);
  behaviour.seed = static_cast<std::uint64_t>((*json)["seed"].as_int(1));
  behaviour.compile = [script](const CompileRequest& request) { return compile(*script, request); };
  behaviour.compile_s = [script](const Config& config) {
    return Script::number(script->compile_s, config, 0).value_or(0);
  };
  behaviour.launch = [script](const FakeKernel& kernel, const Launch& launched) {
    return launch(*script, kernel, launched.shape);
  };
  behaviour.write = [script](const FakeKernel& kernel, const Launch&, FakeBuffer& buffer,
                             std::size_t offset, std::size_t bytes) {
    write_output(*script, kernel, buffer, offset, bytes);
  };
  if (!script->power_w.empty())
    behaviour.power_w = [script](const FakeKernel& kernel) {
      return Script::number(script->power_w, kernel.config, 1).value_or(1);
    };
  if (!script->counters.empty() || !script->no_counters.empty())
    behaviour.count = [script](const FakeKernel& kernel,
                               const Launch&) -> Result<std::map<std::string, double>> {
      if (!script->no_counters.empty()) return Status(Code::kUnavailable, script->no_counters);
      std::map<std::string, double> counters;
      for (const auto& [name, expression] : script->counters) {
        PURLIN_ASSIGN(counters[name], Script::number(expression, kernel.config, 0));
      }
      return counters;
    };
  behaviour.time_ms = [script](const FakeKernel& kernel, const LaunchShape& shape) {
    if (is_reference(kernel.entry)) return 1.0;
    return Script::number(script->time_ms, kernel.config, 1, shape.blocks()).value_or(1);
  };
  auto device = std::make_unique<FakeDevice>(std::move(behaviour));
  // The script's facts over the defaults.
  Json facts = to_json(device->info());
  facts.set("id", "fake:" + path);
  for (const auto& [key, value] : (*json)["device"].members()) facts.set(key, value);
  device->mutable_info() = device_from_json(facts);
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace purlin::gpu
