// SPDX-License-Identifier: Apache-2.0
// Calls that a stream capture took: between BeginCapture and EndCapture a launch becomes a node of
// a graph. It runs no kernel, so none is missing. Shared by the importers. Pure functions.
#pragma once

#include "model/profile/profile.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace purlin::profile {

enum class CaptureEdge : std::uint8_t { kNone, kBegin, kEnd };
// "cudaStreamBeginCapture", "hipStreamEndCapture", "cuStreamBeginCaptureToGraph_ptsz".
CaptureEdge capture_edge(std::string_view call);

struct CaptureCall {
  std::uint32_t process = 0;
  CaptureEdge edge = CaptureEdge::kNone;
};
// For calls in the order of time: whether each lies inside a capture of its process. A capture
// whose begin or end was not recorded reaches to that end of the recording.
std::vector<bool> inside_captures(std::size_t calls,
                                  const std::function<CaptureCall(std::size_t)>& call_at);

// Launches and memcpys of a sorted timeline that a capture took, and that have no work on a device,
// become other calls. Returned is the number of the launches.
std::size_t set_captured_apart(Timeline& timeline);
CoverageNote captured_note(std::size_t launches);

}  // namespace purlin::profile
