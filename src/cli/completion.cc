// SPDX-License-Identifier: Apache-2.0
// `purlin completion SHELL`: the completion script of a shell.
#include "cli/help/completion.h"

#include "cli/commands.h"
#include "cli/frame/command.h"

namespace purlin::cli {
namespace {

class CompletionCommand : public Command {
 public:
  std::string_view name() const override { return "completion"; }
  std::string_view summary() const override {
    return "Print the completion script of bash, zsh or fish";
  }
  VerbText text() const override {
    return {
        .description =
            "The script completes verbs, options, values of options, and file names. The packages "
            "install it for the three shells. For another installation, load it at the start of "
            "the shell.",
        .examples = {{"source <(purlin completion bash)", "bash: a line of ~/.bashrc"},
                     {"source <(purlin completion zsh)", "zsh: a line of ~/.zshrc, after compinit"},
                     {"purlin completion fish > ~/.config/fish/completions/purlin.fish", "fish"}},
        .exit_codes = {{0, "Printed"}, {2, "Unknown shell"}}};
  }
  void declare(Flags& flags) override {
    flags.positional("SHELL", shell_,
                     {"bash, zsh or fish", "", {{"bash", ""}, {"zsh", ""}, {"fish", ""}}});
  }
  Result<int> run(Context& context) override {
    if (shell_ == "bash")
      context.print(bash_completion(manual()));
    else if (shell_ == "zsh")
      context.print(zsh_completion(manual()));
    else if (shell_ == "fish")
      context.print(fish_completion(manual()));
    else
      return error(Code::kInvalid, "no completion for '{}'; give bash, zsh or fish", shell_);
    return kExitOk;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion_command() { return std::make_unique<CompletionCommand>(); }

}  // namespace purlin::cli
