// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/run.h"

#include "base/files.h"
#include "base/os/process.h"
#include "base/output/columns.h"
#include "base/text.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr double kCommandTimeoutS = 600;

// A command as a user types it: in lines of at most `width` columns where words allow, each but the
// last ended by a backslash.
std::vector<std::string> as_typed(const std::vector<std::string>& argv, std::size_t width) {
  std::vector<std::string> lines = {shell_word(base_name(argv[0]))};
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string word = shell_word(argv[i]);
    if (visible_width(lines.back()) + 1 + visible_width(word) + 2 > width) {
      lines.back() += " \\";
      lines.push_back("  " + word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

std::string in_one_line(const std::vector<std::string>& argv) {
  return as_typed(argv, std::string::npos).front();
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
  constexpr std::size_t kIndent = 4;
  const std::size_t width =
      terminal_.bounded() ? std::max<std::size_t>(static_cast<std::size_t>(terminal_.width()), 40)
                          : std::string::npos;
  const std::size_t hang = starts_with(text, "-> ") ? 3 : 0;  // later lines go below the text
  bool first = true;
  for (const std::string& part : wrap_columns(text, width - kIndent - hang)) {
    line(style, std::string(kIndent + (first ? 0 : hang), ' ') + part);
    first = false;
  }
}

void DemoRun::show(const std::vector<std::string>& argv) const {
  const std::size_t width =
      terminal_.bounded() ? static_cast<std::size_t>(terminal_.width()) : std::string::npos;
  bool first = true;
  for (const std::string& part : as_typed(argv, width - 6)) {
    line(Style::kDim, (first ? "    $ " : "      ") + part);
    first = false;
  }
}

Result<DemoRun::Ran> DemoRun::run_hidden(const std::vector<std::string>& argv,
                                         const std::vector<int>& wanted) const {
  Process::Options options;
  options.argv = argv;
  // Ctrl-C must reach the step that runs, so it stays in the terminal's group.
  options.new_group = false;
  PURLIN_ASSIGN(const Captured captured, run_captured(options, kCommandTimeoutS));
  if (captured.timed_out) return error(Code::kTimeout, "'{}' did not finish", in_one_line(argv));
  const int code = captured.exit.shell_code();
  if (std::find(wanted.begin(), wanted.end(), code) == wanted.end())
    return error(Code::kFailed, "'{}' ended with {} where {} was expected:\n{}", in_one_line(argv),
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
