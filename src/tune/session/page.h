// SPDX-License-Identifier: Apache-2.0
// A session as one page that opens offline: how it converged, which parameters mattered, the
// fastest configs in parallel coordinates. It is drawn here, without a script: its content security
// policy lets nothing run or load. A pure function of the document of `purlin tune --json`.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "model/expression/value.h"

#include <string>
#include <vector>

namespace purlin::tune {

// kInvalid when it is no such document, or one of several results.
Result<std::string> render_page(const Json& document);

// Share of the variance of log time that a parameter explains on its own, among configs that
// worked; 0 for one value. What a search measured is no fair sample: a hint, not a law.
struct Importance {
  std::string parameter;
  double share = 0;
};
std::vector<Importance> importance_of(const std::vector<std::pair<Config, double>>& times);

}  // namespace purlin::tune
