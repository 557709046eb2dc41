// SPDX-License-Identifier: Apache-2.0
#include "tune/session/command/runs.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/os/process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/time.h"
#include "measure/output/benchmark_output.h"
#include "measure/output/last_output.h"

#include <algorithm>

namespace purlin::tune {
namespace {

constexpr std::size_t kMaxCommandOutput = std::size_t{64} << 20;
constexpr std::size_t kMaxOutputFile = std::size_t{1} << 30;
constexpr const char* kTimesFile = ".purlin-times";

// As a macro has it: a flag is 1 or 0.
std::string word_of(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  return to_text(value);
}

Step failed(EvaluationStatus status, std::string message) { return {status, std::move(message)}; }

}  // namespace

CommandRuns::CommandRuns(const KernelSpec& spec, const ProblemShape& problem, Config usual,
                         std::string root, double timeout_s)
    : spec_(spec),
      command_(*spec.command),
      problem_(problem),
      usual_(std::move(usual)),
      root_(std::move(root)),
      timeout_s_(timeout_s),
      expected_(command_.expect) {}

std::string CommandRuns::folder_of(const Config& config) const {
  return join_path(root_, hash128_hex(config.text()));
}

void CommandRuns::remove(const Config& config) const {
  static_cast<void>(remove_tree(folder_of(config)));
}

Result<Step> CommandRuns::execute(const Config& config, const std::vector<std::string>& words,
                                  EvaluationStatus failure, const IsOver& is_over) const {
  const std::string folder = folder_of(config);
  PURLIN_TRY(make_directories(folder));
  std::map<std::string, std::string> values;
  for (const auto& [name, extent] : problem_.items()) values[name] = std::to_string(extent);
  for (const auto& [name, value] : config.items()) values[name] = word_of(value);
  values[std::string(kSpecFolder)] = parent_path(absolute_path(spec_.file));
  values[std::string(kOutputFile)] = join_path(folder, kTimesFile);
  Process::Options process;
  for (const std::string& word : words) process.argv.push_back(fill_template(word, values));
  for (const auto& [name, value] : command_.environment)
    process.environment[name] = fill_template(value, values);
  process.environment["PURLIN_SEED"] = std::to_string(spec_.seed);
  process.directory = folder;
  // A name with a slash is relative to the working folder, as in a shell there.
  if (process.argv[0].find('/') != std::string::npos)
    process.argv[0] = join_path(folder, process.argv[0]);
  const std::int64_t start_ns = system_clock().monotonic_ns();
  const Result<Captured> captured = run_captured(process, timeout_s_, kMaxCommandOutput, is_over);
  if (captured.status().code() == Code::kCancelled) return captured.status();
  if (!captured.is_ok()) return failed(failure, captured.status().message());
  Step step;
  step.seconds = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
  step.out = captured->out;
  const std::string name = base_name(process.argv[0]);
  if (captured->timed_out) {
    step.status = EvaluationStatus::kTimeout;
    step.message = fmt::format("'{}' did not end within {} s", name, timeout_s_);
  } else if (!captured->exit.ok()) {
    const bool crashed = captured->exit.signal != 0 && failure == EvaluationStatus::kLaunch;
    step.status = crashed ? EvaluationStatus::kCrash : failure;
    step.message = fmt::format("'{}' ended with {}: {}", name, captured->exit.text(),
                               measure::last_output(*captured));
  } else if (captured->truncated) {
    step.status = failure;
    step.message = fmt::format("'{}' wrote more than {} MB", name, kMaxCommandOutput >> 20);
  }
  return step;
}

Result<Step> CommandRuns::build(const Config& config, const IsOver& is_over) const {
  if (command_.build.empty()) return Step{};
  return execute(config, command_.build, EvaluationStatus::kCompile, is_over);
}

Result<std::vector<double>> CommandRuns::times_of(const Step& step,
                                                  const std::string& output) const {
  if (command_.wall_time) return std::vector<double>{step.seconds * 1e3};
  std::string text = step.out;
  if (file_exists(output)) {
    PURLIN_ASSIGN(text, read_file(output, kMaxCommandOutput));
  }
  PURLIN_ASSIGN(const std::vector<measure::BenchmarkTimes> all,
                measure::parse_benchmark_output(text, command_.rules, parent_path(output)));
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) {
    return command_.benchmark.empty() || one.name == command_.benchmark;
  });
  if (found == all.end())
    return error(Code::kNotFound, "there is no benchmark '{}'; the first is '{}'",
                 command_.benchmark, all.front().name);
  if (command_.benchmark.empty() && all.size() > 1)
    return error(Code::kInvalid, "it has {} benchmarks; name one: benchmark = \"{}\"", all.size(),
                 all.front().name);
  if (!found->failure.empty() || !found->skipped.empty())
    return error(Code::kFailed, "{}", found->failure.empty() ? found->skipped : found->failure);
  std::vector<double> times_ms;
  for (const double ns : found->times_ns) times_ms.push_back(ns * 1e-6);
  return times_ms;
}

Result<Step> CommandRuns::run(const Config& config, const IsOver& is_over,
                              std::vector<double>& times_ms) const {
  const std::string output = join_path(folder_of(config), kTimesFile);
  static_cast<void>(remove_file(output));
  PURLIN_ASSIGN(Step step, execute(config, command_.run, EvaluationStatus::kLaunch, is_over));
  if (!step.ok()) return step;
  Result<std::vector<double>> times = times_of(step, output);
  if (!times.is_ok()) {
    step.status = EvaluationStatus::kLaunch;
    step.message = fmt::format("no time is in the output of '{}': {}", join(command_.run, " "),
                               times.status().message());
    return step;
  }
  times_ms.insert(times_ms.end(), times->begin(), times->end());
  return step;
}

Result<Step> CommandRuns::verify(const Config& config, const Step& ran, const IsOver& is_over) {
  Step step;
  if (!command_.check.empty()) {
    PURLIN_ASSIGN(step, execute(config, command_.check, EvaluationStatus::kWrong, is_over));
    if (!step.ok()) return step;
  }
  if (command_.outputs.empty()) return step;
  PURLIN_ASSIGN(Step compared, compare_outputs(config, ran, is_over));
  compared.seconds += step.seconds;
  return compared;
}

Result<std::string> CommandRuns::digest_of(const Config& config, const Step& ran) const {
  std::string all;
  for (const std::string& output : command_.outputs) {
    std::string text = ran.out;
    if (output != kStandardOutput) {
      PURLIN_ASSIGN(text, read_file(join_path(folder_of(config), output), kMaxOutputFile));
    }
    all += command_.outputs.size() == 1 ? text : sha256_hex(text);
  }
  return sha256_hex(all);
}

Result<Step> CommandRuns::compare_outputs(const Config& config, const Step& ran,
                                          const IsOver& is_over) {
  const Result<std::string> own = digest_of(config, ran);
  if (!own.is_ok())
    return failed(EvaluationStatus::kWrong,
                  fmt::format("an output is missing: {}", own.status().message()));
  if (expected_.empty()) {
    if (config == usual_) {
      expected_ = *own;
      return Step{};
    }
    PURLIN_ASSIGN(Step step, build(usual_, is_over));
    std::vector<double> times;
    if (step.ok()) {
      PURLIN_ASSIGN(step, run(usual_, is_over, times));
    }
    const Result<std::string> digest = step.ok() ? digest_of(usual_, step) : std::string();
    if (!step.ok() || !digest.is_ok())
      return failed(
          EvaluationStatus::kWrong,
          fmt::format("the default config, whose outputs are the expected ones, fails: {}",
                      step.ok() ? digest.status().message() : step.message));
    expected_ = *digest;
  }
  if (*own == expected_) return Step{};
  return failed(EvaluationStatus::kWrong,
                fmt::format("the digest of {} is {}, not {}", join(command_.outputs, ", "),
                            own->substr(0, 16), expected_.substr(0, 16)));
}

}  // namespace purlin::tune
