// SPDX-License-Identifier: Apache-2.0
// The report as one page that opens offline: style, script and data are in it, and its content
// security policy lets nothing else run or load. The data is the report's JSON document, cut to
// what a page can hold (docs/formats/report.md, "The page"). A pure function.
#pragma once

#include "analyze/report/report.h"

#include <cstddef>
#include <string>

namespace purlin::analyze {

struct HtmlLimits {
  std::size_t kernels = 500;           // rows, in the report's order; the rest is "other"
  std::size_t shapes_per_kernel = 20;  // launch shapes in a row's drill-down
  std::size_t shapes = 2000;           // of all rows together
  std::size_t steps = 500;
  std::size_t processes = 200;
  std::size_t label_characters = 500;  // of labels, ops and problem shapes
  std::size_t name_characters = 8000;  // longer names lose their middle
};

// `by_launch`: the same profile, one row per launch shape, for the drill-down.
std::string render_html(const Report& report, const Report& by_launch,
                        const HtmlLimits& limits = {});

}  // namespace purlin::analyze
