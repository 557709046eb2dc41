// SPDX-License-Identifier: Apache-2.0
// `purlin env`: the variables with which a program is captured without `purlin profile`.
#include "base/byte_size.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/command.h"
#include "profile/launcher.h"

#include <map>
#include <unistd.h>

namespace purlin::cli {
namespace {

constexpr std::uint64_t kLeastFileBytes = 64 << 10;
using Variables = std::map<std::string, std::string>;

// For a POSIX shell: 'it'\''s'
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_text(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables)
    text += fmt::format("export {}={}\n", name, shell_quoted(value));
  return text;
}

std::string file_text(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += fmt::format("{}={}\n", name, value);
  return text;
}

std::string kubernetes_text(const Variables& variables) {
  std::string text = "env:\n";
  for (const auto& [name, value] : variables)
    text += fmt::format("- name: {}\n  value: {}\n", name, json_quote(value));
  return text;
}

class Env : public Command {
 public:
  std::string_view name() const override { return "env"; }
  std::string_view summary() const override {
    return "Print the variables that capture a program for a collector";
  }
  VerbText text() const override {
    return {.description =
                "With these variables, every CUDA or OpenCL program is captured from its start to "
                "its end, without `purlin profile`. `purlin collect` reads the captures from "
                "--spool while the program runs.",
            .more =
                "For a shell, the folder DIR/uid-NUMBER is made, which only this user can enter. "
                "Set PURLIN_BUILD_LABEL to the version of the code, or give --build: fleet queries "
                "compare builds by it.",
            .examples = {{"eval \"$(purlin env)\" && python3 train.py"},
                         {"purlin env --format kubernetes --build v1.4",
                          "The env list of a container"}},
            .exit_codes = {{0, "Done"}, {2, "Error"}},
            .see = {"docs/guide/collect.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("--spool", spool_, "Folder that the collector watches", "DIR");
    flags.option("--format", format_,
                 {"Form of the output",
                  "",
                  {{"sh", "Lines for eval"},
                   {"file", "NAME=VALUE, as --env-file takes it"},
                   {"kubernetes", "YAML of a container's env"}}},
                 "FORMAT");
    flags.option("--build", build_, "Label of the code's version");
    flags.option("--budget", budget_, "Share of the program's time that capture may take",
                 "PERCENT");
    flags.option("--seal-period", period_, "How often a capture is sealed", "TIME");
    flags.option("--file-size", file_size_,
                 {"Size at which a capture goes on in another file; 0 = never",
                  "The collector removes files that it has read."},
                 "SIZE");
    flags.flag("--json", json_, "Print the variables as JSON");
  }
  Result<int> run(Context& context) override {
    profile::CaptureOptions options;
    options.build = build_;
    options.windows = profile::Choice::kOn;
    const auto budget =
        parse_double(ends_with(budget_, "%") ? budget_.substr(0, budget_.size() - 1) : budget_);
    if (!budget || *budget <= 0 || *budget > 100)
      return error(Code::kInvalid, "--budget '{}' is not a share such as 1%", budget_);
    options.budget = *budget / 100;
    const std::optional<double> period = parse_duration_s(period_);
    if (!period || *period < 0.1 || *period > 3600)
      return error(Code::kInvalid, "--seal-period '{}': give a time from 100ms to 1h", period_);
    options.seal_period_s = *period;
    const std::optional<std::uint64_t> bytes = parse_bytes(file_size_);
    if (!bytes || (*bytes > 0 && *bytes < kLeastFileBytes))
      return error(Code::kInvalid, "--file-size '{}': give 64KiB or more, or 0 for one file",
                   file_size_);
    options.spool_file_bytes = *bytes;
    if (format_ != "sh" && format_ != "file" && format_ != "kubernetes")
      return error(Code::kInvalid, "--format '{}' is not sh, file or kubernetes", format_);
    std::string spool = absolute_path(spool_);
    if (format_ == "sh" && !json_) {
      spool = join_path(spool, fmt::format("uid-{}", ::geteuid()));
      PURLIN_TRY(make_private_directory(spool));
    }
    std::vector<CoverageNote> notes;
    const Variables variables = profile::capture_environment(options, spool, notes);
    for (const CoverageNote& note : notes) context.log.warn("{}", note.text);
    Json json = document_of("purlin.env/1", {});
    Json list = Json::object();
    for (const auto& [name, value] : variables) list.set(name, value);
    json.set("variables", std::move(list));
    answer(context, json_, json,
           format_ == "sh"     ? shell_text(variables)
           : format_ == "file" ? file_text(variables)
                               : kubernetes_text(variables));
    return kExitOk;
  }

 private:
  std::string spool_ = "/var/spool/purlin", format_ = "sh", build_, budget_ = "1%", period_ = "5s",
              file_size_ = "4MiB";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_env_command() { return std::make_unique<Env>(); }

}  // namespace purlin::cli
