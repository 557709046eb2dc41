// SPDX-License-Identifier: Apache-2.0
// The overhead of CUPTI 13.0, as measured on an H200 host (driver 580, 22 Nov 2026, ratios of
// in-process pairs; bench/gpu/capture_overhead.py measures the whole of it). The overhead
// controller plans with these constants, and the coverage block's overhead is computed from them.
// They are rounded up. They cannot be measured in the program itself. Its launch rate changes by
// more than this overhead within seconds, and without callbacks its launches are not counted while
// recording is off.
//
// A kind that is enabled when the program already has a context slows every later launch by half a
// microsecond, also after it is disabled. No duty cycle is short enough to avoid that, so a
// launch-bound program has no windows. A kind that was enabled before the context leaves a tenth of
// a microsecond.
#pragma once

#include <algorithm>

namespace purlin::profile::capture {

struct CostModel {
  // Of a launch into a stream, while it is recorded: 1.1 us for a bare launch, 2.0 us for a launch
  // of a PyTorch training step, whose other calls become slower too.
  double launch_ns = 2200;
  // Of a node of a graph, while it is recorded: 0.4 us where the host waits for the device, 1.4 to
  // 2.2 of one whose nodes take 2.6 us.
  double node_ns = 2000;
  double waits_launch_ns = 4300;      // Added to a launch while the host's waits are recorded.
  double lasting_launch_ns = 500;     // Of any launch after a second window was opened.
  double copies_launch_ns = 500;      // Of any launch with memcpy and memset on and kernels off.
  double lasting_node_ns = 35;        // Of any node of a graph, likewise.
  double instrumented_node_ns = 250;  // Of a node of a graph that was made in the first window.
  // Of any launch, with CUPTI in the process: of whole programs 170 to 220, of a loop of empty ones
  // in C 75.
  double initialised_launch_ns = 220;
  // Of any node of a graph, likewise. Nodes that follow one another slowly are the GPU's to wait
  // for; from some 300,000 a second on the host is what is waited for.
  double initialised_node_ns = 40, initialised_tiny_node_ns = 180;
  double slow_nodes_per_s = 240'000, fast_nodes_per_s = 340'000;

  // The share of the program's time that CUPTI takes by being there. `launches`, `nodes`: per ns,
  // of a program that is recorded; it is faster when it is not. `lasting`: tier 0 was opened again.
  double presence(double launches, double nodes, bool lasting) const {
    constexpr double kMaxSlowed = 1.0 / 3;  // of its speed, while it is recorded
    const double slowed = std::min(kMaxSlowed, launches * launch_ns + nodes * node_ns);
    launches /= 1 - slowed;
    nodes /= 1 - slowed;
    const double tiny = std::clamp(
        (nodes * 1e9 - slow_nodes_per_s) / (fast_nodes_per_s - slow_nodes_per_s), 0.0, 1.0);
    const double each_ns =
        initialised_node_ns + tiny * (initialised_tiny_node_ns - initialised_node_ns);
    return launches * (initialised_launch_ns + (lasting ? lasting_launch_ns : 0)) +
           nodes * (each_ns + (lasting ? lasting_node_ns : 0));
  }
};

}  // namespace purlin::profile::capture
