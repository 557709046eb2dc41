// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: four published search spaces (AutoTuningAssociation/benchmark_hub, T1
// files, MIT licence, DOI 10.5281/zenodo.15364124) with the number of their valid configs. Aborts
// on a mistake in its own text; included by no product code.
#pragma once

#include "model/spec/spec.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::tune {

struct PublishedSpace {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<SpecExpression> constraints;
  double cartesian = 1;
  std::size_t valid = 0;

  PublishedSpace& knob(std::string parameter, const std::vector<std::int64_t>& values) {
    parameters.push_back({std::move(parameter), {values.begin(), values.end()}, {}});
    cartesian *= static_cast<double>(values.size());
    return *this;
  }
  PublishedSpace& rule(std::string_view text) {
    constraints.push_back(
        {Expression::parse(text).value(), name + ":" + std::to_string(constraints.size() + 1)});
    return *this;
  }
};

inline std::vector<std::int64_t> steps(std::int64_t first, std::int64_t last, std::int64_t step) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = first; value <= last; value += step) values.push_back(value);
  return values;
}

inline PublishedSpace convolution_space() {
  PublishedSpace space{"convolution"};
  space.valid = 4362;
  return space.knob("block_size_x", steps(16, 256, 16))
      .knob("block_size_y", {1, 2, 4, 8, 16})
      .knob("tile_size_x", {1, 2, 3, 4})
      .knob("tile_size_y", {1, 2, 3, 4})
      .knob("read_only", {0, 1})
      .knob("use_padding", {0, 1})
      .knob("use_shmem", {0, 1})
      .knob("use_cmem", {1})
      .knob("filter_height", {15})
      .knob("filter_width", {15})
      .rule("use_padding==0 or block_size_x % 32 != 0")
      .rule("block_size_x*block_size_y<=1024")
      .rule("use_padding==0 or use_shmem != 0")
      .rule(
          "use_shmem == 0 or (((block_size_x*tile_size_x+(filter_width-1)))*"
          "((block_size_y*tile_size_y+(filter_height-1)))) < 12*1024");
}

inline PublishedSpace dedispersion_space() {
  PublishedSpace space{"dedispersion"};
  space.valid = 11'130;
  return space.knob("block_size_x", {1, 2, 4, 8, 16, 32})
      .knob("block_size_y", steps(32, 256, 8))
      .knob("block_size_z", {1})
      .knob("tile_size_x", {1, 2, 3, 4})
      .knob("tile_size_y", steps(1, 8, 1))
      .knob("tile_stride_x", {0, 1})
      .knob("tile_stride_y", {0, 1})
      .knob("loop_unroll_factor_channel", {0})
      .rule("32 <= block_size_x * block_size_y <= 1024")
      .rule("tile_size_x > 1 or tile_stride_x == 0")
      .rule("tile_size_y > 1 or tile_stride_y == 0");
}

inline PublishedSpace gemm_space() {
  PublishedSpace space{"gemm"};
  space.valid = 116'928;
  return space.knob("GEMMK", {0})
      .knob("MWG", {16, 32, 64, 128})
      .knob("NWG", {16, 32, 64, 128})
      .knob("KWG", {16, 32})
      .knob("MDIMC", {8, 16, 32})
      .knob("NDIMC", {8, 16, 32})
      .knob("MDIMA", {8, 16, 32})
      .knob("NDIMB", {8, 16, 32})
      .knob("KWI", {2})
      .knob("VWM", {1, 2, 4, 8})
      .knob("VWN", {1, 2, 4, 8})
      .knob("STRM", {0, 1})
      .knob("STRN", {0, 1})
      .knob("SA", {0, 1})
      .knob("SB", {0, 1})
      .knob("KREG", {1})
      .knob("PRECISION", {32})
      .rule("KWG % KWI == 0")
      .rule("MWG % (MDIMC * VWM) == 0")
      .rule("NWG % (NDIMC * VWN) == 0")
      .rule("MWG % (MDIMA * VWM) == 0")
      .rule("NWG % (NDIMB * VWN) == 0")
      .rule("KWG % ((MDIMC * NDIMC)/MDIMA) == 0")
      .rule("KWG % ((MDIMC * NDIMC)/NDIMB) == 0")
      .rule("not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)");
}

inline PublishedSpace hotspot_space() {
  PublishedSpace space{"hotspot"};
  space.valid = 82'984;
  std::vector<std::int64_t> widths = {1, 2, 4, 8, 16};
  for (const std::int64_t width : steps(32, 1024, 32)) widths.push_back(width);
  return space.knob("grid_width", {4096})
      .knob("grid_height", {4096})
      .knob("block_size_x", widths)
      .knob("block_size_y", {1, 2, 4, 8, 16, 32})
      .knob("tile_size_x", steps(1, 10, 1))
      .knob("tile_size_y", steps(1, 10, 1))
      .knob("temporal_tiling_factor", steps(1, 10, 1))
      .knob("max_tfactor", {10})
      .knob("loop_unroll_factor_t", steps(1, 10, 1))
      .knob("sh_power", {0, 1})
      .rule("block_size_x*block_size_y>= 32")
      .rule("temporal_tiling_factor % loop_unroll_factor_t == 0")
      .rule("block_size_x*block_size_y <= 1024")
      .rule(
          "(block_size_x*tile_size_x+ temporal_tiling_factor * 2) * (block_size_y*tile_size_y+ "
          "temporal_tiling_factor * 2) * (2+sh_power) * 4 <= 49152");
}

inline std::vector<PublishedSpace> published_spaces() {
  return {convolution_space(), dedispersion_space(), gemm_space(), hotspot_space()};
}

}  // namespace purlin::tune
