// SPDX-License-Identifier: Apache-2.0
#include "cli/guard/suite_run.h"

#include "base/files.h"
#include "base/time.h"
#include "cache/store/store.h"
#include "cli/frame/next_step.h"
#include "guard/report/benchmark_formats.h"
#include "guard/report/otlp.h"
#include "guard/report/sarif.h"

#include <unistd.h>

namespace purlin::cli {
namespace {

std::string minutes(double seconds) {
  const int whole = static_cast<int>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string guard_progress_line(const guard::PairProgress& progress) {
  std::string text = fmt::format("guard: {}, {}/{} done, {}", progress.doing, progress.done,
                                 progress.at_most, minutes(progress.seconds));
  if (progress.left_s > 0) text += fmt::format(", {} left", minutes(progress.left_s));
  return text;
}

void write_progress(Events& events, const guard::PairProgress& progress) {
  events.write("progress", {{"doing", progress.doing},
                            {"done", progress.done},
                            {"at_most", progress.at_most},
                            {"left_s", progress.left_s}});
}

Random unguessable_random() {
  return Random(static_cast<std::uint64_t>(system_clock().wall_ns()) ^
                (static_cast<std::uint64_t>(::getpid()) << 40));
}

void SuiteRun::declare(Flags& flags) {
  flags.positional("SUITE", suite_path_, "Suite file (TOML, docs/formats/suite.md)");
  flags.option("--device", device_name_, "Device, instead of the suite's", "DEVICE");
  flags.option("--cache", cache_, "Config cache (default: $PURLIN_CACHE or the user's)", "DIR");
  flags.list("--tag", tags_, "Only items with this tag; repeatable", "TAG");
  watched_.declare(flags);
}

Status SuiteRun::open(Context& context, Commands commands) {
  PURLIN_ASSIGN(suite_, guard::load_suite(suite_path_));
  PURLIN_ASSIGN(suite_, guard::with_tags(std::move(suite_), tags_));
  if (!suite_.commands.empty() && commands == Commands::kRefused)
    return error(
        Code::kInvalid,
        "'{}' has {} of [[commands]], and commands have no baseline that could be run again: "
        "`purlin guard compare A B --suite {}` judges two revisions of them with the kernels; "
        "--tag leaves them out here",
        suite_path_, suite_.commands.size(), suite_path_);
  PURLIN_ASSIGN(device_,
                guard::resolve_device(device_name_.empty() ? suite_.device : device_name_));

  guard::RunnerOptions options;
  options.device = device_.name;
  options.binary_cache = join_path(user_cache_directory(), "binaries");
  options.seed = suite_.seed;
  options.policy = suite_.policy;
  options.timeout_s = suite_.timeout_s;
  runner_ = guard::make_worker_runner(options);
  random_ = unguessable_random();
  progress_.emplace(stderr, context.error_terminal, !context.quiet);
  PURLIN_TRY(watched_.open(context, device_.info));
  guard::PairsOptions pairs;
  pairs.watch = watched_.watch();
  pairs.locked_mhz = watched_.locked_mhz();
  pairs.progress = [this](const guard::PairProgress& progress) {
    if (progress_) progress_->update(guard_progress_line(progress));
    if (events_ != nullptr) write_progress(*events_, progress);
  };
  run_.emplace(guard::GuardRun{suite_, device_,
                               cache_.empty() ? cache::Store::default_directory() : cache_,
                               *runner_, random_, system_clock(), std::move(pairs)});
  return Status::ok();
}

std::string SuiteRun::default_baseline() const {
  return join_path(parent_path(suite_path_), suite_.name + ".baseline.json");
}

void GuardOutputs::declare(Flags& flags) {
  flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.guard/1."});
  events_.declare(flags);
  flags.option("--junit", junit_, "Also write a JUnit report", "FILE");
  flags.option("--profiles", profiles_,
               {"Folder for profiles of slower kernels",
                "The default is guard-profiles in the user's cache folder."},
               "DIR");
  flags.flag("--no-profiles", no_profiles_, "Take no profiles of slower kernels");
  flags.option("--sarif", sarif_, "Also write SARIF 2.1.0, for code hosts", "FILE");
  flags.option("--otlp", otlp_,
               {"Also write the verdicts as OTLP/JSON metrics",
                "OpenTelemetry collectors take them. The format is in docs/formats/export.md."},
               "FILE");
  flags.option("--markdown", markdown_, "Also write a Markdown summary", "FILE");
  flags.option("--benchmark", action_benchmark_, "Also write the times for github-action-benchmark",
               "FILE");
  flags.option("--bencher", bencher_, "Also write the times for Bencher (BMF)", "FILE");
  flags.flag("--github", github_,
             {"Also annotate the GitHub job",
              "Where GITHUB_STEP_SUMMARY is set, the summary of the job is extended, too."});
}

std::string GuardOutputs::profiles() const {
  if (no_profiles_) return "";
  return profiles_.empty() ? join_path(user_cache_directory(), "guard-profiles") : profiles_;
}

Result<int> GuardOutputs::write(Context& context, const guard::Report& report,
                                const std::vector<std::string>& next) {
  // The verdict comes first: an error of a report must not lose a measurement of minutes.
  if (events_.on())
    events_.result(guard::to_json(report), guard::exit_code(report.verdict()));
  else
    context.print(json_ ? guard::to_json(report).dump(2) + "\n"
                        : guard::render_table(report, context.terminal) + next_step(next));
  const auto write_json = [](const std::string& path, const Json& document) {
    return path.empty() ? Status::ok() : write_atomic(path, shown_data(document.dump(2) + "\n"));
  };
  if (!junit_.empty()) PURLIN_TRY(write_atomic(junit_, guard::render_junit(report)));
  if (!sarif_.empty()) {
    // Names are relative to the checkout, as the code host shows them.
    const std::string root =
        environment_variable("GITHUB_WORKSPACE", environment_variable("CI_PROJECT_DIR", "."));
    PURLIN_TRY(write_json(sarif_, guard::to_sarif(report, root)));
  }
  PURLIN_TRY(write_json(otlp_, guard::to_otlp(report, system_clock().wall_ns())));
  if (!markdown_.empty()) PURLIN_TRY(write_atomic(markdown_, guard::render_markdown(report)));
  PURLIN_TRY(write_json(action_benchmark_, guard::to_action_benchmark(report)));
  PURLIN_TRY(write_json(bencher_, guard::to_bencher(report)));
  if (github_) {
    // The runner reads both streams. stdout is for the data.
    fmt::print(stderr, "{}", guard::render_annotations(report));
    if (const std::string path = environment_variable("GITHUB_STEP_SUMMARY"); !path.empty()) {
      std::string summary;
      if (file_exists(path)) {
        PURLIN_ASSIGN(summary, read_file(path));
      }
      PURLIN_TRY(write_atomic(path, summary + guard::render_markdown(report)));
    }
  }
  return guard::exit_code(report.verdict());
}

}  // namespace purlin::cli
