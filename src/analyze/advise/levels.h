// SPDX-License-Identifier: Apache-2.0
// Levels: where the time of a unit is lost, as shares that add up to 1, and at which level an
// intervention acts. Definitions: docs/guide/advise.md, "The levels". Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace purlin::analyze {

enum class LossLevel {
  kScheduling,     // the device idles
  kDataMovement,   // copies that no kernel hides
  kCommunication,  // collectives that no computation hides
  kRestructure,    // kernels near their roofs: do less work, move less data
  kTune,           // the distance of kernels to their targets
  kHardware,       // kernels at their targets, and no change known that needs less of them
  kUnknown,        // kernels whose roof is not known
};
inline constexpr std::size_t kLossLevels = 7;
std::string_view to_text(LossLevel level);  // "data_movement"
using LevelShares = std::array<double, kLossLevels>;

}  // namespace purlin::analyze
