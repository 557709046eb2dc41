// SPDX-License-Identifier: Apache-2.0
// Finds the verb, parses its flags, runs it, turns failures into exit code 2.
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/frame/command.h"
#include "cli/frame/settings.h"

#include <exception>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace purlin::cli {
namespace {

bool in_group(const Command& command, std::string_view group) {
  return !command.hidden() &&
         (group.empty() || split(command.name(), ' ').front() == std::string(group));
}

// Of all verbs, or of those of a group such as "cache"; "" where there are none.
std::string overview(const std::vector<std::unique_ptr<Command>>& commands,
                     std::string_view group = "") {
  std::string text = "purlin: finds slow GPU kernels and makes them fast for good\n\n";
  text += fmt::format("Usage: purlin {} [OPTIONS] [-- COMMAND]\n\nVerbs:\n",
                      group.empty() ? "VERB" : fmt::format("{} VERB", group));
  std::size_t width = 0;
  for (const auto& command : commands)
    if (in_group(*command, group)) width = std::max(width, command->name().size());
  if (width == 0) return "";
  for (const auto& command : commands)
    if (in_group(*command, group))
      text += fmt::format("  {:<{}}  {}\n", command->name(), width, command->summary());
  text +=
      "\nOptions of every verb: --help, --color auto|always|never, --quiet, --verbose\n"
      "`purlin VERB --help` explains one. `purlin --version` prints the version.\n"
      "Exit codes: 0 done or pass, 1 regression (guard), 2 usage or tool error, 3 inconclusive.\n";
  return text;
}

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

// Who read the output has had enough, as `head` has. The last error number may be of a later call.
bool reader_is_gone(int file) {
  pollfd state = {file, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLERR) != 0;
}

// The way other tools end then, which shells know (141) and do not report.
void end_by_sigpipe() {
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
}

int run(int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto commands = all_commands();
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help") {
    const std::string text = overview(commands);
    fmt::print(arguments.empty() ? stderr : stdout, "{}", text);
    return arguments.empty() ? kExitError : kExitOk;
  }
  if (arguments[0] == "--version") {
    fmt::print("purlin {}\n", version());
    return kExitOk;
  }
  std::size_t words = 0;
  Command* command = find_command(commands, arguments, &words);
  if (command == nullptr) {
    const bool help = arguments.size() == 2 && (arguments[1] == "--help" || arguments[1] == "-h");
    const std::string text = help ? overview(commands, arguments[0]) : "";
    if (text.empty()) return report(unknown_verb(commands, arguments));
    fmt::print("{}", text);
    return kExitOk;
  }

  const Result<Settings> settings = Settings::load(".", user_config_directory());
  if (!settings.is_ok()) return report(settings.status());
  Flags flags(command->name(), command->summary(), &*settings);
  std::string color = "auto";
  bool quiet = false, verbose = false;
  command->declare(flags);
  flags.option("--color", color, "Colour: auto, always or never", "WHEN");
  flags.flag("-q,--quiet", quiet, "Say nothing but errors on stderr");
  flags.flag("-v,--verbose", verbose, "Say more on stderr");
  const Status parsed =
      flags.parse({arguments.begin() + static_cast<std::ptrdiff_t>(words), arguments.end()});
  if (parsed.code() == Code::kCancelled) {
    fmt::print("{}", flags.help(command->details()));
    return kExitOk;
  }
  if (!parsed.is_ok()) return report(parsed);
  if (color != "auto" && color != "always" && color != "never")
    return report(error(Code::kInvalid, "--color takes auto, always or never, not '{}'", color));

  const ColorMode mode = color == "always"  ? ColorMode::kAlways
                         : color == "never" ? ColorMode::kNever
                                            : ColorMode::kAuto;
  Log log(quiet ? Level::kError : verbose ? Level::kDebug : Level::kInfo);
  Context context{stdout, Terminal::of(stdout, mode), Terminal::of(stderr, mode), log, quiet};
  const Result<int> result = command->run(context);
  if (!result.is_ok()) {
    if (std::ferror(stdout) != 0 && reader_is_gone(STDOUT_FILENO)) end_by_sigpipe();
    return report(result.status());
  }
  // Output that could not be written (a full disk, a closed pipe) must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    if (reader_is_gone(STDOUT_FILENO)) end_by_sigpipe();
    return report(error(Code::kIo, "cannot write the output"));
  }
  return *result;
}

}  // namespace

int run_cli(int argc, const char* const* argv) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {  // out of memory, or a bug: never an unexplained abort
    return report(error(Code::kFailed, "internal error: {}", problem.what()));
  }
}

}  // namespace purlin::cli
