// SPDX-License-Identifier: Apache-2.0
// Levels: where the time of a unit is lost, as shares that add up to 1, and at which level an
// intervention acts. Definitions: docs/guide/advise.md, "The levels". Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace purlin::analyze {

struct Advice;
struct Facts;
struct Intervention;
struct KernelStat;

enum class LossLevel {
  kScheduling,     // The device idles, or waits in a collective for the last rank.
  kDataMovement,   // Copies that no kernel hides.
  kCommunication,  // Collectives that no computation hides.
  kRestructure,    // Kernels near their roofs: do less work, move less data.
  kTune,           // The distance of kernels to their targets.
  kHardware,       // Kernels at their targets, and no change known that needs less of them.
  kUnknown,        // Kernels whose roof is not known.
};
inline constexpr std::size_t kLossLevels = 7;
inline constexpr double kWorthIt = 0.05;    // of the unit: a change that decides on the level
std::string_view to_text(LossLevel level);  // "data_movement"
using LevelShares = std::array<double, kLossLevels>;

// The change that comes before the tuning of a kernel: it restructures the work, names the kernel,
// and saves at least half of the way of all its kernels to their targets. Of a kernel that only
// moves data, any such change does. nullptr without one, or where a change that tunes the kernel is
// ranked before.
const Intervention* instead_of_tuning(const Facts& facts, const Advice& advice,
                                      const KernelStat& kernel);

// Of one unit. The advice has its interventions.
LevelShares measure_levels(const Facts& facts, const Advice& advice);

}  // namespace purlin::analyze
