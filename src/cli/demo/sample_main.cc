// SPDX-License-Identifier: Apache-2.0
// purlin-sample: a program to profile, tune and guard; `purlin demo` uses it, and so may you.
#include "base/json/json.h"
#include "base/time.h"
#include "cli/demo/sample_pipeline.h"
#include "cli/frame/flags.h"
#include "gpu/registry.h"

#include <algorithm>

namespace purlin::sample {
namespace {

struct Options {
  std::string device = "auto", preset, cache;
  std::vector<std::string> specs;
  int steps = 50;
  bool json = false, no_cache = false;
};

Result<int> run(const Options& options) {
  PURLIN_ASSIGN(auto device, gpu::open_device(options.device));
  PURLIN_ASSIGN(auto pipeline, Pipeline::create(*device, {options.specs, options.preset,
                                                          options.cache, !options.no_cache}));
  std::vector<double> step_ms;
  for (int i = 0; i < options.steps + 2; ++i) {  // the first two warm up
    const std::int64_t begin = system_clock().monotonic_ns();
    PURLIN_TRY(pipeline->step());
    if (i >= 2) step_ms.push_back(static_cast<double>(system_clock().monotonic_ns() - begin) / 1e6);
  }
  std::sort(step_ms.begin(), step_ms.end());
  const double median = step_ms[step_ms.size() / 2];
  if (options.json) {
    Json stages = Json::array();
    for (const Stage& stage : pipeline->stages())
      stages.push(Json::object({{"kernel", stage.kernel},
                                {"tuned", stage.tuned},
                                {"config", to_json(stage.config)},
                                {"explain", stage.explain}}));
    fmt::print("{}\n", Json::object({{"device", device->info().id},
                                     {"steps", options.steps},
                                     {"step_ms", median},
                                     {"stages", stages}})
                           .dump());
  } else {
    fmt::print("{}: {} steps, median {:.3f} ms\n", device->info().name, options.steps, median);
    for (const Stage& stage : pipeline->stages())
      fmt::print("  {:<12} {:<8} {}\n", stage.kernel, stage.tuned ? "tuned" : "default",
                 stage.config.text());
  }
  return 0;
}

int main_without_exceptions(int argc, const char* const* argv) {
  Options options;
  cli::Flags flags("purlin-sample",
                   "Runs a pipeline of sample kernels repeatedly, as a server does");
  flags.positionals("SPEC", options.specs, "Specs of kernels, one stage each");
  flags.option("--device", options.device, "Device to use", "DEVICE");
  flags.option("--steps", options.steps, "Steps to run");
  flags.option("--preset", options.preset, "Preset of the problem shape, where a spec has it",
               "NAME");
  flags.option("--cache", options.cache, "Directory of the config cache", "DIR");
  flags.flag("--no-cache", options.no_cache, "Use default configs");
  flags.flag("--json", options.json, "Print one JSON document");
  const Status parsed = flags.parse({argv + 1, argv + argc});
  if (parsed.code() == Code::kCancelled) {
    fmt::print("{}", flags.help());
    return 0;
  }
  Status status = parsed;
  if (status.is_ok() && options.steps < 1)
    status = error(Code::kInvalid, "--steps must be at least 1");
  if (status.is_ok()) {
    const Result<int> result = run(options);
    if (result.is_ok()) return *result;
    status = result.status();
  }
  fmt::print(stderr, "purlin-sample: error: {}\n", status.message());
  return 2;
}

}  // namespace
}  // namespace purlin::sample

int main(int argc, char** argv) { return purlin::sample::main_without_exceptions(argc, argv); }
