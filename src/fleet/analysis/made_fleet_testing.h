// SPDX-License-Identifier: Apache-2.0
// MadeFleet: cells of a made-up fleet for tests and benchmarks, with planted truths. Deterministic.
#pragma once

#include "base/random.h"
#include "fleet/analysis/cells.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace purlin::fleet::analysis {

struct MadeShape {
  std::string shape;
  double ns = 100'000;
  int launches = 40;  // of a step on a node
};
struct MadeFleet {
  std::string kernel = "gemm_kernel", gpu = "H100";
  std::vector<MadeShape> shapes = {{"M=1024", 100'000, 40}, {"M=4096", 700'000, 40}};
  int nodes = 24, steps = 28;
  std::int64_t step_ns = 6 * kHourNs;
  double chip = 0.02, process = 0.005, within = 0.01;  // standard deviations
  int steps_of_process = 4;                            // then the next process starts
  std::uint64_t seed = 1;
  // Factor of a duration, launches of a shape, and environment by node and step.
  std::function<double(int node, int step)> factor = [](int, int) { return 1.0; };
  std::function<int(const MadeShape&, int node, int step)> launches =
      [](const MadeShape& shape, int, int) { return shape.launches; };
  std::function<void(Cell*, int node, int step)> dress = [](Cell*, int, int) {};
};

inline std::vector<Cell> make_cells(const MadeFleet& fleet) {
  Random random(fleet.seed);
  std::vector<Cell> cells;
  for (int node = 0; node < fleet.nodes; ++node) {
    const double chip = std::exp(fleet.chip * random.normal());
    double process = 1;
    for (int step = 0; step < fleet.steps; ++step) {
      if (step % fleet.steps_of_process == 0) process = std::exp(fleet.process * random.normal());
      for (const MadeShape& shape : fleet.shapes) {
        Cell cell;
        cell.kernel = fleet.kernel, cell.gpu = fleet.gpu;
        cell.shape = shape.shape, cell.dtype = "bf16";
        cell.build = "v1", cell.driver = "570", cell.runtime = "12.8";
        cell.node = "node" + std::to_string(node), cell.device = "GPU-" + std::to_string(node);
        cell.begin_ns = 1'700'006'400'000'000'000 + step * fleet.step_ns;
        const int launches = fleet.launches(shape, node, step);
        for (int i = 0; i < launches; ++i)
          cell.time.add(shape.ns * chip * process * fleet.factor(node, step) *
                        std::exp(fleet.within * random.normal()));
        fleet.dress(&cell, node, step);
        if (launches > 0) cells.push_back(std::move(cell));
      }
    }
  }
  return cells;
}

}  // namespace purlin::fleet::analysis
