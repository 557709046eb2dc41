// SPDX-License-Identifier: Apache-2.0
// build_space: finds the valid configs, pruning while building.
//
// A constraint is checked as soon as its last parameter is bound; parameters are bound in the order
// that lets constraints decide early; what a constraint says for a combination of its own
// parameters is remembered as a bit mask. The result is the same as checking every config of the
// Cartesian product: a config is out when any constraint is false for it. Where none is false and
// one cannot be evaluated (a division by zero), building fails; so the order of constraints never
// matters.
#pragma once

#include "base/status.h"
#include "model/spec.h"
#include "tune/space/space.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace purlin::tune {

struct SpaceLimits {
  std::size_t max_listed = 50'000'000;  // valid assignments of parameters tied by constraints
  std::uint64_t max_steps = 20'000'000'000;
};

// Given the share of the work done, in [0, 1], now and then; false stops with kCancelled.
using SpaceProgress = std::function<bool(double share)>;

// `constants` names what constraints may use besides parameters: problem dimensions and the facts
// of the device. kInvalid: a constraint that cannot be evaluated, or none satisfied (the one that
// removed the most is named), or a space past the limits (what ties it together is named).
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

}  // namespace purlin::tune
