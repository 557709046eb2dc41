// SPDX-License-Identifier: Apache-2.0
// The report for people: readable at 100 columns and wider. A pure function of the report and the
// terminal's abilities.
#pragma once

#include "analyze/report.h"
#include "base/terminal.h"

#include <string>

namespace purlin::analyze {

struct TextOptions {
  int top = 20;  // kernels shown; 0 = all
};

std::string render_text(const Report& report, const Terminal& terminal,
                        const TextOptions& options = {});

}  // namespace purlin::analyze
