// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/run.h"

#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"
#include "cli/frame/command.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr double kCommandTimeoutS = 600;

std::string as_typed(std::vector<std::string> argv) {
  argv[0] = base_name(argv[0]);
  return join(argv, " ");
}

}  // namespace

DemoRun::DemoRun(Terminal terminal, std::string directory, DeviceInfo device, std::string kernels)
    : terminal_(terminal),
      directory_(std::move(directory)),
      kernels_(std::move(kernels)),
      binaries_(executable_directory()),
      device_(std::move(device)) {}

std::string DemoRun::path(std::string_view name) const { return join_path(directory_, name); }

std::string DemoRun::spec(std::string_view kernel) const {
  return fmt::format("{}/{}/{}.toml", kernels_, kernel, kernel);
}

std::string DemoRun::purlin() const { return join_path(binaries_, "purlin"); }

std::vector<std::string> DemoRun::sample(int steps, const std::vector<std::string>& extra) const {
  std::string program = join_path(binaries_, "purlin-sample");
  if (!file_exists(program)) program = join_path(binaries_, "../libexec/purlin/purlin-sample");
  std::vector<std::string> argv = {program, "--device", device_.id, "--steps",
                                   std::to_string(steps)};
  if (!preset().empty()) argv.insert(argv.end(), {"--preset", preset()});
  argv.insert(argv.end(), extra.begin(), extra.end());
  for (const std::string_view stage : kSampleStages) argv.push_back(spec(stage));
  return argv;
}

void DemoRun::line(Style style, std::string_view text) const {
  fmt::print(stderr, "{}\n", terminal_.paint(style, text));
}

void DemoRun::step(int number, std::string_view text) const {
  line(Style::kCyan, fmt::format("\n[{}/6] {}", number, text));
}

void DemoRun::say(std::string_view text, Style style) const {
  line(style, "    " + std::string(text));
}

void DemoRun::show(const std::vector<std::string>& argv) const {
  say("$ " + as_typed(argv), Style::kDim);
}

Result<DemoRun::Ran> DemoRun::run_hidden(const std::vector<std::string>& argv,
                                         const std::vector<int>& wanted) const {
  Process::Options options;
  options.argv = argv;
  // Ctrl-C must reach the step that runs, so it stays in the terminal's group.
  options.new_group = false;
  PURLIN_ASSIGN(const Captured captured, run_captured(options, kCommandTimeoutS));
  if (captured.timed_out) return error(Code::kTimeout, "'{}' did not finish", as_typed(argv));
  const int code = captured.exit.shell_code();
  if (std::find(wanted.begin(), wanted.end(), code) == wanted.end())
    return error(Code::kFailed, "'{}' ended with {} where {} was expected:\n{}", as_typed(argv),
                 captured.exit.text(), wanted.front(),
                 trim(captured.err).empty() ? captured.out.substr(0, 4000) : captured.err);
  return Ran{code, captured.out};
}

Result<DemoRun::Ran> DemoRun::run_any(const std::vector<std::string>& argv,
                                      const std::vector<int>& wanted) const {
  show(argv);
  return run_hidden(argv, wanted);
}

Status DemoRun::run(const std::vector<std::string>& argv) const {
  return run_any(argv, {kExitOk}).status();
}

Result<Json> DemoRun::run_json(const std::vector<std::string>& argv) const {
  PURLIN_ASSIGN(const Ran ran, run_any(argv, {kExitOk}));
  return Json::parse(ran.out);
}

}  // namespace purlin::cli
