// SPDX-License-Identifier: Apache-2.0
// The JSON parts of a profile file (META with its data flow, and COVERAGE) to and from the model's
// types. Reading is lenient: what is absent keeps its default, so that older and newer writers are
// understood. Pure functions.
#pragma once

#include "base/json/json.h"
#include "model/profile/profile.h"

namespace purlin::profile {

Json to_json(const ProcessInfo& process);
ProcessInfo process_from_json(const Json& json);
Json to_json(const Sampling& sampling);
Json to_json(const Coverage& coverage);
Coverage coverage_from_json(const Json& json);
Json to_json(const DataFlow& flow);
DataFlow data_flow_from_json(const Json& json);

}  // namespace purlin::profile
