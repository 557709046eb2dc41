// SPDX-License-Identifier: Apache-2.0
// Finds the verb, parses its flags, runs it, turns failures into exit code 2.
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/frame/command.h"
#include "cli/frame/settings.h"
#include "cli/help/text.h"

#include <exception>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace purlin::cli {
namespace {

// The values of the options of every verb.
struct CommonOptions {
  std::string color = "auto";
  bool quiet = false, verbose = false;

  void declare(Flags& flags) {
    flags.begin_common();
    flags.option(
        "--color", color,
        {"Colour: auto, always or never", "", {{"auto", ""}, {"always", ""}, {"never", ""}}},
        "WHEN");
    flags.flag("-q,--quiet", quiet, "Print only errors on stderr");
    flags.flag("-v,--verbose", verbose, "Print more on stderr");
  }
};

// The command whose words begin `arguments`; the longest wins ("cache get" before "cache").
Command* find_command(const std::vector<std::unique_ptr<Command>>& commands,
                      const std::vector<std::string>& arguments, std::size_t* words) {
  Command* found = nullptr;
  for (const auto& command : commands) {
    const std::vector<std::string> name = split(command->name(), ' ');
    if (name.size() > arguments.size() || (found != nullptr && name.size() <= *words)) continue;
    if (!std::equal(name.begin(), name.end(), arguments.begin())) continue;
    found = command.get();
    *words = name.size();
  }
  return found;
}

Status unknown_verb(const std::vector<std::unique_ptr<Command>>& commands,
                    const std::vector<std::string>& arguments) {
  std::vector<std::string> names, group;
  for (const auto& command : commands) {
    if (command->hidden()) continue;
    names.emplace_back(command->name());
    if (split(command->name(), ' ').front() == arguments.front())
      group.emplace_back(command->name());
  }
  if (!group.empty()) {  // `purlin cache` or `purlin cache gte`
    const std::string near =
        arguments.size() > 1 ? nearest(arguments[0] + " " + arguments[1], group) : "";
    return error(Code::kInvalid, "'{}' needs one of: {}{}", arguments[0], join(group, ", "),
                 near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
  const std::string near = nearest(arguments[0], names);
  return error(Code::kInvalid, "unknown verb '{}'{}; see 'purlin --help'", arguments[0],
               near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

int report(const Status& status) {
  fmt::print(stderr, "purlin: error: {}\n", status.message());
  return kExitError;
}

// The reader of the output has closed it, as `head` does. The last error number may be of a later
// call.
bool reader_is_gone(int file) {
  pollfd state = {file, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLERR) != 0;
}

// Other tools end this way then. Shells know the exit code (141) and do not report it.
void end_by_sigpipe() {
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
}

int run(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto commands = all_commands();
  if (arguments.size() > 1 && arguments[0] == "help") {  // `purlin help VERB`
    arguments.erase(arguments.begin());
    if (arguments[0] == "version") arguments[0] = "--help";  // it has no page
    arguments.emplace_back("--help");
  }
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help") {
    fmt::print(arguments.empty() ? stderr : stdout, "{}", overview_help(manual()));
    return arguments.empty() ? kExitError : kExitOk;
  }
  if (arguments[0] == "--version" || arguments[0] == "version") {
    fmt::print("purlin {}\n", version());
    return kExitOk;
  }
  std::size_t words = 0;
  Command* command = find_command(commands, arguments, &words);
  if (command == nullptr) {
    const bool help = arguments.size() == 2 && (arguments[1] == "--help" || arguments[1] == "-h");
    const std::string text = help ? overview_help(manual(), arguments[0]) : "";
    if (text.empty()) return report(unknown_verb(commands, arguments));
    fmt::print("{}", text);
    return kExitOk;
  }

  const Result<Settings> settings = Settings::load(".", user_config_directory());
  if (!settings.is_ok()) return report(settings.status());
  Flags flags(command->name(), command->summary(), &*settings);
  command->declare(flags);
  CommonOptions common;
  common.declare(flags);
  const Status parsed =
      flags.parse({arguments.begin() + static_cast<std::ptrdiff_t>(words), arguments.end()});
  if (parsed.code() == Code::kCancelled) {
    fmt::print("{}", flags.help(command->text()));
    return kExitOk;
  }
  if (!parsed.is_ok()) return report(parsed);
  const std::string& color = common.color;
  if (color != "auto" && color != "always" && color != "never")
    return report(error(Code::kInvalid, "--color takes auto, always or never, not '{}'", color));

  const ColorMode mode = color == "always"  ? ColorMode::kAlways
                         : color == "never" ? ColorMode::kNever
                                            : ColorMode::kAuto;
  Log log(common.quiet ? Level::kError : common.verbose ? Level::kDebug : Level::kInfo);
  Context context{stdout, Terminal::of(stdout, mode), Terminal::of(stderr, mode), log,
                  common.quiet};
  const Result<int> result = command->run(context);
  if (!result.is_ok()) {
    if (std::ferror(stdout) != 0 && reader_is_gone(STDOUT_FILENO)) end_by_sigpipe();
    return report(result.status());
  }
  // An error of the output (a full disk, a closed pipe) must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    if (reader_is_gone(STDOUT_FILENO)) end_by_sigpipe();
    return report(error(Code::kIo, "cannot write the output"));
  }
  return *result;
}

}  // namespace

Manual manual() {
  Manual all;
  all.version = version();
  all.groups = {{"cache", "Read, share and check the config cache"},
                {"guard", "Check kernels for regressions against a baseline"},
                {"store", "Make, migrate and check a store of a fleet's profiles"}};
  for (const Setting& setting : Settings::known())
    all.settings.push_back({setting.name, setting.variable, setting.help});
  for (const auto& command : all_commands()) {
    if (command->hidden()) continue;
    Flags flags(command->name(), command->summary());
    command->declare(flags);
    CommonOptions common;
    common.declare(flags);
    all.pages.push_back(flags.page(command->text()));
  }
  return all;
}

int run_cli(int argc, const char* const* argv) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {  // out of memory, or a bug: never an unexplained abort
    return report(error(Code::kFailed, "internal error: {}", problem.what()));
  }
}

}  // namespace purlin::cli
