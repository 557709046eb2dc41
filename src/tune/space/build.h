// SPDX-License-Identifier: Apache-2.0
// build_space: finds and counts the valid configs, pruning while building.
//
// Parameters that no constraint ties together are independent; those that are tied become a
// decision diagram (diagram.h). The result is the same as checking every config of the Cartesian
// product: a config is out when any constraint is false for it. Where none is false and one cannot
// be evaluated (a division by zero), building fails; so the order of constraints never matters.
//
// If a diagram would exceed the limits, the constraint that widens it most is left out of it. That
// constraint is evaluated for each config instead. The space is then larger, some of its indices
// are not valid (Space::is_exact() is false), and its size is an estimate.
#pragma once

#include "base/status.h"
#include "model/spec/spec.h"
#include "tune/space/space.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace purlin::tune {

struct SpaceLimits {
  std::size_t max_bytes = std::size_t{96} << 20;  // of a diagram while it is built
  std::uint64_t max_steps = 400'000'000;          // values tried
};

// Given the share of the work done, in [0, 1], now and then; false stops with kCancelled.
using SpaceProgress = std::function<bool(double share)>;

// `constants` names the values that constraints may use in addition to parameters: problem
// dimensions and the facts of the device. kInvalid: a constraint that cannot be evaluated, or none
// satisfied (the one that removed the most is named), or more than 2^62 valid configs.
Result<Space> build_space(const std::vector<Parameter>& parameters,
                          const std::vector<SpecExpression>& constraints, const Scope& constants,
                          const SpaceLimits& limits = {}, const SpaceProgress& progress = {});

// The space of a spec on a device for a problem shape.
Result<Space> build_space(const KernelSpec& spec, const ProblemShape& problem,
                          const DeviceInfo& device, const SpaceLimits& limits = {},
                          const SpaceProgress& progress = {});

// The space of exactly these configs, as a recording has them; a repeated one counts once. kInvalid
// for a config that does not assign a known value to every parameter.
Result<Space> list_space(const std::vector<Parameter>& parameters,
                         const std::vector<Config>& configs);
// The same of places of values, for each config one of every parameter. REQUIRES: they exist.
Result<Space> list_space(const std::vector<Parameter>& parameters, std::vector<std::uint16_t> rows);

}  // namespace purlin::tune
