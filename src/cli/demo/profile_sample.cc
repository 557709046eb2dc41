// SPDX-License-Identifier: Apache-2.0
#include "base/output/terminal.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/demo/steps.h"

#include <algorithm>

namespace purlin::cli {
namespace {

// Enough steps of the program for a clear ranking, in about a second on a CPU.
int profiled_steps(const DemoRun& run) { return run.on_cpu() ? 30 : 200; }

void show_ranking(const DemoRun& run, const Json& kernels) {
  Table table;
  table.column("    kernel");
  table.column("share", Table::Align::kRight);
  table.column("launches", Table::Align::kRight);
  table.column("p50", Table::Align::kRight);
  table.column("");
  for (const Json& kernel : kernels.items()) {
    const double share = kernel["share"].as_double();
    table.row({"    " + kernel["name"].as_string(), fmt::format("{:.1f} %", 100 * share),
               fmt::format("{:.0f}", kernel["count"].as_double()),
               format_ns(kernel["p50_ns"].as_double()), run.terminal().bar(share, 30)});
  }
  fmt::print(stderr, "{}", table.render(run.terminal()));
}

bool is_sample_stage(std::string_view name) {
  return std::find(std::begin(kSampleStages), std::end(kSampleStages), name) !=
         std::end(kSampleStages);
}

}  // namespace

Result<Json> profile_sample(const DemoRun& run) {
  run.step(1, "profile: which kernel owns the time?");
  const std::string file = run.path("before.plprof");
  std::vector<std::string> argv = {run.purlin(), "profile", "-o", file, "--json", "--"};
  for (const std::string& word : run.sample(profiled_steps(run), {"--no-cache"}))
    argv.push_back(word);
  PURLIN_TRY(run.run(argv));
  PURLIN_ASSIGN(const Json report, run.run_json({run.purlin(), "report", file, "--json"}));
  const Json& kernels = report["kernels"];
  if (kernels.size() == 0)
    return error(Code::kFailed, "the profile holds no kernels; see {}", file);
  show_ranking(run, kernels);
  for (const Json& kernel : kernels.items()) {
    const std::string& name = kernel["name"].as_string();
    if (!is_sample_stage(name)) continue;
    run.say(fmt::format("-> {} owns {:.0f} % of the device's time: worth tuning", name,
                        100 * kernel["share"].as_double()));
    return Json::object({{"hottest", name},
                         {"share", kernel["share"]},
                         {"count", kernel["count"]},
                         {"p50_ns", kernel["p50_ns"]},
                         {"file", file}});
  }
  return error(Code::kFailed, "none of the profiled kernels is one of the samples");
}

}  // namespace purlin::cli
