// SPDX-License-Identifier: Apache-2.0
#include "model/spec/names.h"

#include "model/spec/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {
namespace {

using namespace spec_nodes;

constexpr const char* kDeviceFacts[] = {"device_max_threads", "device_shared_memory",
                                        "device_units", "device_warp_size", "device_is_cpu"};

class NameCheck {
 public:
  explicit NameCheck(const KernelSpec& spec) : spec_(spec) {
    for (const auto& [name, extent] : spec.problem.items()) dimensions_.push_back(name);
    for (const Parameter& parameter : spec.parameters) parameters_.push_back(parameter.name);
  }

  // Every expression uses only what has a value where it is evaluated.
  Status check_all() const {
    constexpr const char* kRunsOnce = "the reference runs once, without a config";
    constexpr const char* kSameForAll =
        "buffers other than scratch are the same for all configs; use its largest";
    for (const SpecExpression& constraint : spec_.constraints) PURLIN_TRY(check(constraint, true));
    const std::vector<std::string> compiled = limit_facts();
    for (const SpecExpression& limit : spec_.limits) {
      PURLIN_TRY(check(limit, true, "", compiled));
      for (const std::string& fact : compiled)
        if (spec_.problem.find(fact) != nullptr ||
            std::find(parameters_.begin(), parameters_.end(), fact) != parameters_.end())
          return error(
              Code::kInvalid,
              "{}: in limits '{}' is what compiling or measuring tells; rename the {} '{}'",
              limit.where, fact, spec_.problem.find(fact) != nullptr ? "dimension" : "parameter",
              fact);
    }
    PURLIN_TRY(check(spec_.launch, true, ""));
    PURLIN_TRY(check(spec_.reference.launch, false, kRunsOnce));
    for (const Argument& argument : spec_.arguments) {
      // Scratch holds nothing between configs, so each may have its own (the parts of a split sum).
      const bool own = argument.role == Argument::Role::kScratch;
      for (const SpecExpression& extent : argument.shape)
        PURLIN_TRY(check(extent, own, kSameForAll));
      if (argument.tensor_map) {
        for (const SpecExpression& extent : argument.tensor_map->box)
          PURLIN_TRY(check(extent, true));
        PURLIN_TRY(check(argument.tensor_map->swizzle, true));
      }
      if (argument.role == Argument::Role::kScalar)
        PURLIN_TRY(check(argument.value,
                         spec_.reference.is_default_config || !in_reference(spec_, argument),
                         kRunsOnce));
    }
    if (spec_.flops) PURLIN_TRY(check(*spec_.flops, true));
    if (spec_.bytes) PURLIN_TRY(check(*spec_.bytes, true));
    return Status::ok();
  }

 private:
  Status check(const SpecExpression& expression, bool with_parameters,
               std::string_view why_not = "", const std::vector<std::string>& further = {}) const {
    std::vector<std::string> known = dimensions_;
    known.insert(known.end(), further.begin(), further.end());
    if (with_parameters) known.insert(known.end(), parameters_.begin(), parameters_.end());
    known.insert(known.end(), std::begin(kDeviceFacts), std::end(kDeviceFacts));
    for (const std::string& name : expression.expression.names()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const bool parameter =
          std::find(parameters_.begin(), parameters_.end(), name) != parameters_.end();
      return error(Code::kInvalid, "{}: {} '{}' in '{}'{}", expression.where,
                   parameter ? "no use of parameter" : "unknown name", name,
                   expression.expression.text(),
                   parameter ? fmt::format(": {}", why_not) : suggestion(name, known));
    }
    return Status::ok();
  }

  Status check(const LaunchSpec& launch, bool with_parameters, std::string_view why_not) const {
    for (const SpecExpression& extent : launch.grid)
      PURLIN_TRY(check(extent, with_parameters, why_not));
    for (const SpecExpression& extent : launch.block)
      PURLIN_TRY(check(extent, with_parameters, why_not));
    if (!launch.dynamic_shared_bytes) return Status::ok();
    return check(*launch.dynamic_shared_bytes, with_parameters, why_not);
  }

  const KernelSpec& spec_;
  std::vector<std::string> dimensions_, parameters_;
};

}  // namespace

Status check_names(const KernelSpec& spec) { return NameCheck(spec).check_all(); }

bool in_reference(const KernelSpec& spec, const Argument& argument) {
  const auto& names = spec.reference.arguments;
  return std::find(names.begin(), names.end(), argument.name) != names.end();
}

}  // namespace purlin
