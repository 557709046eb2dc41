// SPDX-License-Identifier: Apache-2.0
// Limits of a config, in addition to the spec's constraints: the device's limits on its launch,
// known before compilation, and the spec's limits on registers and the like, known after it.
#include "base/text.h"
#include "model/device/occupancy.h"
#include "model/spec/spec.h"

#include <algorithm>
#include <array>

namespace purlin {
namespace {

void add(std::vector<SpecExpression>& out, const std::string& text, const std::string& where,
         std::string_view what) {
  const Result<Expression> parsed = Expression::parse(text);
  // Too long to be one expression: the config is refused when it is resolved, as any other.
  if (parsed.is_ok()) out.push_back({*parsed, where, fmt::format("{}: {}", what, text)});
}

void add_sides(std::vector<SpecExpression>& out, const std::vector<SpecExpression>& sides,
               const std::array<std::int64_t, 3>& limits, std::string_view what) {
  for (std::size_t i = 0; i < std::min<std::size_t>(sides.size(), 3); ++i) {
    const std::string upper = limits[i] > 0 ? fmt::format(" <= {}", limits[i]) : "";
    add(out, fmt::format("1 <= {}{}", sides[i].expression.enclosed(), upper), sides[i].where,
        fmt::format("device limit of {}.{}", what, "xyz"[i]));
  }
}

constexpr const char* kRegisters = "registers";
constexpr const char* kOccupancy = "occupancy";

}  // namespace

std::vector<SpecExpression> launch_limits(const LaunchSpec& launch, const DeviceInfo& device) {
  std::vector<SpecExpression> out;
  add_sides(out, launch.block, device.max_block, "block");
  if (device.max_threads_per_block > 0 && !launch.block.empty()) {
    std::string threads;
    for (const SpecExpression& side : launch.block)
      threads += (threads.empty() ? "" : " * ") + side.expression.enclosed();
    add(out, fmt::format("{} <= {}", threads, device.max_threads_per_block),
        launch.block.front().where, "device limit of threads per block");
  }
  add_sides(out, launch.grid, device.max_grid, "grid");
  if (launch.dynamic_shared_bytes && device.shared_memory_per_block > 0)
    add(out,
        fmt::format("0 <= {} <= {}", launch.dynamic_shared_bytes->expression.enclosed(),
                    device.shared_memory_per_block),
        launch.dynamic_shared_bytes->where, "device limit of shared memory");
  return out;
}

Status check_limits(const std::vector<SpecExpression>& limits, const KernelSpec& spec,
                    const ProblemShape& problem, const Evaluation& evaluation,
                    const DeviceInfo& device) {
  if (limits.empty()) return Status::ok();
  Scope scope = config_scope(spec, problem, evaluation.config, device);
  scope.set("shared_bytes", evaluation.shared_bytes);
  scope.set("local_bytes", evaluation.local_bytes);
  scope.set("spills", evaluation.local_bytes);
  if (evaluation.registers > 0) {
    scope.set(kRegisters, std::int64_t{evaluation.registers});
    PURLIN_ASSIGN(LaunchShape launch, resolve_launch(spec.launch, scope, device));
    const std::int64_t fixed = evaluation.shared_bytes - launch.dynamic_shared_bytes;
    if (const auto sm = sm_limits(device.arch)) {
      const auto occupancy = occupancy_of(launch, evaluation.registers, fixed, *sm);
      scope.set(kOccupancy, occupancy ? occupancy->theoretical : 0.0);
    }
  }
  if (evaluation.time_ms > 0) scope.set("time_ms", evaluation.time_ms);
  if (evaluation.energy_mj > 0) scope.set("energy_mj", evaluation.energy_mj);
  if (evaluation.power_w > 0) scope.set("power_w", evaluation.power_w);
  for (const SpecExpression& limit : limits) {
    std::string facts;
    bool known = true;
    for (const std::string& name : limit.expression.names()) {
      const Value* value = scope.find(name);
      known &= value != nullptr;
      if (value != nullptr)
        facts += fmt::format("{}{}={}", facts.empty() ? "" : " ", name, to_text(*value));
    }
    if (!known) continue;
    const Result<bool> met = limit.expression.evaluate_bool(scope.lookup());
    if (!met.is_ok())
      return met.status().with_context(
          fmt::format("{}: limit '{}' ({})", limit.where, limit.text(), facts));
    if (!*met) return error(Code::kInvalid, "limit '{}' is not met ({})", limit.text(), facts);
  }
  return Status::ok();
}

std::vector<std::string> limit_facts() {
  return {kRegisters, "spills",  "local_bytes", "shared_bytes",
          kOccupancy, "time_ms", "energy_mj",   "power_w"};
}

Result<SpecExpression> parse_limit(const KernelSpec& spec, std::string_view text) {
  Result<Expression> parsed = Expression::parse(text);
  if (!parsed.is_ok())
    return error(Code::kInvalid, "limit '{}': {}", text, parsed.status().message());
  const Scope scope = config_scope(spec, spec.problem, Config{}, DeviceInfo{});
  const std::vector<std::string> facts = limit_facts();
  std::vector<std::string> known = facts;
  for (const Parameter& parameter : spec.parameters) known.push_back(parameter.name);
  for (const std::string& name : parsed->names())
    if (scope.find(name) == nullptr && std::find(known.begin(), known.end(), name) == known.end())
      return error(Code::kInvalid,
                   "limit '{}': there is no '{}'; limits know {}, parameters and dimensions", text,
                   name, join(facts, ", "));
  return SpecExpression{*std::move(parsed), "--limit"};
}

bool needs_energy(const std::vector<SpecExpression>& limits) {
  return std::any_of(limits.begin(), limits.end(), [](const SpecExpression& limit) {
    const auto& names = limit.expression.names();
    return std::find(names.begin(), names.end(), "energy_mj") != names.end() ||
           std::find(names.begin(), names.end(), "power_w") != names.end();
  });
}

Status check_compiled(const KernelSpec& spec, const ProblemShape& problem,
                      const Evaluation& evaluation, const DeviceInfo& device) {
  return check_limits(spec.limits, spec, problem, evaluation, device);
}

Status check_compiled(const KernelSpec& spec, const Evaluation& evaluation,
                      const DeviceInfo& device) {
  return check_compiled(spec, spec.problem, evaluation, device);
}

}  // namespace purlin
