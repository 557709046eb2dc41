// SPDX-License-Identifier: Apache-2.0
// What a loaded spec says about one config, problem shape and device.
#include "base/hash.h"
#include "base/text.h"
#include "model/spec/spec.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <vector>

namespace purlin {
namespace {

constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();

std::string shape_names(const ProblemShape& shape) {
  std::vector<std::string> names;
  for (const auto& [name, extent] : shape.items()) names.push_back(name);
  return join(names, ", ");
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return fmt::format("; did you mean '{}'?", near);
  return candidates.empty() ? "" : "; there are " + join(candidates, ", ");
}

// "BM=16 TM=32": the names an expression uses, with their values.
std::string values_used(const Expression& expression, const Scope& scope) {
  std::string out;
  for (const std::string& name : expression.names()) {
    const Value* value = scope.find(name);
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name,
                       value != nullptr ? to_text(*value) : "?");
  }
  return out;
}

// A dimension's extents, 1 for those left out. `limits` of 0 are not known.
Result<Dim3> resolve_dims(const std::vector<SpecExpression>& expressions, const Scope& scope,
                          const std::array<std::int64_t, 3>& limits, std::string_view what) {
  Dim3 dims = {1, 1, 1};
  for (std::size_t i = 0; i < std::min(dims.size(), expressions.size()); ++i) {
    const Expression& expression = expressions[i].expression;
    const std::string& where = expressions[i].where;
    const char axis = "xyz"[i];
    const Result<std::int64_t> extent = expression.evaluate_int(scope.lookup());
    if (!extent.is_ok())
      return extent.status().with_context(fmt::format("{}: {}.{}", where, what, axis));
    const auto refuse = [&](std::string_view why) {
      return error(Code::kInvalid, "{}: {}.{} = {} = {} {} ({})", where, what, axis,
                   expression.text(), *extent, why, values_used(expression, scope));
    };
    if (*extent < 1) return refuse("is not positive");
    const std::int64_t limit = limits[i] > 0 ? std::min(limits[i], kMaxExtent) : kMaxExtent;
    if (*extent > limit) return refuse(fmt::format("is above the device's limit of {}", limit));
    dims[i] = static_cast<std::uint32_t>(*extent);
  }
  return dims;
}

void add_launch(FieldHasher& hasher, const LaunchSpec& launch) {
  for (const SpecExpression& extent : launch.grid) hasher.add(extent.expression.text());
  hasher.add("/");
  for (const SpecExpression& extent : launch.block) hasher.add(extent.expression.text());
  hasher.add("/");
  if (launch.dynamic_shared_bytes) hasher.add(launch.dynamic_shared_bytes->expression.text());
}

// The nearest first, by their places in the spec.
std::vector<Value> by_distance(const Parameter& parameter, const Value& from) {
  std::vector<Value> out = parameter.values;
  const auto place_of = [&](const Value& value) {
    return std::find(parameter.values.begin(), parameter.values.end(), value) -
           parameter.values.begin();
  };
  const std::ptrdiff_t origin = place_of(from);
  std::stable_sort(out.begin(), out.end(), [&](const Value& a, const Value& b) {
    return std::abs(place_of(a) - origin) < std::abs(place_of(b) - origin);
  });
  return out;
}

}  // namespace

Config default_config(const KernelSpec& spec) {
  Config config;
  for (const Parameter& parameter : spec.parameters)
    config.set(parameter.name, parameter.preset.value_or(parameter.values.front()));
  return config;
}

Config default_config(const KernelSpec& spec, const ProblemShape& problem,
                      const DeviceInfo& device) {
  constexpr int kMostChecked = 10'000;
  const Config declared = default_config(spec);
  int checked = 0;
  const auto works = [&](const Config& config) {
    if (++checked > kMostChecked) return false;
    const Scope scope = config_scope(spec, problem, config, device);
    return check_constraints(spec, scope).is_ok() &&
           (spec.launch.grid.empty() || resolve_launch(spec.launch, scope, device).is_ok());
  };
  if (works(declared)) return declared;
  std::vector<std::vector<Value>> nearest;  // values of each parameter
  for (const Parameter& parameter : spec.parameters)
    nearest.push_back(by_distance(parameter, *declared.find(parameter.name)));
  for (std::size_t i = 0; i < nearest.size(); ++i)
    for (const Value& value : nearest[i]) {
      Config changed = declared;
      changed.set(spec.parameters[i].name, value);
      if (works(changed)) return changed;
    }
  for (std::size_t i = 0; i < nearest.size(); ++i)
    for (std::size_t j = i + 1; j < nearest.size(); ++j)
      for (const Value& first : nearest[i])
        for (const Value& second : nearest[j]) {
          Config changed = declared;
          changed.set(spec.parameters[i].name, first);
          changed.set(spec.parameters[j].name, second);
          if (works(changed)) return changed;
          if (checked > kMostChecked) return declared;
        }
  return declared;
}

Result<ProblemShape> resolve_shape(const KernelSpec& spec, std::string_view text) {
  text = trim(text);
  if (text.empty()) return spec.problem;
  if (text.find('=') == std::string_view::npos) {
    const auto preset = spec.presets.find(std::string(text));
    if (preset != spec.presets.end()) return preset->second;
    std::vector<std::string> names;
    for (const auto& [name, shape] : spec.presets) names.push_back(name);
    return error(Code::kInvalid, "'{}' is neither a preset of {} nor a shape such as {}{}", text,
                 spec.name, spec.problem.text(), did_you_mean(text, names));
  }
  PURLIN_ASSIGN(const ProblemShape given, parse_shape(text));
  ProblemShape shape = spec.problem;
  for (const auto& [name, extent] : given.items()) {
    if (spec.problem.find(name) == nullptr)
      return error(Code::kInvalid, "{} has no problem dimension '{}'; it has {}", spec.name, name,
                   shape_names(spec.problem));
    shape.set(name, extent);
  }
  return shape;
}

Scope config_scope(const KernelSpec&, const ProblemShape& problem, const Config& config,
                   const DeviceInfo& device) {
  const auto known_or = [](std::int64_t value, std::int64_t fallback) {
    return value > 0 ? value : fallback;
  };
  Scope scope;
  scope.add(config);
  scope.add(problem);
  scope.set("device_max_threads", known_or(device.max_threads_per_block, kMaxExtent));
  scope.set("device_shared_memory", known_or(device.shared_memory_per_block, kMaxExtent));
  scope.set("device_units", known_or(device.compute_units, 1));
  scope.set("device_warp_size", known_or(device.warp_size, 1));
  scope.set("device_is_cpu", device.kind == "cpu");
  return scope;
}

Status check_constraints(const KernelSpec& spec, const Scope& scope) {
  const Expression::Lookup lookup = scope.lookup();
  for (const auto& [constraint, where, label] : spec.constraints) {
    const Result<bool> met = constraint.evaluate_bool(lookup);
    if (!met.is_ok())
      return error(Code::kInvalid, "{}: constraint '{}' ({}): {}", where, constraint.text(),
                   values_used(constraint, scope), met.status().message());
    if (!*met)
      return error(Code::kInvalid, "constraint '{}' is not met ({})",
                   label.empty() ? constraint.text() : label, values_used(constraint, scope));
  }
  return Status::ok();
}

Result<LaunchShape> resolve_launch(const LaunchSpec& launch, const Scope& scope,
                                   const DeviceInfo& device) {
  LaunchShape shape;
  PURLIN_ASSIGN(shape.grid, resolve_dims(launch.grid, scope, device.max_grid, "grid"));
  PURLIN_ASSIGN(shape.block, resolve_dims(launch.block, scope, device.max_block, "block"));
  const auto threads = static_cast<std::int64_t>(
      std::min<std::uint64_t>(shape.threads_per_block(), std::numeric_limits<int>::max()));
  if (device.max_threads_per_block > 0 && threads > device.max_threads_per_block)
    return error(Code::kInvalid, "block {}x{}x{} has {} threads; the device's limit is {}",
                 shape.block[0], shape.block[1], shape.block[2], threads,
                 device.max_threads_per_block);
  if (!launch.dynamic_shared_bytes) return shape;
  const auto& [expression, where, label] = *launch.dynamic_shared_bytes;
  const Result<std::int64_t> bytes = expression.evaluate_int(scope.lookup());
  if (!bytes.is_ok()) return bytes.status().with_context(where + ": shared_memory");
  const std::int64_t limit =
      device.shared_memory_per_block > 0 ? device.shared_memory_per_block : kMaxExtent;
  if (*bytes < 0 || *bytes > limit)
    return error(Code::kInvalid,
                 "{}: shared_memory = {} = {} bytes; the device allows 0 to {} ({})", where,
                 expression.text(), *bytes, limit, values_used(expression, scope));
  shape.dynamic_shared_bytes = static_cast<std::uint32_t>(*bytes);
  return shape;
}

std::string KernelSpec::source_hash(std::string_view language) const {
  FieldHasher hasher;
  hasher.add("purlin.source/1").add(language).add(entry);
  if (command) hasher.add("command").add(command->identity());
  if (const auto source = sources.find(std::string(language)); source != sources.end()) {
    hasher.add(source->second.text);
    for (const std::string& option : source->second.options) hasher.add(option);
    if (!source->second.compiler.empty()) hasher.add("compiler").add(source->second.compiler);
    for (const std::string& arch : source->second.archs) hasher.add("arch").add(arch);
    if (!source->second.headers_hash.empty())
      hasher.add("headers").add(source->second.headers_hash);
  }
  for (const Argument& argument : arguments) {
    hasher.add("argument").add(argument.name).add(name_of(argument.dtype));
    hasher.add(std::to_string(static_cast<int>(argument.role)));
    for (const SpecExpression& extent : argument.shape) hasher.add(extent.expression.text());
    hasher.add(argument.value.expression.text());
    if (!argument.tensor_map) continue;
    hasher.add("tensor_map").add(argument.tensor_map->swizzle.expression.text());
    for (const SpecExpression& extent : argument.tensor_map->box)
      hasher.add(extent.expression.text());
  }
  hasher.add("launch");
  add_launch(hasher, launch);
  if (rotate_inputs) hasher.add("rotate");  // the winner is of another question
  return hasher.hex();
}

std::string KernelSpec::dtype_text() const {
  std::vector<std::string> names;
  const auto add = [&](bool outputs) {
    for (const Argument& argument : arguments) {
      const bool output =
          argument.role == Argument::Role::kOutput || argument.role == Argument::Role::kInOut;
      if (outputs ? !output : argument.role != Argument::Role::kInput) continue;
      const std::string dtype(name_of(argument.dtype));
      if (std::find(names.begin(), names.end(), dtype) == names.end()) names.push_back(dtype);
    }
  };
  add(true);
  add(false);
  return join(names, ",");
}

std::string KernelSpec::layout_text() const {
  std::string text;
  for (const Argument& argument : arguments) {
    if (argument.role == Argument::Role::kScalar || argument.role == Argument::Role::kScratch)
      continue;
    if (argument.layout.empty() && argument.shape.size() < 2) continue;
    // A library's operand that is transposed is stored as its transpose, row by row.
    const bool transposed = library && ((argument.name == "A" && library->transpose_a) ||
                                        (argument.name == "B" && library->transpose_b));
    const std::string word =
        argument.layout.empty() ? transposed ? "column" : "row" : argument.layout;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", argument.name, word);
  }
  return text.empty() ? "flat" : text;
}

}  // namespace purlin
