// SPDX-License-Identifier: Apache-2.0
#include "base/output/terminal.h"
#include "cli/demo/steps.h"
#include "cli/frame/command.h"
#include "cli/guard/suite_run.h"

namespace purlin::cli {
namespace {

// Six pairs are the fewest that reach a 95 % interval. Eight make it narrower.
constexpr int kProgramPairs = 8;
// Steps of a process after its warm-up. More processes narrow the interval, more steps do not.
constexpr int kStepsOfProcess = 10;

// Fails unless the program took the config of `kernel` from the cache.
Status expect_tuned(const Json& sample, std::string_view kernel) {
  for (const Json& stage : sample["stages"].items())
    if (stage["kernel"].as_string() == kernel && !stage["tuned"].as_bool())
      return error(Code::kFailed, "the program did not find the winner: {}",
                   stage["explain"].as_string());
  return Status::ok();
}

}  // namespace

Result<Speedup> compare_sample(const DemoRun& run, std::string_view kernel) {
  run.step(3, "cache: the same program, unchanged, now finds the winner");
  const std::vector<std::string> before = run.sample(kStepsOfProcess, {"--no-cache", "--json"});
  const std::vector<std::string> after =
      run.sample(kStepsOfProcess, {"--cache", run.cache(), "--json"});
  run.show(before);
  run.show(after);
  Random random = unguessable_random();
  Progress progress(stderr, run.terminal(), true);
  int launches = 0;
  PURLIN_ASSIGN(const Speedup speedup,
                measure_speedup(kProgramPairs, random, [&](ProgramArm arm) -> Result<double> {
                  progress.update(fmt::format("pair {} of {}", 1 + launches++ / 2, kProgramPairs));
                  const bool tuned = arm == ProgramArm::kAfter;
                  PURLIN_ASSIGN(const DemoRun::Ran ran,
                                run.run_hidden(tuned ? after : before, {kExitOk}));
                  PURLIN_ASSIGN(const Json sample, Json::parse(ran.out));
                  if (tuned) PURLIN_TRY(expect_tuned(sample, kernel));
                  return sample["step_ms"].as_double();
                }));
  progress.clear();
  run.say(fmt::format("-> one step: {:.3f} ms before, {:.3f} ms now: {:.2f}x, {}",
                      speedup.before_ms, speedup.after_ms, speedup.estimate,
                      speedup.interval_text()));
  if (!speedup.resolved())
    run.say("-> the interval contains 1: this measurement shows no difference of the program",
            Style::kYellow);
  return speedup;
}

}  // namespace purlin::cli
