// SPDX-License-Identifier: Apache-2.0
// The report as a document of the page: `purlin.report/1`, cut to what a page can hold, with the
// member `page` for what the drill-down needs (docs/formats/page.md). Pure functions.
#pragma once

#include "analyze/report/report.h"
#include "model/profile/profile.h"

#include <cstddef>

namespace purlin::analyze {

struct PageLimits {
  std::size_t kernels = 500;           // rows in full, in the report's order; the rest in short
  std::size_t short_rows = 200'000;    // of the rest; what is beyond is in `other` only
  std::size_t shapes_per_kernel = 20;  // launch shapes in a row's drill-down
  std::size_t shapes = 2000;           // of all rows together
  std::size_t steps = 500;
  std::size_t processes = 200;
  std::size_t label_characters = 500;  // of labels, ops and problem shapes
  std::size_t name_characters = 8000;  // longer names lose their middle
};

// `by_launch`: the same profile, one row per launch shape, for the drill-down. `whole`: the profile
// with the timeline that the rows' sparklines are of.
Json report_head(const Report& report, const Report& by_launch, const Profile& whole,
                 const PageLimits& limits);

}  // namespace purlin::analyze
