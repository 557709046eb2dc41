// SPDX-License-Identifier: Apache-2.0
// The importer of Chrome traces: bytes as they come, and the same as events of a PyTorch trace, so
// that the linking of calls, ops and kernels is reached. Bounds are small; every index must hold.
#include "profile/import/chrome/trace.h"
#include "require.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void try_import(std::string_view text) {
  purlin::profile::ImportOptions options;
  options.max_timeline_events = 200;
  options.max_kernel_rows = 20;
  const auto read = purlin::profile::import_chrome_trace(purlin::profile::Input::from_bytes(text),
                                                         "fuzz", options);
  if (!read.is_ok()) return;
  const purlin::Timeline& timeline = read->timeline;
  require(read->kernels.size() <= options.max_kernel_rows);
  require(timeline.activities.size() + timeline.calls.size() + timeline.ops.size() +
              timeline.ranges.size() <=
          options.max_timeline_events);
  for (const purlin::Activity& a : timeline.activities) {
    require(a.row <
            (a.kind == purlin::ActivityKind::kKernel ? read->kernels.size() : read->copies.size()));
    require(a.device < read->environment.devices.size() && a.process < read->processes.size());
    require(a.call == purlin::kNone || a.call < timeline.calls.size());
    require(a.duration_ns >= 0);
  }
  for (const purlin::Call& call : timeline.calls)
    require(call.name < timeline.names.size() && call.process < read->processes.size() &&
            (call.op == purlin::kNone || call.op < timeline.ops.size()));
  for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
    const purlin::Op& op = timeline.ops[i];
    require(op.parent == purlin::kNone || op.parent < i);
    require(std::max({op.name, op.shape, op.dtype}) < timeline.names.size());
  }
}

// Each three bytes are an event: kind, time, id. What is left names things.
std::string as_events(std::string_view input) {
  constexpr std::string_view kCategories[] = {
      "kernel",     "cuda_runtime",        "cpu_op",   "user_annotation",
      "gpu_memcpy", "cuda_profiler_range", "overhead", "Operator"};
  std::string out = R"({"deviceProperties":[{"id":0},{"id":1}],"traceEvents":[)";
  while (input.size() >= 3) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
    const int kind = byte(0), time = byte(1), id = byte(2);
    input.remove_prefix(3);
    out += R"({"ph":")";
    out += kind >= 240 ? "f" : "X";
    out += R"(","cat":")" + std::string(kCategories[kind % 8]) + R"(","name":")";
    out += kind % 3 == 0 ? "cudaLaunchKernel" : kind % 3 == 1 ? "aten::mm" : "x";
    out += R"(","pid":)" + std::to_string(kind / 100) + R"(,"tid":)" + std::to_string(kind % 5) +
           R"(,"ts":)" + std::to_string(time) + R"(,"dur":)" + std::to_string(id % 32) +
           R"(,"id":)" + std::to_string(id % 8) + R"(,"args":{"device":)" + std::to_string(id % 3) +
           R"(,"External id":)" + std::to_string(time % 8);
    if (kind < 200) out += R"(,"correlation":)" + std::to_string(id % 8);
    if (kind % 7 == 0) out += R"(,"grid":[)" + std::to_string(id) + R"(,2],"graph id":3)";
    if (kind % 2 == 0) out += R"(,"Input Dims":[[2,)" + std::to_string(id) + "],[3,4]]";
    if (kind % 11 == 0) out += ",\"n\":\"" + std::string(input.substr(0, 5)) + "\"";
    out += "}},";
  }
  return out + "]}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try_import(input);
  try_import(as_events(input.substr(0, 600)));
  return 0;
}
