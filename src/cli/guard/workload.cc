// SPDX-License-Identifier: Apache-2.0
#include "cli/guard/workload.h"

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "cache/store/store.h"
#include "guard/arms/worktree.h"

namespace purlin::cli {

GuardWorkload::GuardWorkload(Choice choice, guard::CommandSpec command)
    : command_(std::move(command)),
      suite_path_(std::move(choice.suite)),
      repository_(std::move(choice.repository)),
      build_(std::move(choice.build)),
      work_(std::move(choice.work)),
      device_name_(std::move(choice.device)),
      cache_(std::move(choice.cache)),
      format_(to_text(command_.rules.format)) {}

void GuardWorkload::declare(Flags& flags) {
  flags.option("--suite", suite_path_, "Suite of kernels and commands to run", "SUITE");
  flags.list("--tag", tags_, "Only items of the suite with this tag; repeatable", "TAG");
  flags.option("--repo", repository_, "Git repository of the revisions", "DIR");
  flags.own_option("--build", build_, "Shell command that builds a revision, run at its root",
                   "CMD");
  flags.option("--work", work_, "Folder for worktrees; built worktrees are used again", "DIR");
  flags.option("--device", device_name_, "Device, instead of the suite's", "DEVICE");
  flags.option("--cache", cache_, "Directory of the config cache", "DIR");
  flags.option("--format", format_,
               {"Format of the output: samples, csv, regex or a tool",
                "",
                {{"samples", "The format of docs/formats/samples.md"},
                 {"google-benchmark", "Output of Google Benchmark"},
                 {"nvbench", "Output of NVBench"},
                 {"hyperfine", "Output of hyperfine"},
                 {"csv", "A CSV file"},
                 {"regex", "Lines that --pattern matches"}}},
               "FORMAT");
  flags.option("--pattern", command_.rules.pattern,
               {"Expression for --format regex",
                "Its groups are time, or name and time, or name, time and unit."},
               "REGEX");
  flags.option("--unit", command_.rules.unit, "Unit of times without one: ns, us, ms or s",
               "ns|us|ms|s");
  flags.option("--timeout", timeout_, "Maximum time of one run of the command", "TIME");
  flags.command(command_.argv, false);
}

Result<guard::Workload> GuardWorkload::open(bool bare) const {
  if (bare && (!suite_path_.empty() || !command_.argv.empty()))
    return error(Code::kInvalid, "with --commands, A and B are all that is run");
  if (!bare && suite_path_.empty() == command_.argv.empty())
    return error(Code::kInvalid,
                 "say what to run: --suite SUITE, or a command that prints times after `--`");
  guard::Workload workload;
  workload.cache = cache_.empty() ? cache::Store::default_directory() : cache_;
  workload.command = command_;
  if (format_ == "samples") {
    workload.command.rules = guard::samples_rules();
  } else {
    PURLIN_ASSIGN(workload.command.rules.format, parse_output_format(format_));
  }
  if (!timeout_.empty()) {
    PURLIN_ASSIGN(workload.command.timeout_s, guard_duration("--timeout", timeout_));
  }
  std::string device = device_name_;
  if (!suite_path_.empty()) {
    PURLIN_ASSIGN(guard::Suite suite, guard::load_suite(suite_path_));
    PURLIN_ASSIGN(workload.suite, guard::with_tags(std::move(suite), tags_));
    if (device.empty()) device = workload.suite->device;
  }
  const Result<guard::ResolvedDevice> resolved =
      guard::resolve_device(device.empty() ? "auto" : device);
  if (resolved.is_ok())
    workload.device = resolved->info;
  else if (workload.suite || !device_name_.empty())
    return resolved.status();  // a command can run on a machine without a known device
  if (workload.suite) {
    workload.runner.device = resolved->name;
    workload.runner.binary_cache = join_path(user_cache_directory(), "binaries");
    workload.runner.seed = workload.suite->seed;
    workload.runner.policy = workload.suite->policy;
    workload.runner.timeout_s = workload.suite->timeout_s;
  }
  return workload;
}

Result<std::string> GuardWorkload::open_work(Context& context, guard::Workload& workload) {
  PURLIN_ASSIGN(workload.scratch, scratch_.open(context, repository_));
  return work_.empty() ? workload.scratch : absolute_path(work_);
}

Result<guard::Variant> GuardWorkload::revision(Context& context, const std::string& revision,
                                               const std::string& work) const {
  guard::Variant variant;
  PURLIN_ASSIGN(variant.repository, guard::repository_root(repository_));
  PURLIN_ASSIGN(const std::string commit, guard::resolve_commit(repository_, revision));
  variant.label = revision == commit ? commit.substr(0, 12)
                                     : fmt::format("{} ({})", revision, commit.substr(0, 12));
  variant.identity = commit + "\n" + build_;
  context.log.info("{}: checking out{}", variant.label, build_.empty() ? "" : " and building");
  PURLIN_ASSIGN(variant.root, guard::make_worktree({variant.repository, commit, work, build_}));
  return variant;
}

Environment GuardWorkload::environment(const guard::Workload& workload) {
  Environment environment = host_environment();
  if (!workload.device.id.empty()) environment.devices = {workload.device};
  environment.recorded_at = format_rfc3339(system_clock().wall_ns());
  return environment;
}

std::string GuardWorkload::identity() const {
  const Result<std::string> suite = read_file(suite_path_, std::size_t{4} << 20);
  return join({suite.is_ok() ? *suite : "", join(tags_, ","), build_, format_,
               command_.rules.pattern, command_.rules.unit, join(command_.argv, "\x1f")},
              "\x1e");
}

Result<double> guard_duration(std::string_view flag, const std::string& text) {
  const std::optional<double> seconds = parse_duration_s(text);
  if (seconds && *seconds > 0) return *seconds;
  return error(Code::kInvalid, "{} takes a time like 90s or 5m, not '{}'", flag, text);
}

}  // namespace purlin::cli
