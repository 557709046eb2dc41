// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/demo/steps.h"
#include "model/document.h"
#include "model/expression/value.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr int kSearches = 5;
constexpr std::size_t kFewConfigs = 10;
constexpr double kLongSearchS = 300;
constexpr double kLeastSecondSearchS = 5;

Result<Json> search(const DemoRun& run, const std::string& kernel, const std::string& budget) {
  std::vector<std::string> argv = {run.purlin(),    "tune",     run.spec(kernel), "--device",
                                   run.device().id, "--budget", budget,           "--cache",
                                   run.cache(),     "--fresh",  "--json"};
  if (!run.preset().empty()) argv.insert(argv.end(), {"--shape", run.preset()});
  return run.run_json(argv);
}

}  // namespace

const Json* slower_config(const Json& tuned, double factor) {
  // Times of the search compare with the winner's time in the search. On a busy machine the
  // winner's time in the finals may be far smaller.
  const std::string winner = tuned["best"]["config"].dump();
  double best_ms = tuned["best"]["time_ms"].as_double();
  for (const Json& evaluation : tuned["evaluations"].items())
    if (evaluation["status"].as_string() == "ok" && evaluation["config"].dump() == winner)
      best_ms = std::max(best_ms, evaluation["time_ms"].as_double());
  const Json* slower = nullptr;
  for (const Json& evaluation : tuned["evaluations"].items()) {
    if (evaluation["status"].as_string() != "ok") continue;
    const double ms = evaluation["time_ms"].as_double();
    if (ms < factor * best_ms) continue;
    if (slower == nullptr || ms < (*slower)["time_ms"].as_double()) slower = &evaluation;
  }
  return slower == nullptr ? nullptr : &(*slower)["config"];
}

bool is_worth_another_search(int searches, std::size_t tried, double seconds) {
  return searches < kSearches || (tried < kFewConfigs && seconds < kLongSearchS);
}

Result<TunedKernel> tune_kernel(const DemoRun& run, const std::string& kernel,
                                const std::string& budget) {
  run.step(2, fmt::format("tune: search the configs of {} on the device", kernel));
  TunedKernel tuned;
  PURLIN_ASSIGN(tuned.document, search(run, kernel, budget));
  double seconds = parse_duration_s(budget).value_or(1);
  for (int searches = 1; slower_config(tuned.document, kLeastPlantedSlowdown) == nullptr;
       ++searches) {
    const std::size_t tried = tuned.document["evaluations"].items().size();
    if (!is_worth_another_search(searches, tried, seconds)) break;
    seconds = std::max(2 * seconds, kLeastSecondSearchS);
    run.say(fmt::format("the search tried {}, and none works that is slower than the winner; "
                        "searching again, for {:g} s",
                        counted(tried, "config"), seconds),
            Style::kYellow);
    PURLIN_ASSIGN(tuned.document, search(run, kernel, fmt::format("{:g}s", seconds)));
  }
  const Json& best = tuned.document["best"];
  const double best_ms = best["time_ms"].as_double();
  const double default_ms = tuned.document["default"]["time_ms"].as_double();
  double worst_ms = 0;
  int measured = 0, rejected = 0;
  for (const Json& evaluation : tuned.document["evaluations"].items()) {
    const bool ok = evaluation["status"].as_string() == "ok";
    ok ? ++measured : ++rejected;
    if (ok) worst_ms = std::max(worst_ms, evaluation["time_ms"].as_double());
  }
  run.say(
      fmt::format("-> {} compiled, verified and measured, {} rejected; worst {:.3f} ms, "
                  "default {:.3f} ms",
                  counted(measured, "config"), rejected, worst_ms, default_ms));
  PURLIN_ASSIGN(const Config config, config_from_json(best["config"]));
  run.say(fmt::format("-> winner {:.3f} ms, {:.2f}x faster than the default: {}", best_ms,
                      default_ms / best_ms, config.text()));
  tuned.figures = Json::object({{"kernel", kernel},
                                {"measured", measured},
                                {"rejected", rejected},
                                {"best_ms", best_ms},
                                {"default_ms", default_ms},
                                {"worst_ms", worst_ms},
                                {"speedup", default_ms / best_ms},
                                {"config", best["config"]}});
  return tuned;
}

}  // namespace purlin::cli
