// SPDX-License-Identifier: Apache-2.0
#include "profile/flow/flow.h"

#include "base/files.h"
#include "profile/flow/facts.h"
#include "profile/flow/trace_reader.h"
#include "profile/import/input.h"

namespace purlin::profile {
namespace {

Result<DataFlow> flow_of(Input& input) {
  PURLIN_ASSIGN(const flow::ExecutionTrace trace, flow::read_execution_trace(input));
  DataFlow found = flow::find_data_flow(trace);
  if (!found.recorded())
    return error(Code::kInvalid,
                 "an execution trace without two whole steps; record three, each in a range "
                 "ProfilerStep#N or with an optimizer's step");
  return found;
}

}  // namespace

Result<DataFlow> read_data_flow(const std::string& path) {
  if (!file_exists(path)) return error(Code::kNotFound, "{}: no such file", path);
  PURLIN_ASSIGN(Input input, Input::open(path));
  Result<DataFlow> found = flow_of(input);
  // Errors of reading name the file themselves.
  if (!found.is_ok() && found.status().message().find(path) == std::string::npos)
    return found.status().with_context(path);
  return found;
}

Result<DataFlow> data_flow_of(std::string_view bytes) {
  Input input = Input::from_bytes(bytes);
  return flow_of(input);
}

}  // namespace purlin::profile
