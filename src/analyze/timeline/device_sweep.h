// SPDX-License-Identifier: Apache-2.0
// Device sweep: one pass over a device's activities, in order of their start, that tells for each
// moment which classes of work were under way. Streams do not matter to it. Constant memory.
#pragma once

#include "analyze/timeline/intervals.h"
#include "model/profile/profile.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace purlin::analyze {

// Bits of a mask.
enum WorkKind : unsigned { kCompute = 1, kCommunicating = 2, kCopying = 4, kSetting = 8 };
inline constexpr unsigned kAnyKernel = kCompute | kCommunicating;
inline constexpr unsigned kAnyCopy = kCopying | kSetting;
inline constexpr std::size_t kMasks = 16;

// A device's part of Timeline::activities.
struct DeviceWork {
  int device = 0;
  std::size_t first = 0, last = 0;  // indices, half-open
};
std::vector<DeviceWork> split_by_device(const Timeline& timeline);

// Which rows of Profile::kernels are communication, by name.
std::vector<bool> communication_rows(const Profile& profile);
unsigned work_of(const Activity& activity, const std::vector<bool>& communication);

struct Segment {
  Interval interval;
  unsigned mask = 0;              // of WorkKind; 0 = idle
  std::size_t before = kNowhere;  // index of the activity that ended last
  std::size_t next = kNowhere;    // of the one that begins at the segment's end, if that ends it
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
};

// Segments are in order and cover the window; neighbours may have the same mask.
void sweep_device(const Timeline& timeline, const DeviceWork& work,
                  const std::vector<bool>& communication, Interval window,
                  const std::function<void(const Segment&)>& segment);

}  // namespace purlin::analyze
