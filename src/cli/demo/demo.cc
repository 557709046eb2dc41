// SPDX-License-Identifier: Apache-2.0
// `purlin demo`: the whole loop on this machine's best device, through the commands that a user
// types. The steps are in steps.h.
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/demo/steps.h"
#include "cli/frame/command.h"
#include "cli/tune/kernels_directory.h"
#include "gpu/registry.h"
#include "model/document.h"

namespace purlin::cli {
namespace {

Json figures_of(const GateAnswer& answer) {
  return Json::object(
      {{"verdict", answer.document["verdict"]}, {"items", answer.document["items"]}});
}

struct Loop {
  Json document;  // purlin.demo/1
  Speedup program;
  bool decided = false;  // no check of the gate ended inconclusive
};

// Runs the steps in order. The check of the slower config is left out after an inconclusive one.
Result<Loop> run_loop(const DemoRun& run, const std::string& budget) {
  const std::int64_t begin_ns = system_clock().monotonic_ns();
  run.title(fmt::format("Purlin demo on {} ({})", run.device().name, run.device().id));
  Environment environment = host_environment();
  environment.devices = {run.device()};
  Loop loop;
  Json& document = loop.document;
  document = new_document("purlin.demo/1", environment);

  PURLIN_ASSIGN(const Json profile, profile_sample(run));
  document.set("profile", profile);
  const std::string& hottest = profile["hottest"].as_string();
  PURLIN_ASSIGN(const TunedKernel tuned, tune_kernel(run, hottest, budget));
  document.set("tune", tuned.figures);
  PURLIN_ASSIGN(loop.program, compare_sample(run, hottest));
  document.set("program", to_json(loop.program));
  PURLIN_TRY(record_baseline(run, hottest));
  PURLIN_ASSIGN(const GateAnswer green, check_unchanged(run));
  document.set("green", figures_of(green));
  loop.decided = green.decided;
  if (green.decided) {
    PURLIN_ASSIGN(const PlantedSlowdown slowdown, check_slowdown(run, hottest, tuned.document));
    Json red = figures_of(slowdown.answer);
    red.set("planted_config", slowdown.planted);
    document.set("red", red);
    loop.decided = slowdown.answer.decided;
  }
  document.set("seconds", static_cast<double>(system_clock().monotonic_ns() - begin_ns) / 1e9);
  document.set("directory", run.directory());
  PURLIN_TRY(write_atomic(run.path("demo.json"), document.dump(2) + "\n"));
  return loop;
}

void show_summary(const DemoRun& run, const Loop& loop) {
  const Json& document = loop.document;
  const Json &profile = document["profile"], &tune = document["tune"];
  const std::string rule(72, '-');
  run.title("\n" + rule);
  run.title(fmt::format("  profile  {} owned {:.0f} % of the device's time",
                        profile["hottest"].as_string(), 100 * profile["share"].as_double()));
  run.title(fmt::format(
      "  tune     {:.2f}x faster than its default, worst to best {:.1f}x, all verified",
      tune["speedup"].as_double(), tune["worst_ms"].as_double() / tune["best_ms"].as_double()));
  run.title("  cache    the program picked it up: " + loop.program.effect_text() + " end to end");
  run.title(
      loop.decided
          ? fmt::format("  guard    green when nothing changed, red at {:.2f}x",
                        document["red"]["items"].items().front()["ratio"]["estimate"].as_double())
          : "  guard    undecided: this machine is too busy for the gate to tell");
  run.title(rule);
  fmt::print(stderr, "{:.0f} s in all. Everything it wrote: {}\n", document["seconds"].as_double(),
             run.directory());
  run.title("\nNext, on your own program:");
  fmt::print(stderr,
             "  purlin profile -o run.plprof -- ./my_program  what is slow, what to do next\n"
             "  purlin advise run.plprof                      what to change first, its gain\n"
             "  purlin init my_kernel.{}                      a spec of a kernel, to tune it\n"
             "  purlin guard baseline suite.toml              keep it fast\n"
             "Ten minutes for each: docs/tutorials/engineer.md, platform.md, maintainer.md\n",
             run.device().backend == "opencl" ? "cl" : "cu");
}

class DemoCommand : public Command {
 public:
  std::string_view name() const override { return "demo"; }
  std::string_view summary() const override {
    return "Run the whole loop on the best device, in under two minutes";
  }
  VerbText text() const override {
    return {.description =
                "Profiles a sample program, tunes its hottest kernel and caches the winner. The "
                "program then runs faster. The demo records a baseline, shows a pass of the gate, "
                "adds a slowdown, and shows a regression. The steps are printed on stderr. --json "
                "prints the figures on stdout. Both are written to the folder of --output.",
            .examples = {{"purlin demo"}},
            .exit_codes = {{0, "Every step succeeded"},
                           {2, "A step failed"},
                           {3, "The machine was too busy for a verdict of the gate"}},
            .see = {"docs/getting-started.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("--device", device_, "Device to use", "DEVICE");
    flags.option("-o,--output", output_, "Folder for the files of the demo (default: a new one)",
                 "DIR");
    flags.option("--budget", budget_, "Time for the tuning step", "TIME");
    flags.flag("--json", json_, "Print the summary as one JSON document");
  }
  Result<int> run(Context& context) override {
    if (!parse_duration_s(budget_))
      return error(Code::kInvalid, "--budget takes a time such as 25s, not '{}'", budget_);
    DeviceInfo info;
    {
      PURLIN_ASSIGN(auto device, gpu::open_device(device_));
      info = device->info();
    }
    PURLIN_ASSIGN(const std::string kernels, kernels_directory());
    std::string directory = output_;
    if (directory.empty()) {
      PURLIN_ASSIGN(directory, make_temporary_directory("purlin-demo"));
    }
    PURLIN_TRY(make_directories(directory));
    const DemoRun demo(context.error_terminal, absolute_path(directory), info, kernels);
    PURLIN_ASSIGN(const Loop loop, run_loop(demo, budget_));
    show_summary(demo, loop);
    if (json_) context.print(loop.document.dump(2) + "\n");
    return loop.decided ? kExitOk : kExitInconclusive;
  }

 private:
  std::string device_ = "auto", output_, budget_ = "25s";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_demo_command() { return std::make_unique<DemoCommand>(); }

}  // namespace purlin::cli
