// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "base/text.h"
#include "cli/demo/steps.h"
#include "cli/frame/command.h"
#include "model/document.h"
#include "model/expression/value.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr int kGateAttempts = 3;
// The planted config takes at least so many times the winner's time in the search. A time of the
// search is one measurement on a machine that others may use, so a config can be faster than it
// shows. The gate then passes, and the next factor is planted.
constexpr double kPlantedSlowdowns[] = {kLeastPlantedSlowdown, 2, 4};

// Other work on a CPU makes it noisier than a GPU: the gate often could not resolve 5 % there.
// The planted slowdown is above the thresholds of both.
std::string thresholds(const DemoRun& run) {
  return run.on_cpu() ? "\n[thresholds]\ndetectable = 0.2\nfloor = 0.1\n" : "";
}

void say_items(const DemoRun& run, const Json& document, Style style) {
  for (const Json& item : document["items"].items()) {
    const Json& ratio = item["ratio"];
    run.say(fmt::format("-> {}: {} — {:.3f}x the baseline's time, 95 % interval [{:.3f}, {:.3f}], "
                        "p = {:.2g}, {} of processes",
                        item["kernel"].as_string(), item["verdict"].as_string(),
                        ratio["estimate"].as_double(), ratio["low"].as_double(),
                        ratio["high"].as_double(), item["p_value"].as_double(),
                        counted(item["pairs"].as_int(), "pair")),
            style);
  }
}

// On a busy machine the gate may end inconclusive. The demo asks a few times and then ends
// undecided, without a claim. `wanted` is the verdict's exit code that counts as a success.
Result<GateAnswer> ask_gate(const DemoRun& run, int wanted, Style style) {
  const std::vector<std::string> argv = {run.purlin(), "guard",
                                         "check",      run.path("suite.toml"),
                                         "--baseline", run.path("baseline"),
                                         "--cache",    run.cache(),
                                         "--json"};
  for (int attempt = 1;; ++attempt) {
    PURLIN_ASSIGN(const DemoRun::Ran ran,
                  run.run_any(argv, {kExitOk, kExitRegression, kExitInconclusive}));
    GateAnswer answer;
    PURLIN_ASSIGN(answer.document, Json::parse(ran.out));
    answer.decided = ran.code != kExitInconclusive;
    answer.red = ran.code == kExitRegression;
    say_items(run, answer.document, ran.code == wanted ? style : Style::kYellow);
    if (answer.decided || attempt == kGateAttempts) return answer;
    run.say("something else keeps this machine busy; asking again", Style::kYellow);
  }
}

// Puts `config` into the cache in place of the winner.
Status plant(const DemoRun& run, const std::string& kernel, const Json& config) {
  PURLIN_ASSIGN(const Config planted, config_from_json(config));
  std::string assignment = planted.text();
  std::replace(assignment.begin(), assignment.end(), ' ', ',');
  std::vector<std::string> put = {run.purlin(), "cache",         "put",      run.spec(kernel),
                                  "--device",   run.device().id, "--cache",  run.cache(),
                                  "--config",   assignment,      "--replace"};
  if (!run.preset().empty()) put.insert(put.end(), {"--shape", run.preset()});
  return run.run(put);
}

}  // namespace

Status record_baseline(const DemoRun& run, std::string_view kernel) {
  run.step(4, "guard: record what fast means today");
  const std::string shape =
      run.preset().empty() ? "" : fmt::format("shape = \"{}\"\n", run.preset());
  PURLIN_TRY(write_atomic(run.path("suite.toml"),
                          fmt::format("schema = \"purlin.suite/1\"\n"
                                      "name = \"demo\"\n"
                                      "device = \"{}\"\n{}\n"
                                      "[[items]]\n"
                                      "spec = \"{}\"\n{}"
                                      "config = \"cached\"\n",
                                      run.device().id, thresholds(run), run.spec(kernel), shape)));
  return run.run({run.purlin(), "guard", "baseline", run.path("suite.toml"), "--cache", run.cache(),
                  "-o", run.path("baseline"), "--replace", "--note", "the demo"});
}

Result<GateAnswer> check_unchanged(const DemoRun& run) {
  run.step(5, "guard: nothing changed, so the gate must be green");
  PURLIN_ASSIGN(GateAnswer answer, ask_gate(run, kExitOk, Style::kGreen));
  if (answer.red) return error(Code::kFailed, "the gate is red although nothing changed");
  return answer;
}

Result<PlantedSlowdown> check_slowdown(const DemoRun& run, const std::string& kernel,
                                       const Json& tuned) {
  run.step(6, "guard: a slower config replaces the winner, so the gate must be red");
  PlantedSlowdown slowdown;
  for (const double factor : kPlantedSlowdowns) {
    const Json* config = slower_config(tuned, factor);
    if (config == nullptr) break;
    if (config->dump() == slowdown.planted.dump()) continue;  // the gate has passed it
    PURLIN_TRY(plant(run, kernel, *config));
    slowdown.planted = *config;
    PURLIN_ASSIGN(slowdown.answer, ask_gate(run, kExitRegression, Style::kRed));
    if (slowdown.answer.red || !slowdown.answer.decided) return slowdown;
    run.say("this config is not slower now: its time in the search was a disturbed one",
            Style::kYellow);
  }
  return error(Code::kFailed,
               "no measured config is slower than the winner, so none can show a "
               "regression; give the demo a longer --budget");
}

}  // namespace purlin::cli
